//! Amounts of memory, CPUs and energy, and durations: their own parsers report errors.

use jobc_schema::quantity::{Energy, QuantityError};
use jobc_schema::{Bytes, Cpus, Seconds};
use serde_json::Value as Json;

use crate::diagnostic::{Diagnostic, Safety, codes};

use super::forms::{BYTES, CPUS, DURATION, ENERGY};
use super::place;
use super::refused_value::RefusedValue;
use super::report::Report;
use crate::full_width;

/// Whether a part of the schema is an amount.
pub(super) fn is_amount(part: &Json) -> bool {
    matches!(part.get("pattern").and_then(Json::as_str), Some(BYTES | CPUS | DURATION | ENERGY))
}

/// Reports a text or a number without a unit that is not an amount.
pub(super) fn refused(refused: &RefusedValue<'_>, text: &str, report: &mut Report<'_>) {
    let pattern = refused.part.get("pattern").and_then(Json::as_str).unwrap_or_default();
    // The schema is stricter than the parser about blanks and leading points.
    let lax = || QuantityError(format!("invalid amount `{text}`; write for example `0.5GiB`"));
    let error = parse(pattern, text).err().unwrap_or_else(lax);
    report.push(diagnose(refused, text, &error, report));
}

/// Parses a text with its pattern's parser.
pub(super) fn parse(pattern: &str, text: &str) -> Result<(), QuantityError> {
    match pattern {
        BYTES => Bytes::parse(text).map(drop),
        CPUS => Cpus::parse(text).map(drop),
        ENERGY => Energy::parse(text).map(drop),
        _ => Seconds::parse(text).map(drop),
    }
}

/// The finding for an amount that its parser rejects.
fn diagnose(
    refused: &RefusedValue<'_>,
    text: &str,
    error: &QuantityError,
    report: &Report<'_>,
) -> Diagnostic {
    let subject = place::subject(&refused.segments);
    // The parsers return `what is wrong; what to write instead`.
    let (wrong, instead) = error.0.split_once("; ").unwrap_or((&error.0, ""));
    let message = format!("{subject}: {wrong}");
    let mut diagnostic =
        Diagnostic::error(codes::BAD_AMOUNT, message).at_place(report.value(&refused.at), "");
    if let Some(whole) = compound(text) {
        diagnostic = diagnostic.note("write one number and one unit");
        return report.rewrite(diagnostic, &refused.at, &report.string(&whole), Safety::Safe);
    }
    if let Some(ascii) = full_width::in_ascii(text) {
        let ascii = if ascii.parse::<f64>().is_ok() { ascii } else { report.string(&ascii) };
        return report.rewrite(diagnostic.note(full_width::NOTE), &refused.at, &ascii, Safety::Safe);
    }
    diagnostic = diagnostic.note(instead);
    let pattern = refused.part.get("pattern").and_then(Json::as_str);
    if let Some(whole) = clock(text).filter(|_| pattern == Some(DURATION)) {
        return report.rewrite(diagnostic, &refused.at, &report.string(&whole), Safety::Unsafe);
    }
    if !instead.starts_with("write for example") {
        // Only the user knows the intended unit: each is suggested, none is applied automatically.
        let number = text.find(|c: char| !c.is_ascii_digit() && c != '.').map_or(text, |end| &text[..end]);
        for candidate in candidates(instead).filter(|c| c.trim_end_matches(char::is_alphabetic) == number) {
            diagnostic = report.rewrite(diagnostic, &refused.at, &report.string(candidate), Safety::Unsafe);
        }
    }
    diagnostic
}

/// The suggestions of a hint: the words in backticks before any parenthesis.
fn candidates(instead: &str) -> impl Iterator<Item = &str> {
    let end = instead.find('(').unwrap_or(instead.len());
    let choices = instead[..end].strip_prefix("write `").unwrap_or_default();
    choices.split('`').step_by(2).filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

/// `1h30m` as `90m`.
fn compound(text: &str) -> Option<String> {
    let mut seconds = 0_u64;
    let mut rest = text;
    let mut parts = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0)?;
        let unit = rest[digits..].chars().next()?;
        let end = digits + unit.len_utf8();
        seconds = seconds.checked_add(Seconds::parse(&rest[..end]).ok()?.0)?;
        rest = &rest[end..];
        parts += 1;
    }
    (parts > 1).then(|| Seconds(seconds).to_string())
}

/// Durations in other notations: `2h30`, `500ms`, `1:30:00`, `1-12:00:00`.
fn clock(text: &str) -> Option<String> {
    let text = text.trim();
    if let Some(count) = text.strip_suffix("ms") {
        let count: u64 = count.trim().parse().ok()?;
        return Some(Seconds(count.div_ceil(1000)).to_string());
    }
    if let Some((hours, minutes)) = text.split_once('h') {
        let (hours, minutes): (u64, u64) = (hours.parse().ok()?, minutes.parse().ok()?);
        let seconds = hours.checked_mul(3600)?.checked_add(minutes * 60)?;
        return (minutes < 60).then(|| Seconds(seconds).to_string());
    }
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (days.parse::<u64>().ok()?, clock),
        None => (0, text),
    };
    let parts: Option<Vec<u64>> = clock.split(':').map(|part| part.parse().ok()).collect();
    let [hours, minutes, seconds] = parts?[..] else { return None };
    let hours = days.checked_mul(24)?.checked_add(hours)?;
    let all = hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?.checked_add(seconds)?;
    Some(Seconds(all).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compound_durations_are_converted_to_one_unit() {
        let check = |text: &str, whole: Option<&str>| assert_eq!(compound(text).as_deref(), whole, "{text}");
        check("1h30m", Some("90m"));
        check("1d12h", Some("36h"));
        check("90m", None);
        check("1h30", None);
        check("hm", None);
        check("99999999999999999999d1s", None);
    }

    #[test]
    fn durations_of_batch_systems_are_converted_to_one_unit() {
        let check = |text: &str, whole: Option<&str>| assert_eq!(clock(text).as_deref(), whole, "{text}");
        check("2h30", Some("150m"));
        check("500ms", Some("1s"));
        check("1:30:00", Some("90m"));
        check("1-12:00:00", Some("36h"));
        check("2h90", None);
        check("18446744073709551615:00:00", None);
        check("10:00", None);
    }

    #[test]
    fn hints_name_suggestions() {
        let list = |hint| candidates(hint).collect::<Vec<_>>();
        assert_eq!(list("write `8GiB` or `8MiB`"), ["8GiB", "8MiB"]);
        assert_eq!(list("write `8GiB` (KiB `9`)"), ["8GiB"]);
        assert_eq!(list("write a number such as `4`"), Vec::<&str>::new());
    }
}
