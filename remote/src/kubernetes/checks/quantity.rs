//! Quantities of Kubernetes: `500m`, `2`, `1.5Gi`, `12e6`.

use serde_json::Value;

const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
/// Decimal suffixes, with the power of ten relative to a thousandth.
const DECIMAL: [(&str, i32); 9] =
    [("n", -6), ("u", -3), ("m", 0), ("k", 6), ("M", 9), ("G", 12), ("T", 15), ("P", 18), ("E", 21)];

/// A quantity in thousandths, rounded up as the API server does; none if the text is not one.
pub(crate) fn parse(text: &str) -> Option<i128> {
    let binary = BINARY.iter().find_map(|(suffix, bits)| Some((text.strip_suffix(suffix)?, *bits)));
    if let Some((number, bits)) = binary {
        let (digits, scale) = decimal(number)?;
        return scaled(digits.checked_mul(1_i128 << bits)?, 3 - scale);
    }
    let suffixed = DECIMAL.iter().find_map(|(suffix, power)| Some((text.strip_suffix(suffix)?, *power)));
    if let Some((number, power)) = suffixed {
        let (digits, scale) = decimal(number)?;
        return scaled(digits, power - scale);
    }
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (digits, scale) = decimal(number)?;
    scaled(digits, exponent.checked_add(3)?.checked_sub(scale)?)
}

/// A quantity in an object, where it may be a number.
pub(crate) fn of(value: &Value) -> Option<i128> {
    match value {
        Value::String(text) => parse(text),
        Value::Number(number) => parse(&number.to_string()),
        _ => None,
    }
}

/// A quantity of a resource for people: memory in binary units, everything else as a number.
pub(crate) fn show(resource: &str, thousandths: i128) -> String {
    let whole = thousandths / 1000;
    let is_bytes = ["memory", "storage", "hugepages"].iter().any(|word| resource.contains(word))
        && thousandths % 1000 == 0;
    if is_bytes {
        let unit = BINARY.iter().rev().find(|(_, bits)| whole != 0 && whole % (1_i128 << bits) == 0);
        return unit.map_or_else(|| whole.to_string(), |(suffix, bits)| format!("{}{suffix}", whole >> bits));
    }
    if thousandths % 1000 == 0 { whole.to_string() } else { format!("{thousandths}m") }
}

/// The digits of a decimal number, and how many of them are after the point.
fn decimal(text: &str) -> Option<(i128, i32)> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{part}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((sign * digits.parse::<i128>().ok()?, i32::try_from(part.len()).ok()?))
}

/// A number times a power of ten, rounded up.
fn scaled(number: i128, power: i32) -> Option<i128> {
    let factor = 10_i128.checked_pow(power.unsigned_abs())?;
    if power >= 0 {
        return number.checked_mul(factor);
    }
    Some(number.div_euclid(factor) + i128::from(number.rem_euclid(factor) != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_the_api_server_reads_them() {
        for (text, expected) in [
            ("2", Some(2000)),
            ("500m", Some(500)),
            ("1.5", Some(1500)),
            (".5", Some(500)),
            ("1Gi", Some(1_073_741_824_000)),
            ("1.5Gi", Some(1_610_612_736_000)),
            ("12e6", Some(12_000_000_000)),
            ("1E3", Some(1_000_000)),
            ("5E", Some(5_000_000_000_000_000_000_000)),
            ("100n", Some(1)),
            ("2k", Some(2_000_000)),
            ("-1", Some(-1000)),
            ("", None),
            ("Gi", None),
            ("1 Gi", None),
            ("lots", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
        assert_eq!(of(&serde_json::json!(8)), Some(8000));
    }

    #[test]
    fn quantities_are_shown_in_the_unit_of_the_resource() {
        for (resource, text, expected) in [
            ("requests.memory", "1536Mi", "1536Mi"),
            ("memory", "1024Mi", "1Gi"),
            ("memory", "1000", "1000"),
            ("cpu", "1500m", "1500m"),
            ("requests.nvidia.com/gpu", "16", "16"),
        ] {
            assert_eq!(show(resource, parse(text).unwrap()), expected);
        }
    }
}
