//! The type of a plain scalar in YAML 1.2's core schema, and where other tools read it differently.

use serde_json::Number;

/// A plain scalar in YAML 1.2's core schema.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PlainScalar {
    /// `null`, `~` or an empty text.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number that JSON can represent.
    Number(Number),
    /// `0777`: 777 in YAML 1.2, 511 in YAML 1.1, a string for some tools.
    LeadingZero,
    /// `.inf` or `.nan`.
    NotFinite,
    /// An integer beyond 64 bits, or a float out of range.
    TooLarge,
    /// Anything else.
    Text,
}

/// Determines the type of a plain scalar.
pub(super) fn resolve(text: &str) -> PlainScalar {
    match text.as_bytes().first() {
        None | Some(b'~') if text.len() <= 1 => PlainScalar::Null,
        Some(b'n' | b'N') if matches!(text, "null" | "Null" | "NULL") => PlainScalar::Null,
        Some(b't' | b'T') if matches!(text, "true" | "True" | "TRUE") => PlainScalar::Bool(true),
        Some(b'f' | b'F') if matches!(text, "false" | "False" | "FALSE") => PlainScalar::Bool(false),
        Some(b'0'..=b'9' | b'+' | b'-' | b'.') => number(text),
        _ => PlainScalar::Text,
    }
}

fn number(text: &str) -> PlainScalar {
    let (sign, digits) = match text.as_bytes() {
        [b'-', ..] => ("-", &text[1..]),
        [b'+', ..] => ("", &text[1..]),
        _ => ("", text),
    };
    if matches!(digits, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return PlainScalar::NotFinite;
    }
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        if digits.len() > 1 && digits.starts_with('0') {
            return PlainScalar::LeadingZero;
        }
        return integer(&format!("{sign}{digits}"));
    }
    // The core schema allows no sign before `0o` and `0x`.
    let radix = |prefix, radix| {
        let digits: &str = text.strip_prefix(prefix)?;
        if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
            return None;
        }
        Some(
            u64::from_str_radix(digits, radix)
                .map_or(PlainScalar::TooLarge, |n| PlainScalar::Number(n.into())),
        )
    };
    radix("0o", 8).or_else(|| radix("0x", 16)).unwrap_or_else(|| float(text, digits))
}

/// A decimal integer, with an optional minus sign.
fn integer(text: &str) -> PlainScalar {
    let signed = text.parse::<i64>().map(Number::from);
    signed
        .or_else(|_| text.parse::<u64>().map(Number::from))
        .map_or(PlainScalar::TooLarge, PlainScalar::Number)
}

/// `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
fn float(text: &str, digits: &str) -> PlainScalar {
    let is_number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (digits, None),
    };
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => is_number(fraction),
        Some((whole, fraction)) => is_number(whole) && (fraction.is_empty() || is_number(fraction)),
        None => is_number(mantissa),
    };
    if !mantissa_fits || exponent.is_some_and(|e| !is_number(e)) {
        return PlainScalar::Text;
    }
    match text.parse::<f64>().ok().and_then(Number::from_f64) {
        Some(number) => PlainScalar::Number(number),
        None => PlainScalar::TooLarge,
    }
}

/// Describes how tools that read YAML 1.1 (PyYAML, Go's yaml.v2, kubectl) interpret a plain string.
pub(super) fn yaml11_meaning(text: &str) -> Option<&'static str> {
    let bytes = text.as_bytes();
    match bytes.first()? {
        b'y' | b'Y' | b'n' | b'N' | b'o' | b'O' if bytes.len() <= 3 => boolean(text).then_some("a boolean"),
        b'0'..=b'9' | b'+' | b'-' | b'.' => number_of_old(text),
        _ => None,
    }
}

/// Whether YAML 1.1 reads a key as a boolean; `n` and `y` are allowed, because they are common names, and `on`, because
/// it is a field of ours.
pub(super) fn misread_key(text: &str) -> bool {
    text.len() > 1 && text != "on" && boolean(text)
}

fn boolean(text: &str) -> bool {
    let words = ["y", "yes", "n", "no", "on", "off"];
    let cased = |word: &str| {
        let all = text == word || text == word.to_ascii_uppercase();
        all || (text[..1] == word[..1].to_ascii_uppercase() && text[1..] == word[1..])
    };
    text.is_ascii() && words.iter().any(|word| word.eq_ignore_ascii_case(text) && cased(word))
}

