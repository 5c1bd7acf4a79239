//! Values whose written form matters: `3.10` stays `3.10`.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// The key under which the compiler keeps a number's text on the way from a document to a typed job.
///
/// No file can hold it: the schema rejects keys that begin with `$` wherever a scalar may be.
pub const WRITTEN_KEY: &str = "$written";

/// A string, number or bool together with the text it was written as.
#[derive(Clone, Debug, PartialEq)]
pub struct Scalar {
    /// The value.
    pub value: Value,
    /// As written; expressions and environment variables use this form.
    pub text: String,
}

impl Scalar {
    /// A string.
    pub fn string(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { value: Value::String(text.clone()), text }
    }

    /// The name of its type, as `type:` of a parameter spells it.
    pub fn kind(&self) -> ScalarKind {
        match &self.value {
            Value::Bool(_) => ScalarKind::Bool,
            Value::Number(n) if n.is_f64() => ScalarKind::Number,
            Value::Number(_) => ScalarKind::Integer,
            _ => ScalarKind::String,
        }
    }
}

/// Type of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ScalarKind {
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// `true` or `false`.
    Bool,
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if let Value::Object(map) = &value
            && let (Some(Value::String(text)), Some(inner)) = (map.get(WRITTEN_KEY), map.get("value"))
        {
            return Ok(Self { value: inner.clone(), text: text.clone() });
        }
        let text = match &value {
            Value::String(text) => text.clone(),
            Value::Array(_) | Value::Object(_) | Value::Null => {
                return Err(serde::de::Error::custom("expected a string, a number or a bool"));
            }
            other => other.to_string(),
        };
        Ok(Self { value, text })
    }
}

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl JsonSchema for Scalar {
    fn schema_name() -> Cow<'static, str> {
        "Scalar".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A string, a number or a bool.",
            "type": ["string", "number", "boolean"]
        })
    }
}

/// The value of an environment variable: a string, a number kept as written, or null, which removes the variable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EnvValue(pub Option<Scalar>);

impl JsonSchema for EnvValue {
    fn schema_name() -> Cow<'static, str> {
        "EnvValue".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A string, or a number that keeps its spelling (3.10 stays 3.10); null removes the variable. A bool must be quoted.",
            "type": ["string", "number", "null"],
            "examples": ["info", 8, "${{ secrets.wandb }}"]
        })
    }
}
