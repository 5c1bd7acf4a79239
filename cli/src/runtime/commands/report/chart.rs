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
            Self::Cpus | Self::Percent => {
                let unit = 10_f64.powf(least.max(1e-3).log10().floor());
                [1.0, 2.0, 5.0, 10.0]
                    .into_iter()
                    .map(|step| step * unit)
                    .find(|&step| step >= least * 0.999)
                    .unwrap_or(unit)
            }
        }
    }

    /// The labels of an axis that ends at `to`, the first of them 0, with their text.
    pub(super) fn ticks(self, to: f64, count: u32) -> Vec<(f64, String)> {
        let step = self.step(to, f64::from(count));
        let mut ticks = vec![];
        let mut number = 0_u32;
        while f64::from(number) * step <= to * 1.0001 && number <= count + 1 {
            let value = f64::from(number) * step;
            ticks.push((value, self.format_value(value)));
            number += 1;
        }
        ticks
    }

    /// A value as text.
    pub(super) fn format_value(self, value: f64) -> String {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // no value is negative or that large
        let whole = value.round() as u64;
        match self {
            _ if value == 0.0 => "0".to_owned(),
            Self::Time if value < 1.0 => format!("{value:.1} s"),
            Self::Time if whole < 60 => format!("{whole} s"),
            Self::Time if whole < 3600 && whole.is_multiple_of(60) => format!("{} min", whole / 60),
            Self::Time if whole < 86_400 && whole.is_multiple_of(3600) => format!("{} h", whole / 3600),
            Self::Time => format_duration(Duration::from_secs(whole)),
            Self::Cpus if value < 1.0 => format!("{value:.2}"),
            Self::Cpus => format!("{value:.1}").trim_end_matches(".0").to_owned(),
            Self::Bytes => bytes(whole),
            Self::BytesPerSecond => format!("{}/s", bytes(whole)),
            Self::Percent => format!("{whole} %"),
        }
    }
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
        check(Unit::Time, 90_000.0, &["0", "6 h", "12 h", "18 h", "1 d 0 h"]);
        check(Unit::Time, 400_000.0, &["0", "1 d 0 h", "2 d 0 h", "3 d 0 h", "4 d 0 h"]);
        check(Unit::Cpus, 0.04, &["0", "0.01", "0.02", "0.03", "0.04"]);
        check(Unit::Cpus, 16.0, &["0", "5", "10", "15"]);
        check(Unit::Bytes, 1.5 * 1024.0 * 1024.0, &["0", "512 KiB", "1.0 MiB", "1.5 MiB"]);
        check(Unit::Percent, 100.0, &["0", "20 %", "40 %", "60 %", "80 %", "100 %"]);
        check(Unit::Bytes, 0.0, &["0"]);
    }

    #[test]
    fn values_stay_on_the_drawing() {
        let scale = Scale { to: 10.0, first: 100.0, last: 0.0 };
        let at = [0.0, 5.0, 10.0, 20.0, -1.0].map(|value| format_number(scale.position(value)));
        assert_eq!(at, ["100", "50", "0", "0", "100"]);
    }
}
