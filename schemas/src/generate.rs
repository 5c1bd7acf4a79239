//! Makes the JSON Schemas from the types; `cargo run -p jobc-tests --bin schemas` writes them.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use crate::editor;
use crate::exchange::PluginExchange;
use crate::forms::ForbidNull;
use crate::job::Job;
use crate::plan::Plan;
use crate::target::Targets;

/// The schemas with their file names, as pretty JSON with a final newline.
///
/// `yaml` writes a value as a YAML document; the examples that editors show come from it.
pub fn schemas(yaml: &dyn Fn(&Value) -> String) -> [(&'static str, String); 4] {
    [
        ("job.v1.schema.json", render_schema::<Job>("job.v1.schema.json", yaml)),
        ("targets.v1.schema.json", render_schema::<Targets>("targets.v1.schema.json", yaml)),
        ("plan.v1.schema.json", render(schema_of::<Plan>(), "plan.v1.schema.json")),
        ("plugin.v1.schema.json", render(schema_of::<PluginExchange>(), "plugin.v1.schema.json")),
    ]
}

/// The schema of a file that people write, with what their editors read.
fn render_schema<T: JsonSchema>(name: &str, yaml: &dyn Fn(&Value) -> String) -> String {
    let mut schema = schema_of::<T>();
    editor::annotate(&mut schema, yaml);
    render(schema, name)
}

fn schema_of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().with_transform(ForbidNull).into_generator().into_root_schema_for::<T>()
}

/// A schema as a file: pretty JSON with its name and a final newline.
pub fn render(mut schema: Schema, name: &str) -> String {
    // Relative, so that it names this file wherever it is. A release makes it absolute (`site`).
    schema.insert("$id".to_owned(), Value::String(name.to_owned()));
    let mut text = serde_json::to_string_pretty(schema.as_value()).expect("a schema is plain JSON");
    text.push('\n');
    text
}
