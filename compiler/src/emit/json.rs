//! JSON as people read it.

use serde::Serialize;

/// Writes a value as JSON with two spaces of indentation and a line end, keys in the order of the value.
///
/// # Panics
/// If the value is not plain JSON: a map with keys that are no strings.
pub fn to_json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("artifacts are plain JSON");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::to_json;

    #[test]
    fn keys_stay_in_order() {
        let value = json!({"b": [1, 2.5, "é\n"], "a": {}, "c": []});
        let text = to_json(&value);
        assert_eq!(
            text,
            "{\n  \"b\": [\n    1,\n    2.5,\n    \"é\\n\"\n  ],\n  \"a\": {},\n  \"c\": []\n}\n"
        );
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
