//! A number for people.

/// Digits that are shown of a number.
const DIGITS: usize = 6;

/// A number with six significant digits, as C's `%g` writes it: `0.123457`, `1.5e-07`, `nan`.
pub fn format_number(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    if !number.is_finite() {
        return if number.is_nan() {
            "nan"
        } else if number > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .to_owned();
    }
    // Rounding may change the exponent: 999999.9 is 1e+06.
    let scientific = format!("{number:.0$e}", DIGITS - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).unwrap_or(0);
        return trimmed(&format!("{number:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.unsigned_abs())
}

/// A decimal number without zeros at its end.
fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_six_digits() {
        let shown = [
            0.1,
            2.0 / 3.0,
            12.5,
            123_456.7,
            1_234_567.0,
            1e-4,
            1.5e-7,
            -0.25,
            0.0,
            999_999.9,
            1e300,
            f64::NAN,
        ]
        .map(format_number);
        assert_eq!(
            shown,
            [
                "0.1",
                "0.666667",
                "12.5",
                "123457",
                "1.23457e+06",
                "0.0001",
                "1.5e-07",
                "-0.25",
                "0",
                "1e+06",
                "1e+300",
                "nan"
            ]
        );
    }
}
