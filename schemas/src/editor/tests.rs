//! A type that has one of each, and what an editor reads about it.

use indexmap::IndexMap;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;

/// A host.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Machine {
    /// How fast.
    #[schemars(extend("default" = "slow", "examples" = ["fast"]))]
    speed: Speed,
    /// Use `speed` instead.
    #[deprecated]
    #[schemars(extend("examples" = [3]))]
    gear: u32,
    /// Names.
    names: IndexMap<String, String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Speed {
    /// With `care`.
    Slow,
    /// Without.
    Fast,
}

fn annotated() -> Schema {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Machine>();
    annotate(&mut schema, &|value| format!("{value}\n"));
    schema
}

#[test]
fn a_key_has_its_words_its_default_and_an_example() {
    let page = "How fast.\n\n* `slow`: With `care`.\n* `fast`: Without.\n\nDefault: `slow`\n\n\
                ```yaml\n{\"speed\":\"fast\"}\n```";
    assert_eq!(annotated().as_value()["properties"]["speed"]["markdownDescription"], page);
    assert_eq!(annotated().as_value()["properties"]["names"]["markdownDescription"], "Names.");
    assert_eq!(annotated().as_value()["$defs"]["Speed"]["oneOf"][0]["markdownDescription"], "With `care`.");
}

#[test]
fn a_deprecated_key_says_why_and_is_not_offered() {
    let schema = annotated();
    let gear = &schema.as_value()["properties"]["gear"];
    assert_eq!(gear["deprecationMessage"], "Use `speed` instead.");
    assert_eq!(gear["doNotSuggest"], json!(true));
    assert!(schema.as_value()["properties"]["speed"].get("deprecationMessage").is_none());
}
