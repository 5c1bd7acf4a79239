//! Axes: the positions of values, and the labels.

use std::time::Duration;

use jobc_job::user_metrics::format_number as format_metric;

use super::super::jobs::format_duration;
use super::figure::Frame;
use crate::runtime::quantity::bytes;

/// A range of values on a range of the drawing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub from: f64,
    pub to: f64,
    pub first: f64,
    pub last: f64,
    /// Whether equal distances are equal ratios; then no value is 0 or negative.
    pub is_log: bool,
}

impl Scale {
    /// The position of a value.
    pub(super) fn position(&self, value: f64) -> f64 {
        let of = |value: f64| if self.is_log { value.log10() } else { value };
        let (from, to) = (of(self.from), of(self.to));
        let part = if to > from { ((of(value) - from) / (to - from)).clamp(0.0, 1.0) } else { 0.0 };
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

/// From which ratio of the highest to the lowest value an axis is logarithmic.
const LOG_RATIO: f64 = 1000.0;

/// Maximum number of labels of a logarithmic axis.
const MAX_LOG_TICKS: i32 = 6;

/// The vertical axis of values that need not be near 0, with its labels.
pub(super) fn value_axis(frame: Frame, lowest: f64, highest: f64) -> (Scale, Vec<(f64, String)>) {
    if lowest > 0.0 && highest / lowest >= LOG_RATIO {
        #[allow(clippy::cast_possible_truncation)] // exponents of a double
        let (from, to) = (lowest.log10().floor() as i32, highest.log10().ceil() as i32);
        let step = (to - from + MAX_LOG_TICKS - 1) / MAX_LOG_TICKS;
        let powers = (0..).map(|number| from + number * step).take_while(|power| *power < to + step);
        let ticks: Vec<f64> = powers.map(|power| 10_f64.powi(power)).collect();
        let scale = Scale { is_log: true, ..frame.y(ticks[0], ticks[ticks.len() - 1]) };
        return (scale, ticks.into_iter().map(|tick| (tick, format_metric(tick))).collect());
    }
    let ticks = round_ticks(lowest, highest, 4);
    // Equal values are a line in the middle.
    let margin = if highest > lowest { 0.0 } else { (lowest.abs() / 10.0).max(f64::MIN_POSITIVE) };
    let (from, to) = (ticks[0].min(lowest) - margin, ticks[ticks.len() - 1].max(highest) + margin);
    (frame.y(from, to), ticks.into_iter().map(|tick| (tick, format_metric(tick))).collect())
}

/// Round numbers from the last below the lowest value to the first above the highest.
pub(super) fn round_ticks(lowest: f64, highest: f64, count: u32) -> Vec<f64> {
    let distance = highest - lowest;
    if distance <= 0.0 || !distance.is_finite() {
        return vec![lowest];
    }
    let least = distance / f64::from(count);
    let unit = 10_f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * unit).into_iter().find(|step| *step >= least);
    let step = step.unwrap_or(unit * 10.0);
    let first = (lowest / step).floor();
    let mut ticks = vec![];
    let mut number = 0.0;
    while ticks.len() < 8 {
        let value = (first + number) * step;
        ticks.push(value);
        if value >= highest {
            break;
        }
        number += 1.0;
    }
    ticks
}

/// How long something ran, with its seconds if that was less than an hour.
pub(super) fn format_run_time(time: Duration) -> String {
    match time.as_secs() {
        10..3600 => exact_time(time.as_secs_f64().floor()),
        _ => format_duration(time),
    }
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
        let scale = Scale { from: 0.0, to: 10.0, first: 100.0, last: 0.0, is_log: false };
        let at = [0.0, 5.0, 10.0, 20.0, -1.0].map(|value| format_number(scale.position(value)));
        assert_eq!(at, ["100", "50", "0", "0", "100"]);
        let scale = Scale { from: 0.01, to: 100.0, is_log: true, ..scale };
        assert_eq!([0.01, 1.0, 10.0].map(|value| format_number(scale.position(value))), ["100", "50", "25"]);
    }

    #[test]
    fn ticks_are_round_and_enclose_the_values() {
        assert_eq!(round_ticks(0.013, 0.042, 4), [0.01, 0.02, 0.03, 0.04, 0.05]);
        assert_eq!(round_ticks(-3.0, 9.0, 4), [-5.0, 0.0, 5.0, 10.0]);
        assert_eq!(round_ticks(7.0, 7.0, 4), [7.0]);
        assert_eq!(round_ticks(0.0, 4e300, 4).len(), 5);
    }

    #[test]
    fn values_of_many_magnitudes_have_a_logarithmic_axis() {
        let labels = |lowest: f64, highest: f64| {
            let (scale, ticks) = value_axis(super::super::figure::SMALL, lowest, highest);
            let labels: Vec<String> = ticks.into_iter().map(|(_, label)| label).collect();
            (scale.is_log, labels.join(" "))
        };
        assert_eq!(labels(0.5, 4.0), (false, "0 1 2 3 4".to_owned()));
        assert_eq!(labels(0.002, 4.0), (true, "0.001 0.01 0.1 1 10".to_owned()));
        assert_eq!(labels(2.7e-38, 0.005), (true, "1e-38 1e-32 1e-26 1e-20 1e-14 1e-08 0.01".to_owned()));
        assert!(!labels(0.0, 4000.0).0);
        assert_eq!(labels(3.0, 3.0), (false, "3".to_owned()));
        assert_eq!(labels(0.0, 0.0), (false, "0".to_owned()));
    }

    #[test]
    fn short_runs_have_seconds() {
        let shown =
            [0.04, 3.25, 61.0, 312.9, 7200.0].map(|time| format_run_time(Duration::from_secs_f64(time)));
        assert_eq!(shown, ["0.0 s", "3.2 s", "1 min 1 s", "5 min 12 s", "2 h 0 min"]);
    }
}
