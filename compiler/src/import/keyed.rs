//! Readers of small formats: a map whose keys have a table.

use crate::document::{Entry, Node};
use crate::openpai::{MAX_JOB_NAME, converted};
use crate::source::Span;
use crate::suggest;

use super::draft::Draft;
use super::nodes::string;
use super::options::Argument::Required;
use super::options::{Becomes, CommandOption, row};
use super::values::{is_empty, text_at};

/// A row of a table of keys.
pub(super) const fn key(name: &'static str, becomes: Becomes) -> CommandOption {
    row(name, ' ', Required, becomes)
}

/// Sets the name of the job to what the file has as `name`.
pub(super) fn name_job(root: &Node, first: Span, default: &str, draft: &mut Draft<'_>) {
    let name = text_at(root, "name").and_then(|name| converted(&name, MAX_JOB_NAME, false));
    draft.set(&["name"], first, string(first, name.unwrap_or(default.to_owned())));
}

/// Reports keys of a map that are none of these. `what` says whose keys they are.
pub(super) fn only(node: &Node, keys: &[&'static str], what: &str, draft: &mut Draft<'_>) {
    for entry in node.entries() {
        if !keys.contains(&entry.key.as_str()) && !entry.key.starts_with("x-") {
            let near = suggest::nearest(&entry.key, keys.iter().copied());
            draft.unknown(entry.key_span, format!("unknown key `{}` of {what}", entry.key), near);
        }
    }
}

/// Accounts for each key of a map; `field` takes those that become something. `what` says whose keys they are.
pub(super) fn each(
    entries: &[Entry],
    keys: &'static [CommandOption],
    what: &str,
    draft: &mut Draft<'_>,
    mut field: impl FnMut(&Entry, &mut Draft<'_>),
) {
    for entry in entries {
        let part = entry.key_span;
        let Some(option) = keys.iter().find(|option| option.long == entry.key) else {
            let near = suggest::nearest(&entry.key, keys.iter().map(|option| option.long));
            draft.unknown(part, format!("unknown key `{}` of {what}", entry.key), near);
            continue;
        };
        match option.becomes {
            Becomes::Note(why) => draft.note(part, why),
            _ if is_empty(&entry.value) => draft.note(part, "empty: the default"),
            Becomes::Refusal(message, instead) => draft.refuse(part, message, instead),
            _ => field(entry, draft),
        }
    }
}
