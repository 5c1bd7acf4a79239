//! `jobc fmt`: the canonical form of a YAML file: indentation, blank lines, quotes and the order of keys.
//!
//! Comments stay with their keys. The result of every pass is parsed again, and used only if it is the same
//! document. JSON, and a file with syntax errors, are left unchanged.

mod indent;
mod layout;
mod lines;
mod order;
mod quotes;

use crate::diagnostic::Sink;
use crate::document::{Document, Node, Value};
use crate::parse;
use crate::source::{Source, Sources};

/// The canonical form of a text; `None` for JSON or a text with syntax errors.
///
/// Formatting is idempotent.
pub fn format(text: &str) -> Option<String> {
    if text.trim_start().starts_with(['{', '/']) {
        return None;
    }
    let mut document = parse_valid(text)?;
    let mut text = text.to_owned();
    let passes: [fn(&str, &Document) -> Vec<String>; 3] = [layout::forms, quotes::forms, order::forms];
    for pass in passes {
        // The first candidate that means the same; if there is none, the pass changes nothing.
        for new in pass(&text, &document) {
            if new == text {
                break;
            }
            if let Some(formatted) = parse_valid(&new).filter(|new| is_same(&new.root, &document.root)) {
                (text, document) = (new, formatted);
                break;
            }
        }
    }
    Some(text)
}

/// The tree of a text, if it has no syntax errors.
fn parse_valid(text: &str) -> Option<Document> {
    let mut sources = Sources::new();
    let id = sources.add(Source::new("job.yaml", text));
    let mut sink = Sink::new();
    let document = parse::parse(&sources, id, &mut sink);
    document.filter(|_| !sink.has_errors())
}

/// Whether two trees are equal, ignoring positions and the order of keys.
fn is_same(a: &Node, b: &Node) -> bool {
    match (&a.value, &b.value) {
        (Value::Mapping(a), Value::Mapping(b)) => {
            let is_in_b = |wanted: &crate::document::Entry, at: usize| {
                let nearby = b.get(at).filter(|entry| entry.key == wanted.key);
                let found = nearby.or_else(|| b.iter().find(|entry| entry.key == wanted.key));
                found.is_some_and(|entry| is_same(&wanted.value, &entry.value))
            };
            a.len() == b.len() && a.iter().enumerate().all(|(at, entry)| is_in_b(entry, at))
        }
        (Value::Sequence(a), Value::Sequence(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests;
