//! `${{ with.NAME }}` in a template's body.
//!
//! Only the plain name is there: a whole string takes the value with its type, a longer one its text. All other
//! expressions stay for later passes.

use super::values::Values;
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Node, Value};
use crate::source::Span;
use crate::suggest;

/// Fills the values in; what cannot be filled is reported.
pub(super) fn fill(node: Node, values: &Values, sink: &mut Sink) -> Node {
    let span = node.span;
    let value = match node.value {
        Value::String(text) => return string(text, span, values, sink),
        Value::Sequence(items) => {
            Value::Sequence(items.into_iter().map(|item| fill(item, values, sink)).collect())
        }
        Value::Mapping(mut entries) => {
            for entry in &mut entries {
                let empty = Node { span, value: Value::Null };
                entry.value = fill(std::mem::replace(&mut entry.value, empty), values, sink);
            }
            Value::Mapping(entries)
        }
        other => other,
    };
    Node { span, value }
}

fn string(text: String, span: Span, values: &Values, sink: &mut Sink) -> Node {
    if !text.contains("${{") {
        return Node { span, value: Value::String(text) };
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = &text[..];
    while let Some(start) = rest.find("${{") {
        let Some(length) = rest[start..].find("}}") else { break };
        let whole = &rest[start..start + length + 2];
        out.push_str(&rest[..start]);
        match value(whole, values) {
            Ok(Some(node)) if whole == text.trim() => return node.clone(),
            Ok(Some(node)) => out.push_str(&scalar_text(node)),
            Ok(None) => out.push_str(whole),
            Err(message) => {
                let known = suggest::list(values.keys().map(String::as_str));
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

/// The value of an expression; nothing where it is not the template's.
fn value<'v>(whole: &str, values: &'v Values) -> Result<Option<&'v Node>, String> {
    let inside = whole[3..whole.len() - 2].trim();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if let Some(name) = inside.strip_prefix("with.").filter(|name| name.chars().all(is_name)) {
        return values.get(name).map(Some).ok_or_else(|| format!("the template has no parameter `{name}`"));
    }
    let uses_with = inside.match_indices("with").any(|(at, _)| {
        let before = inside[..at].chars().next_back();
        let after = inside[at + 4..].trim_start().chars().next();
        !before.is_some_and(|c| is_name(c) || c == '.') && matches!(after, Some('.' | '[') | None)
    });
    if uses_with {
        return Err(format!(
            "`{whole}` is more than the name of a parameter: in a template write only `${{{{ with.NAME }}}}`"
        ));
    }
    Ok(None)
}

/// A scalar as it was written.
fn scalar_text(node: &Node) -> String {
    match &node.value {
        Value::String(text) | Value::Number { text, .. } => text.clone(),
        Value::Bool(value) => value.to_string(),
        Value::Null | Value::Sequence(_) | Value::Mapping(_) => String::new(),
    }
}
