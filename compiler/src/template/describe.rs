//! The description of a template: for `jobc std`, the documentation and editors.

use jobc_schema::scalar::ScalarKind;
use serde_json::{Value as Json, json};

use super::read::{Kind, Parameter, Template};
use crate::diagnostic::Sink;
use crate::document::Node;
use crate::parse::parse;
use crate::source::{Source, Sources};

/// A template without its body.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// What it is used on: `job` or `role`.
    pub kind: &'static str,
    /// One line.
    pub description: String,
    /// The comment at the start of the file, in Markdown; empty if there is none.
    pub notes: String,
    /// Its parameters, in source order.
    pub params: Vec<ParameterDescription>,
}

/// A parameter of a template.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterDescription {
    /// Its name.
    pub name: String,
    /// Its type, if it has one.
    pub kind: Option<ScalarKind>,
    /// Its default as written; a parameter without one is required.
    pub default: Option<String>,
    /// The default with its type.
    pub default_value: Option<Json>,
    /// The allowed values, if there are few.
    pub choices: Vec<Json>,
    /// The minimum of a number.
    pub min: Option<f64>,
    /// The maximum of a number.
    pub max: Option<f64>,
    /// Its description; may be empty.
    pub description: String,
}

/// Extracts the description of a template; `None` for a text that is not a template, or has errors.
pub fn describe(text: &str) -> Option<Description> {
    let mut sources = Sources::new();
    let id = sources.add(Source::new("template.yaml", text));
    let mut sink = Sink::new();
    let root = parse(&sources, id, &mut sink)?.root;
    let template = Template::read(&root, &mut sink)?;
    Some(Description {
        kind: if template.kind == Kind::Job { "job" } else { "role" },
        description: root.get("description").and_then(Node::as_str).unwrap_or_default().to_owned(),
        notes: notes(text),
        params: template.params.into_iter().map(ParameterDescription::of).collect(),
    })
}

/// The lines of the comment at the start of a file, without a modeline.
fn notes(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix('#'));
    let lines = lines.map(|line| line.strip_prefix(' ').unwrap_or(line));
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with("yaml-language-server:")).collect();
    lines.join("\n").trim().to_owned()
}

impl ParameterDescription {
    fn of(param: Parameter) -> Self {
        let scalar = param.default.as_ref().and_then(Node::to_scalar);
        Self {
            name: param.name,
            kind: param.kind,
            default: scalar.map(|scalar| scalar.text),
            default_value: param.default.as_ref().map(Node::to_json),
            choices: param.rules.choices.iter().map(|choice| choice.value.clone()).collect(),
            min: param.rules.min,
            max: param.rules.max,
            description: param.rules.description.unwrap_or_default(),
        }
    }

    /// Its type as a word; empty if it has none.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            Some(ScalarKind::String) => "string",
            Some(ScalarKind::Integer) => "integer",
            Some(ScalarKind::Number) => "number",
            Some(ScalarKind::Bool) => "bool",
            None => "",
        }
    }

    /// Its type and constraints in words: `integer, 1 to 65535`; empty if any value is allowed.
    pub fn rule(&self) -> String {
        if !self.choices.is_empty() {
            let text = |choice: &Json| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned);
            return self.choices.iter().map(text).collect::<Vec<_>>().join(" | ");
        }
        let range = match (self.min, self.max) {
            (Some(min), Some(max)) => format!("{min} to {max}"),
            (Some(min), None) => format!("at least {min}"),
            (None, Some(max)) => format!("at most {max}"),
            (None, None) => return self.type_name().to_owned(),
        };
        if self.kind.is_none() { range } else { format!("{}, {range}", self.type_name()) }
    }

    /// The JSON Schema of its value, which may also be an expression in a string.
    fn schema(&self) -> Json {
        let mut schema = json!({});
        if !self.choices.is_empty() {
            schema["enum"] = self.choices.clone().into();
        } else if let Some(kind) = self.kind {
            schema["type"] = match kind {
                ScalarKind::Bool => "boolean".into(),
                _ => self.type_name().into(),
            };
        }
        for (key, bound) in [("minimum", self.min), ("maximum", self.max)] {
            if let Some(bound) = bound {
                schema[key] = json!(bound);
            }
        }
        let plain = self.kind == Some(ScalarKind::String) && self.choices.is_empty();
        if self.kind.is_some() && !plain {
            schema = json!({"anyOf": [schema, {"type": "string", "pattern": r"\$\{\{"}]});
        }
        if !self.description.is_empty() {
            schema["description"] = self.description.clone().into();
        }
        if let Some(default) = &self.default_value {
            schema["default"] = default.clone();
        }
        schema
    }
}

impl Description {
    /// The JSON Schema of `with` for the template.
    pub fn schema(&self) -> Json {
        let properties: serde_json::Map<String, Json> =
            self.params.iter().map(|param| (param.name.clone(), param.schema())).collect();
        let required: Vec<&str> =
            self.params.iter().filter(|param| param.default.is_none()).map(|param| &*param.name).collect();
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# yaml-language-server: $schema=x
# - First.
#
# Second.
template: 1
kind: role
description: serves a model
params:
  model: {type: string, description: its directory}
  port: {default: 8080, min: 1, max: 65535}
  mode: {default: fast, choices: [fast, exact]}
  share: {default: 0.5, min: 0.1}
  any: {}
body: {run: \"x # no note\"}
";

    #[test]
    fn a_template_is_described() {
        let found = describe(TEXT).unwrap();
        assert_eq!((found.kind, &*found.description), ("role", "serves a model"));
        assert_eq!(found.notes, "- First.\n\nSecond.");
        let lines = found.params.iter().map(|param| {
            format!("{}|{}|{:?}|{}", param.name, param.rule(), param.default, param.description)
        });
        assert_eq!(
            lines.collect::<Vec<_>>(),
            [
                "model|string|None|its directory",
                "port|integer, 1 to 65535|Some(\"8080\")|",
                "mode|fast | exact|Some(\"fast\")|",
                "share|number, at least 0.1|Some(\"0.5\")|",
                "any||None|",
            ]
        );
    }

    #[test]
    fn the_schema_describes_with() {
        insta::assert_snapshot!(crate::snapshot::json(&describe(TEXT).unwrap().schema()));
    }

    #[test]
    fn an_invalid_template_has_no_description() {
        assert_eq!(describe("run: x\n"), None);
        assert_eq!(describe("template: 1\nkind: job\n"), None);
        assert_eq!(describe("[\n"), None);
    }

    /// Pages and editors show the descriptions, so each template has one, and the order is alphabetical.
    #[test]
    fn every_built_in_template_is_described() {
        let mut before = "";
        for (name, text) in crate::template::built_in() {
            assert!(before < name, "{name} is not in order");
            before = name;
            let found = describe(text).unwrap_or_else(|| panic!("std/{name} is not a template"));
            assert!(!found.description.is_empty() && found.description.len() <= 80, "std/{name}");
            assert!(found.notes.contains("ested"), "std/{name} does not say what it was tested with");
            for param in &found.params {
                assert!(!param.description.is_empty(), "std/{name}: {}", param.name);
            }
        }
    }
}
