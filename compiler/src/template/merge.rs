//! The user's keys over a template's.

use crate::document::{Entry, Node, Value};

/// Maps that mean one thing as a whole: laying half of one over half of another makes neither.
const WHOLE: [&str; 4] = ["image", "ready", "needs", "matrix"];

/// Maps whose items each mean one thing as a whole.
const WHOLE_ITEMS: [&str; 4] = ["images", "secrets", "files", "params"];

/// Lays the user's node over the template's: maps are joined key by key, everything else is replaced.
///
/// The template's keys come first, in its order. Spans stay those of the file a value came from.
pub(super) fn merge(template: Node, user: Node) -> Node {
    join(template, user, "")
}

fn join(template: Node, user: Node, above: &str) -> Node {
    let span = user.span;
    let (mut entries, own) = match (template.value, user.value) {
        (Value::Mapping(entries), Value::Mapping(own)) => (entries, own),
        (_, value) => return Node { span, value },
    };
    // Only the template's own entries can be met: a job's many roles are then not compared with each other.
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
