//! The key or value at an offset of a file.

use jobc_compiler::document::{Document, Node, Value};

/// A key or a value, and its path.
pub(crate) struct Selected<'d> {
    /// Keys and indexes from the root down.
    pub(crate) path: Vec<String>,
    /// The value; for a key, its value.
    pub(crate) node: &'d Node,
    /// Whether the offset is in the key.
    pub(crate) is_key: bool,
}

/// The innermost key or value at an offset, or ending there.
pub(crate) fn at(document: &Document, offset: usize) -> Option<Selected<'_>> {
    let mut path = vec![];
    let mut node = &document.root;
    'down: loop {
        match &node.value {
            Value::Mapping(entries) => {
                for entry in entries {
                    if touches(entry.key_span.range(), offset) {
                        path.push(entry.key.clone());
                        return Some(Selected { path, node: &entry.value, is_key: true });
                    }
                    if touches(entry.value.span.range(), offset) {
                        path.push(entry.key.clone());
                        node = &entry.value;
                        continue 'down;
                    }
                }
            }
            Value::Sequence(items) => {
                if let Some((index, item)) =
                    items.iter().enumerate().find(|(_, item)| touches(item.span.range(), offset))
                {
                    path.push(index.to_string());
                    node = item;
                    continue 'down;
                }
            }
            _ => {}
        }
        return touches(node.span.range(), offset).then_some(Selected { path, node, is_key: false });
    }
}

fn touches(range: std::ops::Range<usize>, offset: usize) -> bool {
    range.start <= offset && offset <= range.end
}
