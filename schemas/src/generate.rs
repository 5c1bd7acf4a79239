//! Makes the JSON Schemas from the types; `cargo run -p jobc-tests --bin schemas` writes them.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use crate::forms::ForbidNull;

/// The published addresses of the schemas begin with this.
const BASE: &str = "https://jobc.dev/schemas/";

/// The three schemas with their file names, as pretty JSON with a final newline.
pub fn schemas() -> [(&'static str, String); 3] {
    [
        ("job.v1.schema.json", render::<crate::Job>("job.v1.schema.json")),
        ("targets.v1.schema.json", render::<crate::Targets>("targets.v1.schema.json")),
        ("plan.v1.schema.json", render::<crate::Plan>("plan.v1.schema.json")),
    ]
}

fn render<T: JsonSchema>(name: &str) -> String {
    let settings = SchemaSettings::draft2020_12().with_transform(ForbidNull);
    let mut schema: Schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("$id".to_owned(), Value::String(format!("{BASE}{name}")));
    let mut text = serde_json::to_string_pretty(schema.as_value()).expect("a schema is plain JSON");
    text.push('\n');
    text
}
