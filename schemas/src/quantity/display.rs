//! Bytes as people read them. Job files and plans have [`Bytes`]'s own, exact form.
//!
//! Units are powers of 1024. Digits are cut off, never rounded up: what is free is at least what is shown.

use std::fmt;

use super::Bytes;

const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// The largest unit that job files know.
const TEBI: usize = 4;

/// A measurement, with at most three digits: `999 B`, `1.4 KiB`, `64.0 GiB`.
#[derive(Clone, Copy, Debug)]
pub struct Measurement(u64);

/// An amount that a user requests or sets, in the units of job files and to a tenth: `2 GiB`, `1.5 GiB`, `12 bytes`.
#[derive(Clone, Copy, Debug)]
pub struct Amount(u64);

impl Bytes {
    /// Shows a measurement: what is used, free or left.
    pub fn measured(self) -> Measurement {
        Measurement(self.0)
    }

    /// Shows an amount that is requested or set: a request, a limit, a capacity.
    pub fn amount(self) -> Amount {
        Amount(self.0)
    }
}

/// Tenths of a unit, so that no number is too large for the arithmetic.
fn tenths(bytes: u64, unit: usize) -> u128 {
    (u128::from(bytes) * 10) >> (10 * unit)
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |unit: &usize| tenths(self.0, *unit) < if *unit == 0 { 10_000 } else { 9995 };
        let unit = (0..UNITS.len()).find(fits).unwrap_or(UNITS.len() - 1);
        let tenths = tenths(self.0, unit);
        if unit == 0 || tenths >= 1000 {
            write!(f, "{} {}", tenths / 10, UNITS[unit])
        } else {
            write!(f, "{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(unit) = (1..=TEBI).rev().find(|unit| tenths(self.0, *unit) >= 10) else {
            return write!(f, "{} bytes", self.0);
        };
        match tenths(self.0, unit) {
            tenths if tenths % 10 == 0 => write!(f, "{} {}", tenths / 10, UNITS[unit]),
            tenths => write!(f, "{}.{} {}", tenths / 10, tenths % 10, UNITS[unit]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_have_three_digits() {
        let check = |bytes: u64, shown: &str| assert_eq!(Bytes(bytes).measured().to_string(), shown);
        check(0, "0 B");
        check(999, "999 B");
        check(1000, "0.9 KiB");
        check(1024, "1.0 KiB");
        check(1434, "1.4 KiB");
        check(102_400, "100 KiB");
        check(1_000_000, "976 KiB");
        check(1 << 20, "1.0 MiB");
        check((1 << 30) - 1, "0.9 GiB");
        check(2 << 30, "2.0 GiB");
        check(64 << 30, "64.0 GiB");
        check(u64::MAX, "15.9 EiB");
    }

    #[test]
    fn amounts_have_a_tenth_where_they_are_not_whole() {
        let check = |bytes: u64, shown: &str| assert_eq!(Bytes(bytes).amount().to_string(), shown);
        check(0, "0 bytes");
        check(1000, "1000 bytes");
        check(3 << 10, "3 KiB");
        check(1_000_000, "976.5 KiB");
        check(2 << 30, "2 GiB");
        check(1536 << 20, "1.5 GiB");
        check((1 << 30) + 1, "1 GiB");
        check(102 << 30, "102 GiB");
        check(1 << 40, "1 TiB");
        check(u64::MAX, "16777215.9 TiB");
    }
}
