//! `HEALTHCHECK`.

use super::super::forms::{Command, Healthcheck};
use super::super::line::Part;
use super::super::split::{self, Flag};
use super::arguments::command;
use super::flags::{flag_value, unknown_flag};
use super::scope::Scope;

const FLAGS: &[&str] = &["interval", "timeout", "start-period", "start-interval", "retries"];

pub(super) fn read(keyword: Part<'_>, rest: Part<'_>, scope: &mut Scope<'_>) -> Option<Healthcheck> {
    let (flags, rest) = split::flags(rest);
    let (kind, rest) = rest.split_first();
    match kind.text().to_ascii_uppercase().as_str() {
        "NONE" if rest.is_empty() && flags.is_empty() => return Some(Healthcheck::None),
        "NONE" => {
            scope.problems.wrong(
                kind.span(),
                "`HEALTHCHECK NONE` takes no arguments",
                "remove the rest of the line",
            );
            return None;
        }
        "CMD" if !rest.is_empty() => {}
        _ => {
            let at = if kind.is_empty() { keyword } else { kind };
            scope.problems.wrong(
                at.span(),
                "`HEALTHCHECK` needs a command",
                "write `HEALTHCHECK CMD command`, or `HEALTHCHECK NONE`",
            );
            return None;
        }
    }
    let command = command(rest, scope)?;
    if command == Command::Exec(Vec::new()) {
        scope.problems.wrong(
            rest.span(),
            "`HEALTHCHECK` needs a command",
            "write a program and its arguments",
        );
        return None;
    }
    let mut times = [None; 4];
    let mut retries = None;
    for flag in &flags {
        match FLAGS.iter().position(|name| *name == flag.name) {
            Some(4) => {
                let value = flag_value("HEALTHCHECK", flag, scope)?;
                let Ok(number) = value.text.parse() else {
                    scope.problems.wrong(
                        value.span,
                        format!("`{}` is not a number", value.text),
                        "such as `--retries=3`",
                    );
                    return None;
                };
                retries = Some(number);
            }
            Some(which) => times[which] = Some(time(flag, scope)?),
            None => {
                unknown_flag("HEALTHCHECK", flag, FLAGS, scope);
                return None;
            }
        }
    }
    let [interval, timeout, start_period, start_interval] = times;
    Some(Healthcheck::Cmd { command, interval, timeout, start_period, start_interval, retries })
}

fn time(flag: &Flag<'_>, scope: &mut Scope<'_>) -> Option<u64> {
    let value = flag_value("HEALTHCHECK", flag, scope)?;
    match nanoseconds(&value.text) {
        // Docker's own minimum; 0 means its default.
        Some(time) if time == 0 || time >= 1_000_000 => Some(time),
        found => {
            let message = match found {
                Some(_) => format!("`{}` is less than a millisecond", value.text),
                None => format!("`{}` is not a duration", value.text),
            };
            scope.problems.wrong(value.span, message, "write `90s`, `1m30s` or `500ms`");
            None
        }
    }
}

/// A duration in Go's format: `1h15m30.5s`.
fn nanoseconds(text: &str) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    let mut rest = text;
    let mut total = 0_f64;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, unit) = rest.split_at(end);
        let number: f64 = number.parse().ok()?;
        let length = unit.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(unit.len());
        let (unit, after) = unit.split_at(length);
        let scale = match unit {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return None,
        };
        total += number * scale;
        rest = after;
    }
    // The maximum in a configuration: a signed 64-bit integer.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounded, and never negative"
    )]
    (!text.is_empty() && total < 9.2e18).then_some(total.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;

    #[test]
    fn durations_are_as_in_go() {
        for (text, expected) in [
            ("0", Some(0)),
            ("30s", Some(30_000_000_000)),
            ("1h1m1.5s", Some(3_661_500_000_000)),
            ("250ms", Some(250_000_000)),
            ("", None),
            ("5", None),
            ("s", None),
            ("-1s", None),
            ("1.2.3s", None),
            ("9999999999h", None),
        ] {
            assert_eq!(nanoseconds(text), expected, "{text}");
        }
    }
}
