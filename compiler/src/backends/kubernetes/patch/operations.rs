//! JSON Patch (RFC 6902) on one object. Removed keys keep the order of the others, which crates for it do not promise.

use jobc_schema::pointer::{Pointer, unescape};
use jobc_schema::target::{PatchOperation, PatchVerb};
use serde_json::Value;

/// Why an operation cannot be applied.
type Failure = String;

/// Applies operations one after another; returns the places that they have changed.
///
/// # Errors
/// The number of the first operation that matches nothing, and why.
pub(super) fn apply(
    target: &mut Value,
    operations: &[PatchOperation],
) -> Result<Vec<Pointer>, (usize, Failure)> {
    let mut changed = Vec::new();
    for (number, operation) in operations.iter().enumerate() {
        changed.extend(apply_one(target, operation).map_err(|why| (number, why))?);
    }
    Ok(changed)
}

fn apply_one(target: &mut Value, operation: &PatchOperation) -> Result<Option<Pointer>, Failure> {
    let path = operation.path.as_str();
    let value = || operation.value.clone().ok_or_else(|| "it has no `value`".to_owned());
    let from = || operation.from.as_deref().ok_or_else(|| "it has no `from`".to_owned());
    match operation.op {
        PatchVerb::Add => add(target, path, value()?).map(Some),
        PatchVerb::Remove => remove(target, path).map(|_| None),
        PatchVerb::Replace => {
            *find(target, path)? = value()?;
            Ok(Some(pointer(path)))
        }
        PatchVerb::Move => {
            let moved = remove(target, from()?)?;
            add(target, path, moved).map(Some)
        }
        PatchVerb::Copy => {
            let copied = find(target, from()?)?.clone();
            add(target, path, copied).map(Some)
        }
        PatchVerb::Test => {
            let (found, expected) = (find(target, path)?, value()?);
            if *found == expected { Ok(None) } else { Err(format!("`{path}` is {found}, not {expected}")) }
        }
    }
}

fn find<'v>(target: &'v mut Value, path: &str) -> Result<&'v mut Value, Failure> {
    target.pointer_mut(path).ok_or_else(|| format!("`{path}` does not exist"))
}

/// The parent value of a path, and the last part of the path.
fn parent<'v>(target: &'v mut Value, path: &str) -> Result<(&'v mut Value, String), Failure> {
    let Some((above, last)) = path.rsplit_once('/') else {
        return Err("the whole object cannot be replaced or removed".to_owned());
    };
    Ok((find(target, above)?, unescape(last)))
}

/// Adds a value; returns its place.
fn add(target: &mut Value, path: &str, value: Value) -> Result<Pointer, Failure> {
    let (above, last) = parent(target, path)?;
    match above {
        Value::Object(map) => {
            map.insert(last, value);
            Ok(pointer(path))
        }
        Value::Array(items) => {
            let at = if last == "-" { items.len() } else { index(&last, items.len())? };
            items.insert(at, value);
            Ok(pointer(path.rsplit_once('/').map_or("", |(above, _)| above)).index(at))
        }
        _ => Err(format!("what is above `{path}` is not a map or list")),
    }
}

fn remove(target: &mut Value, path: &str) -> Result<Value, Failure> {
    let (above, last) = parent(target, path)?;
    let removed = match above {
        Value::Object(map) => map.shift_remove(&last),
        Value::Array(items) => match index(&last, items.len())? {
            at if at < items.len() => Some(items.remove(at)),
            _ => None,
        },
        _ => None,
    };
    removed.ok_or_else(|| format!("`{path}` does not exist"))
}

/// A place in a list, of which one after the last is the end.
fn index(text: &str, length: usize) -> Result<usize, Failure> {
    let is_number = text == "0" || !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    let at = if is_number { text.parse().ok() } else { None };
    at.filter(|at| *at <= length).ok_or_else(|| format!("`{text}` is not an index of a list of {length}"))
}

