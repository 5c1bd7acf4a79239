//! Builds nodes of our document format with the spans of imported text.

use serde_json::Value as Json;

use crate::document::{Entry, Node, Value};
use crate::source::Span;

/// A key with its value.
pub(super) fn entry(key: impl Into<String>, key_span: Span, value: Node) -> Entry {
    Entry { key: key.into(), key_span, value }
}

/// A map.
pub(super) fn map(span: Span, entries: Vec<Entry>) -> Node {
    Node { span, value: Value::Mapping(entries) }
}

/// A list.
pub(super) fn sequence(span: Span, items: Vec<Node>) -> Node {
    Node { span, value: Value::Sequence(items) }
}

/// A text.
pub(super) fn string(span: Span, text: impl Into<String>) -> Node {
    Node { span, value: Value::String(text.into()) }
}

/// An integer.
pub(super) fn number(span: Span, number: u64) -> Node {
    Node { span, value: Value::Number { number: number.into(), text: number.to_string() } }
}

/// Plain JSON, with one span for all of it.
pub(super) fn json(span: Span, value: &Json) -> Node {
    let value = match value {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => Value::Number { number: number.clone(), text: number.to_string() },
        Json::String(text) => Value::String(text.clone()),
        Json::Array(items) => Value::Sequence(items.iter().map(|item| json(span, item)).collect()),
        Json::Object(fields) => {
            Value::Mapping(fields.iter().map(|(key, value)| entry(key, span, json(span, value))).collect())
        }
    };
    Node { span, value }
}
