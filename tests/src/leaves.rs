//! The leaves of a document, and which of them a reader accounts for.

use std::collections::BTreeSet;

use jobc_compiler::document::{Node, Value};
use jobc_compiler::source::Span;

/// The leaves below a node: how many there are, and those without a row at themselves or at what they belong to.
#[derive(Debug, Default)]
pub struct Leaves {
    /// All of them.
    pub counted: usize,
    /// Those without a row.
    pub missing: Vec<Span>,
}

impl Leaves {
    /// Counts the leaves below a node.
    pub fn count(&mut self, node: &Node, has_row: bool, rows: &BTreeSet<Span>) {
        match &node.value {
            Value::Mapping(entries) if !entries.is_empty() => {
                for entry in entries {
                    let has_row =
                        has_row || rows.contains(&entry.key_span) || rows.contains(&entry.value.span);
                    self.count(&entry.value, has_row, rows);
                }
            }
            Value::Sequence(items) if !items.is_empty() => {
                for item in items {
                    self.count(item, has_row || rows.contains(&item.span), rows);
                }
            }
            _ => {
                self.counted += 1;
                if !has_row {
                    self.missing.push(node.span);
                }
            }
        }
    }
}

/// The maps below a node, without those of keys that are taken as a whole.
pub fn maps<'n>(node: &'n Node, whole: &BTreeSet<Span>) -> Vec<&'n Node> {
    let mut found = vec![];
    match &node.value {
        Value::Mapping(entries) => {
            found.push(node);
            let entries = entries.iter().filter(|entry| !whole.contains(&entry.key_span));
            found.extend(entries.flat_map(|entry| maps(&entry.value, whole)));
        }
        Value::Sequence(items) => {
            let items = items.iter().filter(|item| !whole.contains(&item.span));
            found.extend(items.flat_map(|item| maps(item, whole)));
        }
        _ => {}
    }
    found
}
