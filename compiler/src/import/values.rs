//! Values that other tools write in several forms.

use crate::document::{Node, Value};
use crate::source::Span;

/// The texts of a list, or of one text.
pub(super) fn texts(node: &Node) -> Vec<(String, Span)> {
    match &node.value {
        Value::Sequence(items) => items.iter().filter_map(|item| Some((scalar(item)?, item.span))).collect(),
        _ => scalar(node).map(|text| (text, node.span)).into_iter().collect(),
    }
}

/// Names with values: of a map, or of a list of `NAME=VALUE`.
pub(super) fn pairs(node: &Node) -> Vec<(String, Option<String>, Span)> {
    match &node.value {
        Value::Mapping(entries) => {
            entries.iter().map(|entry| (entry.key.clone(), scalar(&entry.value), entry.key_span)).collect()
        }
        _ => texts(node)
            .into_iter()
            .map(|(text, span)| match text.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned()), span),
                None => (text, None, span),
            })
            .collect(),
    }
}

/// The text of a scalar, as written.
pub(super) fn scalar(node: &Node) -> Option<String> {
    node.to_scalar().map(|scalar| scalar.text)
}

/// The text of a scalar at a key.
pub(super) fn text_at(node: &Node, key: &str) -> Option<String> {
    node.get(key).and_then(scalar)
}

/// The text of a scalar at a path of keys.
pub(super) fn text_in(node: &Node, path: &[&str]) -> Option<String> {
    path.iter().try_fold(node, |node, key| node.get(key)).and_then(scalar)
}

/// Whether a value is one that changes nothing: nothing, `false`, an empty list.
pub(super) fn is_empty(node: &Node) -> bool {
    match &node.value {
        Value::Null | Value::Bool(false) => true,
        Value::Sequence(items) => items.is_empty(),
        Value::Mapping(entries) => entries.is_empty(),
        _ => false,
    }
}
