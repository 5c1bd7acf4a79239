//! Parses a template file.

use std::fmt;

use jobc_schema::job::ParamRules;
use jobc_schema::scalar::ScalarKind;

use crate::diagnostic::{Diagnostic, Location, Safety, Sink, codes, unquoted};
use crate::document::{Entry, Node, Value};
use crate::source::Span;
use crate::suggest;

/// What a template can be used in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A job.
    Job,
    /// A role.
    Role,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Job { "job" } else { "role" })
    }
}

/// A template whose expressions are not yet substituted.
pub(super) struct Template {
    /// What it can be used in.
    pub(super) kind: Kind,
    /// Its parameters.
    pub(super) params: Vec<Parameter>,
    /// The body: part of a job or of a role.
    pub(super) body: Node,
}

/// A parameter of a template.
pub(super) struct Parameter {
    /// Its name.
    pub(super) name: String,
    /// Its default; a parameter without one is required.
    pub(super) default: Option<Node>,
    /// Its constraints.
    pub(super) rules: ParamRules,
    /// Its type: declared, or the default's.
    pub(super) kind: Option<ScalarKind>,
}

const KEYS: [&str; 5] = ["template", "kind", "description", "params", "body"];
const RULES: [&str; 6] = ["default", "type", "choices", "min", "max", "description"];

impl Template {
    /// Parses a template file and reports all structural errors.
    pub(super) fn read(root: &Node, sink: &mut Sink) -> Option<Self> {
        let errors = sink.error_count();
        if root.get("template").is_none() {
            let message = "the file is not a template: it has no `template: 1`";
            sink.push(
                Diagnostic::error(codes::TEMPLATE_FORM, message)
                    .at_span(root.span, "")
                    .note("a template holds `template: 1`, `kind: job` or `kind: role`, `params` and `body`"),
            );
            return None;
        }
        unknown_keys(root, &KEYS, sink);
        let version = root.get("template").map(Node::to_json);
        if version != Some(serde_json::json!(1)) {
            let at = root.get("template").map_or(root.span, |node| node.span);
            let message = "unknown template version: write `template: 1`";
            sink.push(Diagnostic::error(codes::TEMPLATE_FORM, message).at_span(at, ""));
        }
        let kind = match root.get("kind").and_then(Node::as_str) {
            Some("job") => Some(Kind::Job),
            Some("role") => Some(Kind::Role),
            _ => {
                let at = root.get("kind").map_or(root.span, |node| node.span);
                let message = "a template needs a kind: write `kind: job` or `kind: role`";
                let mut found = Diagnostic::error(codes::TEMPLATE_FORM, message).at_span(at, "");
                let first = root.entries().first().map(|entry| entry.key_span);
                // Only in a block map.
                if let Some(first) = first.filter(|first| first.start == root.span.start) {
                    let place = Location::Span(Span { end: first.start, ..first });
                    for kind in ["job", "role"] {
                        let text = format!("kind: {kind}\n");
                        found =
                            found.fix(format!("write `kind: {kind}`"), place.clone(), text, Safety::Unsafe);
                    }
                }
                sink.push(found);
                None
            }
        };
        if let Some(description) = root.get("description").filter(|node| node.as_str().is_none()) {
            let message = format!("`description` is {}: write a string", description.describe());
            sink.push(Diagnostic::error(codes::TEMPLATE_FORM, message).at_span(description.span, ""));
        }
        let params = root.get("params").map(|params| parameters(params, sink)).unwrap_or_default();
        let body = root.get("body").filter(|body| matches!(body.value, Value::Mapping(_)));
        if body.is_none() {
            let at = root.get("body").map_or(root.span, |node| node.span);
            let message = "a template has a `body`: a map with keys of a job or of a role";
            sink.push(Diagnostic::error(codes::TEMPLATE_FORM, message).at_span(at, ""));
        }
        let template = Self { kind: kind?, params, body: body?.clone() };
        (sink.error_count() == errors).then_some(template)
    }
}

fn unknown_keys(node: &Node, known: &[&'static str], sink: &mut Sink) {
    for entry in node.entries().iter().filter(|entry| !known.contains(&entry.key.as_str())) {
        let message = format!("unknown key `{}` of a template", entry.key);
        let diagnostic = Diagnostic::error(codes::TEMPLATE_FORM, message).at_span(entry.key_span, "");
        sink.push(match suggest::nearest(&entry.key, known.iter().copied()) {
            Some(near) => diagnostic
                .note(format!("did you mean `{near}`?"))
                .write(Location::Span(unquoted(entry.key_span, &entry.key)), near),
            None => diagnostic.note(format!("known: {}", suggest::list(known.iter().copied()))),
        });
    }
}

fn parameters(params: &Node, sink: &mut Sink) -> Vec<Parameter> {
    if !matches!(params.value, Value::Mapping(_)) {
        let message = format!("`params` is {}: write a map of names to defaults", params.describe());
        sink.push(Diagnostic::error(codes::TEMPLATE_FORM, message).at_span(params.span, ""));
    }
    params.entries().iter().filter_map(|entry| parameter(entry, sink)).collect()
}

fn parameter(entry: &Entry, sink: &mut Sink) -> Option<Parameter> {
    let name = entry.key.clone();
    let plain = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !plain {
        let message = format!("`{name}` cannot name a parameter: write letters, digits and `_`");
        sink.push(Diagnostic::error(codes::TEMPLATE_FORM, message).at_span(entry.key_span, ""));
        return None;
    }
    let node = &entry.value;
    if !matches!(node.value, Value::Mapping(_)) {
        let Some(kind) = kind_of(node) else {
            let message =
                format!("the default of `{name}` is {}: write a string, a number or a bool", node.describe());
            sink.push(Diagnostic::error(codes::TEMPLATE_FORM, message).at_span(node.span, ""));
            return None;
        };
        return Some(Parameter {
            name,
            default: Some(node.clone()),
            rules: ParamRules::default(),
            kind: Some(kind),
        });
    }
    let errors = sink.error_count();
    unknown_keys(node, &RULES, sink);
    if sink.error_count() > errors {
        return None;
    }
    let rules: ParamRules = match serde_json::from_value(node.to_json()) {
        Ok(rules) => rules,
        Err(error) => {
            let message = format!("the rules of `{name}` cannot be read: {error}");
            sink.push(Diagnostic::error(codes::TEMPLATE_FORM, message).at_span(node.span, ""));
            return None;
        }
    };
    let default = node.get("default").cloned();
    let kind = rules.kind.or_else(|| default.as_ref().and_then(kind_of));
    Some(Parameter { name, default, rules, kind })
}

/// The type of a scalar; `None` for a list, a map or null.
pub(super) fn kind_of(node: &Node) -> Option<ScalarKind> {
    match &node.value {
        Value::String(_) => Some(ScalarKind::String),
        Value::Bool(_) => Some(ScalarKind::Bool),
        Value::Number { number, .. } if number.is_f64() => Some(ScalarKind::Number),
        Value::Number { .. } => Some(ScalarKind::Integer),
        Value::Null | Value::Sequence(_) | Value::Mapping(_) => None,
    }
}
