//! YAML as far as CDI files have it, as the JSON that it means.
//!
//! Their readers and writers are Go's, which read plain words as YAML 1.1 has them: `0666` is octal.

use granit_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

/// How deep collections may lie in each other; a CDI file has seven.
const MAX_DEPTH: usize = 32;

/// Reads a text of one document.
///
/// # Errors
///
/// What is wrong with it, with line and column.
pub(super) fn read(text: &str) -> Result<Value, String> {
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

/// What a word without quotes means.
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
        _ => Value::String(text.to_owned()),
    }
}