fn number_of_old(text: &str) -> Option<&'static str> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if is_date(text) {
        return Some("a date");
    }
    if digits.contains(':') {
        return is_base_60(digits).then_some("a number in base 60");
    }
    if let Some(bits) = digits.strip_prefix("0b") {
        let all = !bits.is_empty() && bits.bytes().all(|b| matches!(b, b'0' | b'1' | b'_'));
        return all.then_some("a binary number");
    }
    if !digits.contains('_') || !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let plain: String = text.chars().filter(|&c| c != '_').collect();
    (resolve(&plain) != PlainScalar::Text && !digits.ends_with('.')).then_some("a number without the `_`")
}

fn is_base_60(digits: &str) -> bool {
    let mut parts = digits.split(':');
    let first = parts.next().unwrap_or_default();
    // A sexagesimal integer does not begin with a zero; a float may.
    let zero = first.starts_with('0') && !digits.contains('.');
    let starts = !zero
        && first.starts_with(|c: char| c.is_ascii_digit())
        && first.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let sixty = |part: &str| matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']);
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        let fits = match part.split_once('.') {
            // Only the seconds may have a fraction.
            Some((whole, fraction)) if parts.peek().is_none() => {
                sixty(whole) && fraction.bytes().all(|b| b.is_ascii_digit() || b == b'_')
            }
            _ => sixty(part),
        };
        if !fits {
            return false;
        }
    }
    starts
}

/// `2026-11-20`, optionally with a time.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shape = |at: usize, b: u8| if at == 4 || at == 7 { b == b'-' } else { b.is_ascii_digit() };
    bytes.len() >= 10
        && bytes[..10].iter().enumerate().all(|(at, &b)| shape(at, b))
        && (bytes.len() == 10
            || (matches!(bytes[10], b'T' | b't' | b' ') && bytes.get(11).is_some_and(u8::is_ascii_digit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_schema_determines_the_type() {
        let number = |n: i64| PlainScalar::Number(n.into());
        let float = |f: f64| PlainScalar::Number(Number::from_f64(f).unwrap());
        for (text, expected) in [
            ("", PlainScalar::Null),
            ("~", PlainScalar::Null),
            ("NULL", PlainScalar::Null),
            ("nULL", PlainScalar::Text),
            ("True", PlainScalar::Bool(true)),
            ("yes", PlainScalar::Text),
            ("0", number(0)),
            ("+12", number(12)),
            ("-12", number(-12)),
            ("0o17", number(15)),
            ("0x1F", number(31)),
            ("-0x1F", PlainScalar::Text),
            ("0o8", PlainScalar::Text),
            ("0777", PlainScalar::LeadingZero),
            ("-007", PlainScalar::LeadingZero),
            ("18446744073709551615", PlainScalar::Number(u64::MAX.into())),
            ("18446744073709551616", PlainScalar::TooLarge),
            ("-9223372036854775809", PlainScalar::TooLarge),
            ("1e999", PlainScalar::TooLarge),
            ("3.10", float(3.1)),
            (".5", float(0.5)),
            ("5.", float(5.0)),
            ("1e3", float(1000.0)),
            ("-1.5E-3", float(-0.0015)),
            (".", PlainScalar::Text),
            ("-", PlainScalar::Text),
            ("+", PlainScalar::Text),
            ("1.2.3", PlainScalar::Text),
            ("1e", PlainScalar::Text),
            ("12h", PlainScalar::Text),
            ("-.inf", PlainScalar::NotFinite),
            (".NaN", PlainScalar::NotFinite),
            ("-.nan", PlainScalar::Text),
            ("inf", PlainScalar::Text),
            ("1_000", PlainScalar::Text),
            ("..", PlainScalar::Text),
        ] {
            assert_eq!(resolve(text), expected, "{text:?}");
        }
    }

    #[test]
    fn strings_that_yaml_1_1_reads_differently_are_known() {
        let misread_ones = "yes Yes YES no NO on On OFF off y N 1_000 -1_0 1_0.5 12:30 1:30:00 190:20:30.15 \
                            22:22 0b101 2026-11-20 2026-11-20T10:00:00Z";
        for text in misread_ones.split_whitespace() {
            assert!(yaml11_meaning(text).is_some(), "{text:?}");
        }
        let same = "yEs none one office 8080:80 12:90 01:30 12:30.. 127.0.0.1 12h 1-2 10.0.0.1:80 _1 1:a 2026-11 nvidia \
                    1_a 0o17 é yé";
        for text in same.split_whitespace() {
            assert_eq!(yaml11_meaning(text), None, "{text:?}");
        }
        assert!(misread_key("off") && !misread_key("on") && !misread_key("n"));
    }
}
