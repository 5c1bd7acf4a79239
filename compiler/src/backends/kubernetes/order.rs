//! Values as people who know Kubernetes expect to read them.

use serde_json::{Map, Value};

/// The keys that come first in any object, in this order; the others keep theirs, which is alphabetical.
const FIRST: [&str; 12] = [
    "apiVersion",
    "kind",
    "metadata",
    "name",
    "namespace",
    "image",
    "command",
    "args",
    "workingDir",
    "env",
    "ports",
    "resources",
];

/// Puts the keys that name a thing before those that describe it.
///
/// What users name themselves (labels, data of a ConfigMap) is left in alphabetical order.
pub(super) fn ordered(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(ordered_map(map)),
        Value::Array(items) => Value::Array(items.into_iter().map(ordered).collect()),
        other => other,
    }
}

fn ordered_map(mut map: Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::with_capacity(map.len());
    for key in FIRST {
        if let Some(value) = map.shift_remove(key) {
            out.insert(key.to_owned(), value);
        }
    }
    out.extend(map);
    for (key, value) in &mut out {
        if !matches!(key.as_str(), "labels" | "annotations" | "data" | "matchLabels" | "nodeSelector") {
            *value = ordered(value.take());
        }
    }
    out
}

/// The first key of a value that another does not have; how an unknown field is found after it was read as a type.
pub(super) fn lost_key(before: &Value, after: &Value) -> Option<String> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => before.iter().find_map(|(key, value)| {
            if value.is_null() {
                return None;
            }
            after.get(key).map_or_else(|| Some(key.clone()), |kept| lost_key(value, kept))
        }),
        (Value::Array(before), Value::Array(after)) => {
            before.iter().zip(after).find_map(|(before, after)| lost_key(before, after))
        }
        _ => None,
    }
}
