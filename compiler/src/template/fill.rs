//! `${{ with.NAME }}` and `${{ template.directory }}` in a template's body.
//!
//! Only plain names are supported: a string that is a single expression gets the value's type, a longer one its text.
//! All other expressions are left for later passes.

use super::values::Values;
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Node, Value};
use crate::source::Span;
use crate::suggest;

/// The names that a body can use.
#[derive(Clone, Copy)]
pub(super) struct Scope<'v> {
    /// The values of the parameters.
    pub(super) values: &'v Values,
    /// The template's directory, if it has one.
    pub(super) directory: Option<&'v str>,
}

/// Substitutes the values; reports what cannot be substituted.
pub(super) fn fill(node: Node, scope: Scope<'_>, sink: &mut Sink) -> Node {
    let span = node.span;
    let value = match node.value {
        Value::String(text) => return string(text, span, scope, sink),
        Value::Sequence(items) => {
            Value::Sequence(items.into_iter().map(|item| fill(item, scope, sink)).collect())
        }
        Value::Mapping(mut entries) => {
            for entry in &mut entries {
                let empty = Node { span, value: Value::Null };
                entry.value = fill(std::mem::replace(&mut entry.value, empty), scope, sink);
            }
            Value::Mapping(entries)
        }
        other => other,
    };
    Node { span, value }
}

fn string(text: String, span: Span, scope: Scope<'_>, sink: &mut Sink) -> Node {
    if !text.contains("${{") {
        return Node { span, value: Value::String(text) };
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = &text[..];
    while let Some(start) = rest.find("${{") {
        let Some(length) = rest[start..].find("}}") else { break };
        let whole = &rest[start..start + length + 2];
        out.push_str(&rest[..start]);
        match value(whole, scope) {
            Filled::Value(node) if whole == text.trim() => return node.clone(),
            Filled::Value(node) => out.push_str(&scalar_text(node)),
            Filled::Directory(path) => out.push_str(path),
            Filled::Other => out.push_str(whole),
            Filled::Wrong(message) => {
                let known = suggest::list(scope.values.keys().map(String::as_str));
                sink.push(
                    Diagnostic::error(codes::TEMPLATE_EXPRESSION, message)
                        .at_span(span, "")
                        .note(format!("the template's parameters: {known}")),
                );
            }
        }
        rest = &rest[start + whole.len()..];
    }
    out.push_str(rest);
    Node { span, value: Value::String(out) }
}

/// The meaning of an expression.
enum Filled<'v> {
    /// The value of a parameter.
    Value(&'v Node),
    /// The template's directory.
    Directory(&'v str),
    /// An expression for a later pass.
    Other,
    /// Nothing that a template can have: why.
    Wrong(String),
}

fn value<'v>(whole: &str, scope: Scope<'v>) -> Filled<'v> {
    let inside = whole[3..whole.len() - 2].trim();
    if inside == "template.directory" {
        return scope.directory.map_or_else(
            || Filled::Wrong("only a template in a directory of this host has a directory; of a template from Git, `from` of `files` can name its files".to_owned()),
            Filled::Directory,
        );
    }
    if let Some(name) = inside.strip_prefix("template.") {
        return Filled::Wrong(format!("unknown name `template.{name}`; write `template.directory`"));
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if let Some(name) = inside.strip_prefix("with.").filter(|name| name.chars().all(is_name)) {
        return scope
            .values
            .get(name)
            .map_or_else(|| Filled::Wrong(format!("the template has no parameter `{name}`")), Filled::Value);
    }
    let uses_with = inside.match_indices("with").any(|(at, _)| {
        let before = inside[..at].chars().next_back();
        let after = inside[at + 4..].trim_start().chars().next();
        !before.is_some_and(|c| is_name(c) || c == '.') && matches!(after, Some('.' | '[') | None)
    });
    if uses_with {
        return Filled::Wrong(format!(
            "`{whole}` is more than the name of a parameter: in a template write only `${{{{ with.NAME }}}}`"
        ));
    }
    Filled::Other
}

/// A scalar as written.
fn scalar_text(node: &Node) -> String {
    match &node.value {
        Value::String(text) | Value::Number { text, .. } => text.clone(),
        Value::Bool(value) => value.to_string(),
        Value::Null | Value::Sequence(_) | Value::Mapping(_) => String::new(),
    }
}
