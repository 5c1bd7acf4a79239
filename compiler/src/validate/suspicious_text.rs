//! Texts that do not mean what they seem to: typographic quotes, folded commands, and expressions of other tools.

mod continuation;
mod expressions;
mod folded;
mod text_node;
mod typography;

use jobc_schema::Pointer;

use crate::diagnostic::Sink;
use crate::document::{Document, Node, Value};
use crate::source::Sources;
use text_node::TextNode;

/// Warns about texts of a valid job file that do not mean what they seem to.
pub fn check_written(document: &Document, sources: &Sources, sink: &mut Sink) {
    texts(&document.root, &Pointer::ROOT, sources, &mut |written| {
        continuation::check(written, sink);
        folded::check(written, sink);
        typography::check(written, sink);
        expressions::check(written, document, sink);
    });
}

/// Calls a function for every text that a program interprets.
fn texts<'a>(node: &'a Node, at: &Pointer, sources: &'a Sources, visit: &mut dyn FnMut(&TextNode<'a>)) {
    match &node.value {
        Value::String(text) => {
            visit(&TextNode { at: at.clone(), node, text, raw: sources.slice(node.span) });
        }
        Value::Sequence(items) => {
            for (index, item) in items.iter().enumerate() {
                texts(item, &at.index(index), sources, visit);
            }
        }
        Value::Mapping(entries) => {
            let for_machines = |key: &str| key != "description" && !key.starts_with("x-");
            for entry in entries.iter().filter(|entry| for_machines(&entry.key)) {
                texts(&entry.value, &at.key(&entry.key), sources, visit);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number { .. } => {}
    }
}
