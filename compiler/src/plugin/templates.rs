//! Template plug-ins: `backend.yaml`, and templates in the language of expressions.

use std::collections::BTreeMap;

use jobc_schema::exchange::{CONTRACT, PluginAnswer, PluginFile, PluginManifest, PluginScope};
use jobc_schema::plan::JobPlan;
use jobc_schema::shell;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value as EngineValue, context};
use serde_json::{Map, Value};

use super::PluginError;

/// The maximum number of steps of one template, which ends endless loops.
const FUEL: u64 = 10_000_000;
/// The maximum size of a generated file in bytes.
const MAX_FILE_BYTES: usize = 16 << 20;

/// The texts of templates by name.
#[derive(Clone, Debug, Default)]
pub struct TemplateSet(pub BTreeMap<String, String>);

impl TemplateSet {
    /// Renders all files of a job.
    pub(super) fn render(
        &self,
        manifest: &PluginManifest,
        job: &JobPlan,
        settings: &Map<String, Value>,
        to_job: &str,
    ) -> Result<PluginAnswer, PluginError> {
        let engine = self.engine()?;
        let plan = serde_json::to_value(job).map_err(|error| error.to_string())?;
        let roles = plan.get("roles").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut answer = PluginAnswer { contract: CONTRACT, ..PluginAnswer::default() };
        for entry in &manifest.templates {
            let each: Vec<Option<&Value>> = match entry.each {
                PluginScope::Job => vec![None],
                PluginScope::Role => roles.iter().map(Some).collect(),
            };
            for role in each {
                let values = context! { plan => Serde(&plan), settings => Serde(settings), role => Serde(role), to_job => to_job };
                let path = engine
                    .render_str(&entry.path, &values)
                    .map_err(|error| shown(&format!("path of `{}`", entry.template), &error))?;
                let text = engine
                    .get_template(&entry.template)
                    .and_then(|template| template.render(&values))
                    .map_err(|error| shown(&format!("template `{}`", entry.template), &error))?;
                if text.len() > MAX_FILE_BYTES {
                    return Err(format!("`{path}` has more than {MAX_FILE_BYTES} bytes").into());
                }
                answer.files.push(PluginFile {
                    path,
                    executable: entry.executable,
                    text: Some(text),
                    ..PluginFile::default()
                });
            }
        }
        Ok(answer)
    }

    fn engine(&self) -> Result<Environment<'_>, PluginError> {
        let mut engine = Environment::new();
        engine.set_undefined_behavior(UndefinedBehavior::Strict);
        engine.set_fuel(Some(FUEL));
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .keep_trailing_newline(true)
            .build()
            .map_err(|error| error.to_string())?;
        engine.set_syntax(syntax);
        // JSON is YAML: it can represent every value.
        engine.add_filter("tojson", |value: EngineValue| {
            serde_json::to_string(&value).map_err(|error| {
                minijinja::Error::new(minijinja::ErrorKind::BadSerialization, error.to_string())
            })
        });
        engine.add_filter("shell", |text: String| shell::quote(&text));
        for (name, text) in &self.0 {
            engine.add_template(name, text).map_err(|error| shown(&format!("template `{name}`"), &error))?;
        }
        Ok(engine)
    }
}

fn shown(what: &str, error: &minijinja::Error) -> String {
    let line = error.line().map_or(String::new(), |line| format!(", line {line}"));
    let mut text = format!("{what}{line}: {}", error.kind());
    if let Some(detail) = error.detail() {
        text += &format!(": {detail}");
    }
    text
}
