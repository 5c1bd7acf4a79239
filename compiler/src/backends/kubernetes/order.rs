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

fn ordered_map(map: Map<String, Value>) -> Map<String, Value> {
    let rank = |key: &str| FIRST.iter().position(|first| *first == key).unwrap_or(FIRST.len());
    let mut entries: Vec<(usize, String, Value)> =
        map.into_iter().map(|(key, value)| (rank(&key), key, value)).collect();
    // The sort is stable: keys that are not among the first keep their order.
    entries.sort_by_key(|(rank, ..)| *rank);
    let theirs =
        |key: &str| matches!(key, "labels" | "annotations" | "data" | "matchLabels" | "nodeSelector");
    entries
        .into_iter()
        .map(|(_, key, value)| if theirs(&key) { (key, value) } else { (key, ordered(value)) })
        .collect()
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
