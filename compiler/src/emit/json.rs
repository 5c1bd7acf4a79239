//! JSON as people read it.

use serde_json::Value;

/// Writes a value as JSON with two spaces of indentation and a line end, keys in the order of the value.
pub fn to_json(value: &Value) -> String {
    let mut text = format!("{value:#}");
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
