//! Merges the user's keys over a template's.

use crate::document::{Entry, Node, Value};

/// Maps that are replaced as a whole: merging half of one with half of another makes no sense.
const WHOLE: [&str; 4] = ["image", "ready", "needs", "matrix"];

/// Maps whose items are each replaced as a whole.
const WHOLE_ITEMS: [&str; 4] = ["images", "secrets", "files", "params"];

/// Merges the user's node over the template's: maps are merged key by key, everything else is replaced.
///
/// The template's keys come first, in its order. Each value keeps the span of the file it came from.
pub(super) fn merge(template: Node, user: Node) -> Node {
    join(template, user, "")
}

fn join(template: Node, user: Node, above: &str) -> Node {
    let span = user.span;
    let (mut entries, own) = match (template.value, user.value) {
        (Value::Mapping(entries), Value::Mapping(own)) => (entries, own),
        (_, value) => return Node { span, value },
    };
    // Only the template's own entries can collide, so the many roles of a job need not be compared with each other.
    let of_template = entries.len();
    for entry in own {
        match entries[..of_template].iter_mut().find(|known| known.key == entry.key) {
            None => entries.push(entry),
            Some(known) if WHOLE.contains(&&*entry.key) || WHOLE_ITEMS.contains(&above) => *known = entry,
            Some(known) => {
                let empty = Node { span, value: Value::Null };
                let under = std::mem::replace(&mut known.value, empty);
                let Entry { key, key_span, value } = entry;
                known.value = join(under, value, &key);
                known.key_span = key_span;
            }
        }
    }
    Node { span, value: Value::Mapping(entries) }
}
