//! Lints of the job file as written, before expressions are put in.

pub(super) mod secret;
pub(super) mod unused;
mod usage;

use jobc_schema::Pointer;

use crate::document::{Node, Value};

/// Calls a function for every string below a node, keys not counted, with its place.
fn strings<'d>(node: &'d Node, at: &Pointer, visit: &mut dyn FnMut(&Pointer, &'d str)) {
    match &node.value {
        Value::String(text) => visit(at, text),
        Value::Sequence(items) => {
            for (index, item) in items.iter().enumerate() {
                strings(item, &at.index(index), visit);
            }
        }
        Value::Mapping(entries) => {
            for entry in entries {
                strings(&entry.value, &at.key(&entry.key), visit);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number { .. } => {}
    }
}
