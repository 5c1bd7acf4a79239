//! Converts a valid document to a typed value; numbers keep their text where it matters.

use jobc_schema::Pointer;
use jobc_schema::scalar::WRITTEN_KEY;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value as Json, json};
use serde_path_to_error::{Path, Segment};

use crate::diagnostic::{Diagnostic, DocumentId, Location, Sink, codes};
use crate::document::{Document, Node, Part, Value};

use super::place;

/// How a number is converted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberForm {
    /// It becomes a [`jobc_schema::Scalar`] with its text.
    WithText,
    /// It is not changed.
    AsIs,
    /// It is a number of our schema: `4.0` is the integer 4, as in JSON Schema.
    Plain,
}

/// Deserializes a type from a document.
pub(super) fn deserialize_node<T: DeserializeOwned>(
    document: &Document,
    id: DocumentId,
    kept: fn(&[&str]) -> NumberForm,
    sink: &mut Sink,
) -> Option<T> {
    let mut json = Map::new();
    let own = |key: &str| key.starts_with("x-") || key == "$schema";
    for entry in document.root.entries().iter().filter(|entry| !own(&entry.key)) {
        json.insert(entry.key.clone(), value(&entry.value, &mut vec![&entry.key], kept));
    }
    match serde_path_to_error::deserialize(Json::Object(json)) {
        Ok(typed) => Some(typed),
        // An expression that could not be substituted was reported at its place.
        Err(_) if sink.has_errors() => None,
        Err(error) => {
            // The schema and the rules should have reported this: an error here reveals a gap in them.
            let pointer = pointer(error.path());
            let subject = place::subject(&place::segments(&pointer));
            let place = Location::Path { document: id, pointer, part: Part::Value };
            let message = format!("{subject} cannot be read: {}", error.inner());
            let diagnostic = Diagnostic::error(codes::WRONG_KIND, message).at_place(place, "");
            sink.push(diagnostic.note("the schema allows this, so this is a bug in jobc; please report it"));
            None
        }
    }
}

/// Fields of a job whose numbers keep their text.
pub(super) fn keeps_text(path: &[&str]) -> NumberForm {
    if let ["openpai", ..] = path {
        return keeps_all(path);
    }
    let kept = match path {
        ["env" | "with" | "params", _]
        | ["params", _, "default"]
        | ["params", _, "default", "default"]
        | ["params", _, "choices", _]
        | ["roles", _, "env" | "with", _] => true,
        ["matrix", rest @ ..] | ["roles", _, "matrix", rest @ ..] => rest != ["max_parallel"],
        ["image", rest @ ..] | ["images", _, rest @ ..] | ["roles", _, "image", rest @ ..] => {
            matches!(rest, ["env" | "args", _] | ["steps", _, "env", _])
        }
        _ => false,
    };
    if kept { NumberForm::WithText } else { NumberForm::Plain }
}

/// Fields of `targets.yaml` whose numbers are not changed: values passed on to Kubernetes or OpenPAI.
pub(super) fn keeps_all(path: &[&str]) -> NumberForm {
    let handed_on = ["patches", "plugins", "protocol", "tolerations", "affinity"];
    if path.iter().any(|key| handed_on.contains(key)) { NumberForm::AsIs } else { NumberForm::Plain }
}

fn value<'a>(node: &'a Node, path: &mut Vec<&'a str>, kept: fn(&[&str]) -> NumberForm) -> Json {
    match &node.value {
        Value::Number { number, text } => match kept(path) {
            NumberForm::WithText if number.to_string() != *text => {
                json!({WRITTEN_KEY: text, "value": number})
            }
            NumberForm::WithText | NumberForm::AsIs => Json::Number(number.clone()),
            NumberForm::Plain => Json::Number(whole(number).unwrap_or_else(|| number.clone())),
        },
        Value::Sequence(items) => {
            path.push("0");
            let items = items.iter().map(|item| value(item, path, kept)).collect();
            path.pop();
            Json::Array(items)
        }
        Value::Mapping(entries) => {
            let mut map = Map::new();
            for entry in entries {
                path.push(&entry.key);
                map.insert(entry.key.clone(), value(&entry.value, path, kept));
                path.pop();
            }
            Json::Object(map)
        }
        _ => node.to_json(),
    }
}

/// Converts `4.0` to 4.
fn whole(number: &Number) -> Option<Number> {
    // Beyond 2^53 a float no longer identifies an integer.
    let float = number.as_f64().filter(|_| number.is_f64())?;
    let exact = float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0;
    #[allow(clippy::cast_possible_truncation, reason = "checked on the line above")]
    exact.then(|| Number::from(float as i64))
}

fn pointer(path: &Path) -> Pointer {
    path.iter().fold(Pointer::ROOT, |at, segment| match segment {
        Segment::Seq { index } => at.index(*index),
        Segment::Map { key } => at.key(key),
        Segment::Enum { .. } | Segment::Unknown => at,
    })
}
