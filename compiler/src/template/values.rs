//! The values of a template's parameters: `with`, else their defaults.

use std::collections::BTreeMap;

use jobc_schema::scalar::{Scalar, ScalarKind};

use super::read::{Parameter, Template, kind_of};
use crate::diagnostic::{Diagnostic, Location, Sink, codes, unquoted};
use crate::document::{Entry, Node, Value};
use crate::suggest;

/// Values by parameter.
pub(super) type Values = BTreeMap<String, Node>;

/// Determines the value of every parameter, and reports all errors in `with`.
pub(super) fn read(
    template: &Template,
    with: Option<&Entry>,
    uses: &Entry,
    sink: &mut Sink,
) -> Option<Values> {
    let errors = sink.error_count();
    let given = with.map(|with| &with.value);
    if let Some(node) = given.filter(|node| !matches!(node.value, Value::Mapping(_))) {
        let message = format!("`with` is {}: write a map of the template's parameters", node.describe());
        sink.push(Diagnostic::error(codes::TEMPLATE_VALUE, message).at_span(node.span, ""));
    }
    let name = uses.value.as_str().unwrap_or_default();
    let names = || template.params.iter().map(|param| param.name.as_str());
    for entry in given.map(Node::entries).unwrap_or_default() {
        if !names().any(|known| known == entry.key) {
            let message = format!("unknown parameter `{}` of `{name}`", entry.key);
            let diagnostic = Diagnostic::error(codes::TEMPLATE_PARAM, message).at_span(entry.key_span, "");
            let near = suggest::nearest(&entry.key, names());
            let known = format!("its parameters: {}", suggest::list(names()));
            let place = Location::Span(unquoted(entry.key_span, &entry.key));
            let diagnostic = near.into_iter().fold(diagnostic, |diagnostic, near| {
                diagnostic.note(format!("did you mean `{near}`?")).write(place.clone(), near)
            });
            sink.push(diagnostic.note(known));
        }
    }
    let mut values = Values::new();
    for param in &template.params {
        let written = given.and_then(|node| node.get(&param.name));
        if let Some(value) = written {
            fits(param, value, sink);
        }
        if let Some(value) = written.or(param.default.as_ref()) {
            values.insert(param.name.clone(), value.clone());
            continue;
        }
        let message = format!("`{name}` needs a value for `{}`", param.name);
        let mut diagnostic = Diagnostic::error(codes::TEMPLATE_MISSING, message)
            .at_span(with.map_or(uses.value.span, |with| with.key_span), "")
            .note(format!("write `{}: …` under `with`", param.name));
        if let Some(description) = &param.rules.description {
            diagnostic = diagnostic.note(format!("`{}` is {description}", param.name));
        }
        sink.push(diagnostic);
    }
    (sink.error_count() == errors).then_some(values)
}

/// Reports a value that the parameter does not accept; an expression is checked where its value is used.
fn fits(param: &Parameter, value: &Node, sink: &mut Sink) {
    let mut refuse = |why: String| {
        let message = format!("`{}` cannot be {}: {why}", param.name, value.describe());
        sink.push(Diagnostic::error(codes::TEMPLATE_VALUE, message).at_span(value.span, ""));
    };
    if value.as_str().is_some_and(|text| text.contains("${{")) {
        return;
    }
    let Some(kind) = kind_of(value) else {
        return refuse("write a string, a number or a bool".to_owned());
    };
    let same = match param.kind {
        None => true,
        Some(ScalarKind::Number) => matches!(kind, ScalarKind::Number | ScalarKind::Integer),
        Some(wanted) => wanted == kind,
    };
    if let Some(wanted) = param.kind.filter(|_| !same) {
        let wanted = match wanted {
            ScalarKind::String => "a string",
            ScalarKind::Integer => "a whole number",
            ScalarKind::Number => "a number",
            ScalarKind::Bool => "`true` or `false`",
        };
        return refuse(format!("write {wanted}"));
    }
    let rules = &param.rules;
    let json = value.to_json();
    if !rules.choices.is_empty() && !rules.choices.iter().any(|choice| choice.value == json) {
        let choices: Vec<&str> = rules.choices.iter().map(|choice: &Scalar| choice.text.as_str()).collect();
        return refuse(format!("allowed values: {}", suggest::list(choices)));
    }
    let Some(number) = json.as_f64() else { return };
    if let Some(min) = rules.min.filter(|&min| number < min) {
        refuse(format!("the minimum is {min}"));
    } else if let Some(max) = rules.max.filter(|&max| number > max) {
        refuse(format!("the maximum is {max}"));
    }
}
