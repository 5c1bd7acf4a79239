//! Lints of the job file as written, before expressions are evaluated.

pub(super) mod axes;
pub(super) mod same_file;
pub(super) mod secret;
pub(super) mod unused;
mod usage;

use std::borrow::Cow;

use crate::document::{Node, Value};

/// The keys and indexes from the root to a place.
type Path<'d> = Vec<Cow<'d, str>>;

/// Calls a function for every string below a node, keys not counted, with its place; `path` is that of the node.
fn strings<'d>(node: &'d Node, path: &mut Path<'d>, visit: &mut dyn FnMut(&Path<'d>, &'d str)) {
    match &node.value {
        Value::String(text) => visit(path, text),
        Value::Sequence(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(index.to_string().into());
                strings(item, path, visit);
                path.pop();
            }
        }
        Value::Mapping(entries) => {
            for entry in entries {
                path.push(entry.key.as_str().into());
                strings(&entry.value, path, visit);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number { .. } => {}
    }
}
