//! Axes: the positions of values, and the labels.

use std::time::Duration;

use super::super::jobs::format_duration;
use crate::runtime::quantity::bytes;

/// A range of values on a range of the drawing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub to: f64,
    pub first: f64,
    pub last: f64,
}

impl Scale {
    /// The position of a value; values begin at 0.
    pub(super) fn position(&self, value: f64) -> f64 {
        let part = if self.to > 0.0 { (value / self.to).clamp(0.0, 1.0) } else { 0.0 };
        self.first + part * (self.last - self.first)
    }
}

/// The kind of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Seconds.
    Time,
    /// Whole CPUs.
    Cpus,
    Bytes,
    BytesPerSecond,
    Percent,
    /// Whole things, such as tasks.
    Count,
}

/// Steps of time, in seconds.
const TIMES: [f64; 20] = [
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0,
    10_800.0, 21_600.0, 43_200.0,
];

impl Unit {
    /// The smallest step of which at most `count` reach `to`.
    fn step(self, to: f64, count: f64) -> f64 {
        let least = to / count;
        match self {
            Self::Time => {
                let day = 86_400.0;
                TIMES.into_iter().find(|&step| step >= least).unwrap_or_else(|| (least / day).ceil() * day)
            }
            Self::Bytes | Self::BytesPerSecond => {
                let mut unit = 1.0;
                while least >= unit * 1024.0 {
                    unit *= 1024.0;
                }
                let steps = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];
                steps.into_iter().map(|step| step * unit).find(|&step| step >= least).unwrap_or(unit * 1024.0)
            }
            Self::Cpus | Self::Percent | Self::Count => {
                let least = if self == Self::Count { least.max(1.0) } else { least };
                let unit = 10_f64.powf(least.max(1e-3).log10().floor());
                [1.0, 2.0, 5.0, 10.0]
                    .into_iter()
                    .map(|step| step * unit)
                    .find(|&step| step >= least * 0.999)
                    .unwrap_or(unit)
            }
        }
    }

    /// The labels of an axis that ends at `to`, the first of them 0, with their text. No two are equal.
    pub(super) fn ticks(self, to: f64, count: u32) -> Vec<(f64, String)> {
        let step = self.step(to, f64::from(count));
        let mut ticks = vec![];
        let mut number = 0_u32;
        while f64::from(number) * step <= to * 1.0001 && number <= count + 1 {
            let value = f64::from(number) * step;
            ticks.push((value, self.format_tick(value, step)));
            number += 1;
        }
        ticks
    }

    /// A label, as exact as the distance to the next one requires.
    fn format_tick(self, value: f64, step: f64) -> String {
        match self {
            _ if value == 0.0 => "0".to_owned(),
            Self::Time if step >= 1.0 => exact_time(value),
            Self::Time => format!("{value:.1} s"),
            Self::Cpus if step < 0.1 => format!("{value:.2}"),
            Self::Cpus if step < 1.0 => format!("{value:.1}"),
            Self::Percent if step < 1.0 => format!("{value:.1} %"),
            // Steps are whole, or halves of the unit.
            _ => self.format_value(value).replace(".0 ", " "),
        }
    }

    /// A value as text.
    pub(super) fn format_value(self, value: f64) -> String {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // no value is negative or that large
        let whole = value.round() as u64;
        match self {
            _ if value == 0.0 => "0".to_owned(),
            Self::Time if value < 1.0 => format!("{value:.1} s"),
            Self::Time => format_duration(Duration::from_secs(whole)),
            Self::Cpus if value < 1.0 => format!("{value:.2}"),
            Self::Cpus => format!("{value:.1}").trim_end_matches(".0").to_owned(),
            Self::Bytes => bytes(whole),
            Self::BytesPerSecond => format!("{}/s", bytes(whole)),
            Self::Percent => format!("{whole} %"),
            Self::Count => whole.to_string(),
        }
    }
}

/// A label of an axis of time. One at the end of the axis stays within the drawing.
pub(super) fn time_label(x: &Scale, value: f64, words: &str, y: f64) -> String {
    let at = x.position(value);
    #[allow(clippy::cast_precision_loss)] // a few characters
    let half = words.chars().count() as f64 * 3.7;
    let (class, at) = if at + half > x.last { ("tick end", x.last.max(at)) } else { ("tick mid", at) };
    format!("<text x=\"{}\" y=\"{}\" class=\"{class}\">{words}</text>", format_number(at), format_number(y))
}

/// A whole number of seconds in all of its units: `1 min 30 s`, `1 d`.
fn exact_time(seconds: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    // no value is negative or that large
    let mut rest = seconds.round() as u64;
    let mut parts = vec![];
    for (unit, name) in [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")] {
        if rest >= unit {
            parts.push(format!("{} {name}", rest / unit));
            rest %= unit;
        }
    }
    parts.join(" ")
}

/// A number as written in drawings, in tenths.
pub(super) fn format_number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(unit: Unit, to: f64, expected: &[&str]) {
        let words: Vec<String> = unit.ticks(to, 5).into_iter().map(|(_, words)| words).collect();
        assert_eq!(words, expected, "{to}");
    }

    #[test]
    fn axes_have_round_numbers() {
        check(Unit::Time, 3.2, &["0", "1 s", "2 s", "3 s"]);
        check(Unit::Time, 400.0, &["0", "2 min", "4 min", "6 min"]);
        check(Unit::Time, 150.0, &["0", "30 s", "1 min", "1 min 30 s", "2 min", "2 min 30 s"]);
        check(Unit::Time, 90_000.0, &["0", "6 h", "12 h", "18 h", "1 d"]);
        check(Unit::Time, 400_000.0, &["0", "1 d", "2 d", "3 d", "4 d"]);
        check(Unit::Cpus, 0.04, &["0", "0.01", "0.02", "0.03", "0.04"]);
        check(Unit::Cpus, 16.0, &["0", "5", "10", "15"]);
        check(Unit::Bytes, 1.5 * 1024.0 * 1024.0, &["0", "512 KiB", "1 MiB", "1.5 MiB"]);
        check(Unit::Cpus, 1.1, &["0", "0.5", "1.0"]);
        check(Unit::Count, 3.0, &["0", "1", "2", "3"]);
        check(Unit::Count, 10_000.0, &["0", "2000", "4000", "6000", "8000", "10000"]);
        check(Unit::Percent, 100.0, &["0", "20 %", "40 %", "60 %", "80 %", "100 %"]);
        check(Unit::Bytes, 0.0, &["0"]);
    }

    #[test]
    fn no_two_labels_are_equal() {
        for unit in [Unit::Time, Unit::Cpus, Unit::Bytes, Unit::BytesPerSecond, Unit::Percent, Unit::Count] {
            for power in 0..60 {
                let to = 0.05 * 1.37_f64.powi(power);
                for count in [4, 5, 9] {
                    // A plot of percent has 100 of them.
                    if unit == Unit::Percent && to < 1.0 {
                        continue;
                    }
                    let labels: Vec<String> =
                        unit.ticks(to, count).into_iter().map(|(_, label)| label).collect();
                    let distinct: std::collections::BTreeSet<&String> = labels.iter().collect();
                    assert_eq!(distinct.len(), labels.len(), "{unit:?} {to} {count}: {labels:?}");
                }
            }
        }
    }

    #[test]
    fn values_stay_on_the_drawing() {
        let scale = Scale { to: 10.0, first: 100.0, last: 0.0 };
        let at = [0.0, 5.0, 10.0, 20.0, -1.0].map(|value| format_number(scale.position(value)));
        assert_eq!(at, ["100", "50", "0", "0", "100"]);
    }
}
