//! Small schema forms that several types share.

use schemars::transform::{Transform, transform_subschemas};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// A string that is one whole expression; integers may be filled by one.
///
/// ASCII is all an expression here can hold, and compiles to an automaton a tenth the size of `.`: every start of
/// `jobc` pays for the patterns that apply to its file.
const WHOLE_EXPRESSION: &str = r"^\$\{\{[ -~]*\}\}$";

/// An integer of at least 0, or one whole expression.
pub(crate) fn count(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["integer", "string"], "minimum": 0, "maximum": 2_147_483_647, "pattern": WHOLE_EXPRESSION})
}

/// An integer of at least 1, or one whole expression.
pub(crate) fn positive(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["integer", "string"], "minimum": 1, "maximum": 2_147_483_647, "pattern": WHOLE_EXPRESSION})
}

/// A TCP port, or one whole expression.
pub(crate) fn port(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["integer", "string"], "minimum": 1, "maximum": 65535, "pattern": WHOLE_EXPRESSION})
}

/// A percentage from 1 to 100, or one whole expression.
pub(crate) fn percent(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["integer", "string"], "minimum": 1, "maximum": 100, "pattern": WHOLE_EXPRESSION})
}

/// Takes the `null` out that schemars adds for `Option`: an empty value means nothing in a job file.
///
/// The one place where null has a meaning, [`crate::EnvValue`], spells its types out next to `examples`.
#[derive(Clone, Debug)]
pub(crate) struct ForbidNull;

impl Transform for ForbidNull {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else { return };
        if object.get("description").and_then(Value::as_str).is_some_and(|d| d.contains("null removes")) {
            return;
        }
        if let Some(Value::Array(types)) = object.get_mut("type") {
            types.retain(|t| t != "null");
            if let [only] = &types[..] {
                object["type"] = only.clone();
            }
        }
        if let Some(Value::Array(branches)) = object.get_mut("anyOf") {
            branches.retain(|b| b != &json!({"type": "null"}));
            if branches.len() == 1 {
                let only = branches.remove(0);
                object.remove("anyOf");
                if let Value::Object(only) = only {
                    for (key, value) in only {
                        object.entry(key).or_insert(value);
                    }
                }
            }
        }
        // `default: null` has no meaning.
        if object.get("default").is_some_and(Value::is_null) {
            object.remove("default");
        }
    }
}
