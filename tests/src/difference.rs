//! What a value has that another does not have. A snapshot of it leaves out the defaults that both have, so that a
//! changed default does not change the snapshot.

use serde_json::{Map, Value};

/// The parts of `value` that are not in `base`; none if the two are equal.
///
/// What only `base` has is `(absent)`. The items of a list are compared by their `mountPath`, `destination`, `name` or
/// `path`, and keep it; a list whose items have none of them is compared as a whole.
pub fn difference(value: &Value, base: &Value) -> Option<Value> {
    match (value, base) {
        _ if value == base => None,
        (Value::Object(value), Value::Object(base)) => Some(Value::Object(fields(value, base))),
        (Value::Array(items), Value::Array(bases)) if is_keyed(items) && is_keyed(bases) => {
            let changed =
                items.iter().filter_map(|item| match bases.iter().find(|base| key(base) == key(item)) {
                    Some(base) => difference(item, base).map(|changed| with_key(item, changed)),
                    None => Some(item.clone()),
                });
            let gone = bases.iter().filter(|base| !items.iter().any(|item| key(item) == key(base)));
            let gone = gone.filter_map(|base| Some(format!("{} (absent)", key(base)?.1).into()));
            Some(changed.chain(gone).collect())
        }
        _ => Some(value.clone()),
    }
}

/// The role of a pod or of a template of pods; none for other values.
pub fn role_of_pod(value: &Value) -> Option<&str> {
    value["spec"]["containers"].as_array().and(value["metadata"]["labels"]["jobc.dev/role"].as_str())
}

/// Replaces each pod below a value by its difference from `base` of its role, where there is one.
pub fn shorten_pods(value: &mut Value, base: &dyn Fn(&str) -> Option<Value>) {
    if let Some(base) = role_of_pod(value).and_then(base) {
        *value = difference(value, &base).unwrap_or_else(|| Value::Object(Map::new()));
        return;
    }
    match value {
        Value::Object(map) => map.values_mut().for_each(|value| shorten_pods(value, base)),
        Value::Array(items) => items.iter_mut().for_each(|value| shorten_pods(value, base)),
        _ => {}
    }
}

fn fields(value: &Map<String, Value>, base: &Map<String, Value>) -> Map<String, Value> {
    let changed = value.iter().filter_map(|(key, value)| match base.get(key) {
        Some(base) => Some((key.clone(), difference(value, base)?)),
        None => Some((key.clone(), value.clone())),
    });
    let gone = base.keys().filter(|key| !value.contains_key(*key));
    changed.chain(gone.map(|key| (key.clone(), "(absent)".into()))).collect()
}

fn key(item: &Value) -> Option<(&'static str, &str)> {
    ["mountPath", "destination", "name", "path"]
        .into_iter()
        .find_map(|key| Some((key, item.get(key)?.as_str()?)))
}

fn is_keyed(items: &[Value]) -> bool {
    items
        .iter()
        .enumerate()
        .all(|(i, item)| key(item).is_some() && !items[..i].iter().any(|other| key(other) == key(item)))
}

fn with_key(item: &Value, changed: Value) -> Value {
    let Value::Object(changed) = changed else { return changed };
    let kept = key(item).map(|(key, value)| (key.to_owned(), value.into()));
    Value::Object(kept.into_iter().chain(changed).collect())
}
