//! A sweep over values: `matrix` of a job or a role.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::forms;
use crate::scalar::Scalar;

/// Axes of a parameter sweep: a map of lists, or `axes` with more rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Matrix {
    /// Axes with more rules.
    Rules(MatrixRules),
    /// Axes alone.
    Axes(IndexMap<String, Vec<Scalar>>),
}

impl JsonSchema for Matrix {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Matrix".into()
    }

    /// The two forms are both maps, so they share one schema: the rules' keys, and any other key as an axis.
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = MatrixRules::json_schema(generator);
        let axis = generator.subschema_for::<Vec<Scalar>>();
        schema.insert("additionalProperties".to_owned(), axis.to_value());
        schema.insert("propertyNames".to_owned(), serde_json::json!({"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}));
        schema.remove("required");
        let text = "Axes of a parameter sweep: a map of lists, or `axes` with more rules.";
        schema.insert("description".to_owned(), text.into());
        schema
    }
}

/// Axes with more rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatrixRules {
    /// Values of each axis.
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}, "examples" = [{"lr": [0.1, 0.01], "model": ["resnet18", "resnet50"]}]))]
    pub axes: IndexMap<String, Vec<Scalar>>,
    /// Combinations added to the product of the axes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [[{"lr": 0.5, "model": "resnet18"}]]))]
    pub include: Vec<IndexMap<String, Scalar>>,
    /// Combinations to leave out: those that match all given values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [[{"lr": 0.1, "model": "resnet50"}]]))]
    pub exclude: Vec<IndexMap<String, Scalar>>,
    /// Maximum number of combinations that run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::positive", extend("examples" = [2]))]
    pub max_parallel: Option<u32>,
}

/// The key of a combination: its values by axis, regardless of order and spelling. `0.10` is `0.1`.
pub fn combination_key(values: &IndexMap<String, Scalar>) -> String {
    let mut parts: Vec<(&str, String)> =
        values.iter().map(|(axis, value)| (axis.as_str(), value_key(value))).collect();
    parts.sort();
    serde_json::to_string(&parts).unwrap_or_default()
}

/// One text for all spellings of a value.
fn value_key(value: &Scalar) -> String {
    match value.value.as_f64() {
        Some(number) => format!("number {number}"),
        None => value.value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_combination_is_known_by_its_values() {
        let key = |text: &str| combination_key(&serde_json::from_str(text).unwrap());
        assert_eq!(key(r#"{"lr": 0.10, "model": "a"}"#), key(r#"{"model": "a", "lr": 1e-1}"#));
        assert_eq!(key(r#"{"n": 1}"#), key(r#"{"n": 1.0}"#));
        for other in [r#"{"lr": 0.1}"#, r#"{"lr": "0.1", "model": "a"}"#, r#"{"lr": 0.1, "model": "a,b"}"#] {
            assert_ne!(key(r#"{"lr": 0.1, "model": "a"}"#), key(other), "{other}");
        }
        assert_ne!(key(r#"{"on": true}"#), key(r#"{"on": "true"}"#));
    }
}