fn pointer(path: &str) -> Pointer {
    Pointer::ROOT.keys(Pointer::new(path).segments())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The patched value, or the reason for the failure.
    fn check(mut target: Value, operations: Value, expected: Result<Value, &str>) {
        let shown = operations.to_string();
        let operations: Vec<PatchOperation> = serde_json::from_value(operations).unwrap();
        let result = apply(&mut target, &operations).map(|_| target).map_err(|(_, why)| why);
        assert_eq!(result, expected.map_err(str::to_owned), "{shown}");
    }

    #[test]
    fn the_examples_of_the_specification() {
        // RFC 6902, appendix A.
        check(
            json!({"foo": "bar"}),
            json!([{"op": "add", "path": "/baz", "value": "qux"}]),
            Ok(json!({"foo": "bar", "baz": "qux"})),
        );
        check(
            json!({"foo": ["bar", "baz"]}),
            json!([{"op": "add", "path": "/foo/1", "value": "qux"}]),
            Ok(json!({"foo": ["bar", "qux", "baz"]})),
        );
        check(
            json!({"baz": "qux", "foo": "bar"}),
            json!([{"op": "remove", "path": "/baz"}]),
            Ok(json!({"foo": "bar"})),
        );
        check(
            json!({"foo": ["bar", "qux", "baz"]}),
            json!([{"op": "remove", "path": "/foo/1"}]),
            Ok(json!({"foo": ["bar", "baz"]})),
        );
        check(
            json!({"baz": "qux"}),
            json!([{"op": "replace", "path": "/baz", "value": "boo"}]),
            Ok(json!({"baz": "boo"})),
        );
        check(
            json!({"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}}),
            json!([{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}]),
            Ok(json!({"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}})),
        );
        check(
            json!({"foo": ["all", "grass", "cows", "eat"]}),
            json!([{"op": "move", "from": "/foo/1", "path": "/foo/3"}]),
            Ok(json!({"foo": ["all", "cows", "eat", "grass"]})),
        );
        check(
            json!({"baz": "qux"}),
            json!([{"op": "test", "path": "/baz", "value": "bar"}]),
            Err("`/baz` is \"qux\", not \"bar\""),
        );
        check(
            json!({"/": 9, "~1": 10}),
            json!([{"op": "test", "path": "/~01", "value": 10}]),
            Ok(json!({"/": 9, "~1": 10})),
        );
        check(
            json!({"foo": ["bar"]}),
            json!([{"op": "add", "path": "/foo/-", "value": ["abc"]}]),
            Ok(json!({"foo": ["bar", ["abc"]]})),
        );
        check(
            json!({"a": [1]}),
            json!([{"op": "copy", "from": "/a", "path": "/b"}]),
            Ok(json!({"a": [1], "b": [1]})),
        );
    }

    #[test]
    fn operations_that_match_nothing_are_rejected() {
        check(
            json!({"foo": "bar"}),
            json!([{"op": "add", "path": "/baz/bat", "value": 1}]),
            Err("`/baz` does not exist"),
        );
        check(json!({"a": []}), json!([{"op": "remove", "path": "/a/0"}]), Err("`/a/0` does not exist"));
        check(
            json!({"a": []}),
            json!([{"op": "add", "path": "/a/1", "value": 1}]),
            Err("`1` is not an index of a list of 0"),
        );
        check(
            json!({"a": [1, 2]}),
            json!([{"op": "add", "path": "/a/01", "value": 1}]),
            Err("`01` is not an index of a list of 2"),
        );
        check(
            json!({"a": 1}),
            json!([{"op": "add", "path": "/a/b", "value": 1}]),
            Err("what is above `/a/b` is not a map or list"),
        );
        check(json!({"a": 1}), json!([{"op": "replace", "path": "/a"}]), Err("it has no `value`"));
        check(json!({"a": 1}), json!([{"op": "move", "path": "/a"}]), Err("it has no `from`"));
        check(
            json!({"a": 1}),
            json!([{"op": "remove", "path": ""}]),
            Err("the whole object cannot be replaced or removed"),
        );
    }

    #[test]
    fn the_order_of_keys_stays() {
        let mut target = json!({"a": 1, "b": 2, "c": 3});
        let operations: Vec<PatchOperation> =
            serde_json::from_value(json!([{"op": "remove", "path": "/a"}])).unwrap();
        assert_eq!(apply(&mut target, &operations), Ok(vec![]));
        assert_eq!(target.to_string(), "{\"b\":2,\"c\":3}");
    }
}
