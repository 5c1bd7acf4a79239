//! YAML of programs written in Go (CDI files, kubeconfigs, manifests), as the JSON that it means.
//!
//! They read plain scalars as in YAML 1.1: `0666` is octal.

use granit_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

/// The maximum nesting of collections; a CDI file has seven levels, a pod template in a JobSet about twenty.
const MAX_DEPTH: usize = 32;

/// Reads a text of one document.
///
/// # Errors
///
/// A syntax error, with line and column.
pub fn read(text: &str) -> Result<Value, String> {
    let mut open: Vec<OpenCollection> = Vec::new();
    let mut done = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| error.to_string())?;
        let at = |what: &str| format!("line {}: {what}", span.start.line());
        let value = match event {
            Event::Scalar(text, ScalarStyle::Plain, _, tag) if tag.is_none() => plain_scalar(&text),
            Event::Scalar(text, ..) => Value::String(text.into_owned()),
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() == MAX_DEPTH => {
                return Err(at("too deep"));
            }
            Event::SequenceStart(..) => {
                open.push(OpenCollection::List(Vec::new()));
                continue;
            }
            Event::MappingStart(..) => {
                open.push(OpenCollection::Map(Map::new(), None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(OpenCollection::List(list)) => Value::Array(list),
                Some(OpenCollection::Map(map, _)) => Value::Object(map),
                None => return Err(at("a collection ends that did not start")),
            },
            Event::Alias(..) | Event::UnresolvedAlias(..) => {
                return Err(at("aliases are not supported"));
            }
            Event::DocumentStart(..) if done.is_some() => return Err(at("more than one document")),
            _ => continue,
        };
        match open.last_mut() {
            None => done = Some(value),
            Some(OpenCollection::List(list)) => list.push(value),
            Some(OpenCollection::Map(map, key)) => match (key.take(), value) {
                (None, Value::String(text)) => *key = Some(text),
                // A number or a boolean as a name: `0:` is the name `0`.
                (None, value) if !value.is_array() && !value.is_object() => *key = Some(value.to_string()),
                (None, _) => return Err(at("a key is a collection")),
                (Some(name), value) => {
                    if map.insert(name.clone(), value).is_some() {
                        return Err(at(&format!("`{name}` is duplicated")));
                    }
                }
            },
        }
    }
    done.ok_or_else(|| "the file is empty".to_owned())
}

/// A collection whose end was not seen yet.
enum OpenCollection {
    List(Vec<Value>),
    /// With the key whose value comes next.
    Map(Map<String, Value>, Option<String>),
}

/// The value of a plain scalar.
fn plain_scalar(text: &str) -> Value {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let number = |digits: &str, radix| {
        let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        is_number.then(|| i64::from_str_radix(digits, radix).ok()).flatten().map(|number| number * sign)
    };
    let number = if let Some(digits) = digits.strip_prefix("0x") {
        number(digits, 16)
    } else if let Some(digits) = digits.strip_prefix("0o") {
        number(digits, 8)
    } else if let Some(digits) = digits.strip_prefix('0').filter(|rest| !rest.is_empty()) {
        number(digits, 8)
    } else {
        number(digits, 10)
    };
    match (text, number) {
        (_, Some(number)) => number.into(),
        ("" | "~" | "null" | "Null" | "NULL", _) => Value::Null,
        ("true" | "True" | "TRUE", _) => true.into(),
        ("false" | "False" | "FALSE", _) => false.into(),
        _ => float(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

/// A decimal fraction or a number with an exponent; `1.2.3` and `inf` are words.
fn float(text: &str) -> Option<Number> {
    let digits = text.trim_start_matches(['-', '+']);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.contains(['.', 'e', 'E'])
        && digits.contains(|c: char| c.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten().and_then(Number::from_f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_are_numbers_booleans_or_text() {
        let text = "{a: 1.5, b: -2e3, c: 1.2.3, d: 0666, e: 0x1f, f: yes, g: 'true', h: true, i: ~, j: .5, k: 1.24-rc}";
        let value = read(text).unwrap();
        let expected = serde_json::json!({
            "a": 1.5, "b": -2000.0, "c": "1.2.3", "d": 438, "e": 31, "f": "yes", "g": "true", "h": true, "i": null,
            "j": 0.5, "k": "1.24-rc",
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn broken_texts_are_refused() {
        for text in ["", "a: [", "a: 1\na: 2", "a: &x 1\nb: *x", "a: 1\n---\nb: 2"] {
            assert!(read(text).is_err(), "{text}");
        }
        let deep = "[".repeat(100) + &"]".repeat(100);
        assert!(read(&deep).unwrap_err().contains("too deep"));
    }
}
