//! Orders keys as Kubernetes users expect to read them.

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
pub(super) fn ordered(mut value: Value) -> Value {
    order(&mut value);
    value
}

fn order(value: &mut Value) {
    match value {
        Value::Object(map) => order_map(map),
        Value::Array(items) => items.iter_mut().for_each(order),
        _ => {}
    }
}

fn order_map(map: &mut Map<String, Value>) {
    let rank = |key: &str| FIRST.iter().position(|first| *first == key).unwrap_or(FIRST.len());
    // Most maps are already in order, and checking is faster than rebuilding.
    if !map.keys().is_sorted_by_key(|key| rank(key)) {
        let mut entries: Vec<(String, Value)> = std::mem::take(map).into_iter().collect();
        entries.sort_by_key(|(key, _)| rank(key));
        *map = entries.into_iter().collect();
    }
    for (key, value) in map {
        if !matches!(key.as_str(), "labels" | "annotations" | "data" | "matchLabels" | "nodeSelector") {
            order(value);
        }
    }
}

/// The first key of a value that another does not have; used to find unknown fields after deserialization.
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
