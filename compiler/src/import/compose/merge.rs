//! How Compose merges files and extended services (compose-spec `13-merge.md`): maps deeply, lists one after the other
//! without what both have; commands and checks are replaced.

use crate::document::{Entry, Node, Value};
use crate::source::Sources;

use super::super::draft::Draft;
use super::super::values::{scalar, text_at};

/// Lists of `NAME=VALUE` that may be maps too.
const PAIRS: [&str; 6] = ["annotations", "args", "environment", "extra_hosts", "labels", "sysctls"];
/// Lists of names that may be maps too.
const NAMES: [&str; 3] = ["additional_contexts", "depends_on", "networks"];
/// What is replaced as a whole.
const REPLACED: [&str; 5] = ["command", "entrypoint", "extends", "image", "test"];

/// Merges the keys of a map into those before.
pub(super) fn merge(base: &mut Vec<Entry>, over: Vec<Entry>, sources: &Sources, draft: &mut Draft<'_>) {
    for mut entry in over {
        let tag = tag(&entry.value, sources);
        let at = base.iter().position(|known| known.key == entry.key);
        let Some(at) = at else {
            if tag == Some("!reset") {
                draft.note(entry.key_span, "removed by `!reset`");
            } else {
                base.push(entry);
            }
            continue;
        };
        if tag.is_some() {
            replaced(&base[at], &entry, draft);
            if tag == Some("!reset") {
                draft.note(entry.key_span, "removed by `!reset`");
                base.remove(at);
            } else {
                base[at] = entry;
            }
            continue;
        }
        normalize(&mut base[at]);
        normalize(&mut entry);
        let is_replaced = REPLACED.contains(&entry.key.as_str());
        match (&mut base[at].value.value, entry.value.value) {
            (Value::Mapping(own), Value::Mapping(other)) => merge(own, other, sources, draft),
            (Value::Sequence(own), Value::Sequence(other)) if !is_replaced => {
                append(&entry.key, own, other, draft);
            }
            (Value::Mapping(_) | Value::Sequence(_), Value::Null) => {}
            (_, value) => {
                let entry = Entry { value: Node { span: entry.value.span, value }, ..entry };
                replaced(&base[at], &entry, draft);
                base[at] = entry;
            }
        }
    }
}

/// Removes what is marked `!reset`, and has removed nothing.
pub(super) fn without_reset(node: &mut Node, sources: &Sources, draft: &mut Draft<'_>) {
    match &mut node.value {
        Value::Mapping(entries) => {
            entries.retain(|entry| {
                let is_reset = tag(&entry.value, sources) == Some("!reset");
                if is_reset {
                    draft.note(entry.key_span, "removed by `!reset`");
                }
                !is_reset
            });
            for entry in entries {
                without_reset(&mut entry.value, sources, draft);
            }
        }
        Value::Sequence(items) => {
            for item in items {
                without_reset(item, sources, draft);
            }
        }
        _ => {}
    }
}

/// Accounts for a key that a later file replaces. In one file, an extended service has rows of its own.
fn replaced(base: &Entry, over: &Entry, draft: &mut Draft<'_>) {
    if base.key_span.source != over.key_span.source {
        draft.note(base.key_span, "a later file replaces it");
    }
}

/// `!reset` or `!override` before a value.
fn tag(value: &Node, sources: &Sources) -> Option<&'static str> {
    let before = sources.get(value.span.source).text().get(..value.span.start as usize)?.trim_end();
    ["!reset", "!override"].into_iter().find(|tag| before.ends_with(tag))
}

/// The form in which lists that may be maps can be merged: as a map.
fn normalize(entry: &mut Entry) {
    let is_pairs = PAIRS.contains(&entry.key.as_str());
    if entry.key == "build" && scalar(&entry.value).is_some() {
        let value = Value::String(scalar(&entry.value).unwrap_or_default());
        let context = Node { span: entry.value.span, value };
        let context = Entry { key: "context".to_owned(), key_span: entry.key_span, value: context };
        entry.value.value = Value::Mapping(vec![context]);
    }
    if !is_pairs && !NAMES.contains(&entry.key.as_str()) {
        return;
    }
    let Value::Sequence(items) = &entry.value.value else { return };
    let pair = |item: &Node| {
        let text = scalar(item)?;
        let parts = text
            .split_once('=')
            .or_else(|| (entry.key == "extra_hosts").then(|| text.split_once(':')).flatten());
        let (name, value) = match parts.filter(|_| is_pairs || entry.key == "additional_contexts") {
            Some((name, value)) => (name.to_owned(), Value::String(value.to_owned())),
            None => (text, Value::Null),
        };
        Some(Entry { key: name, key_span: item.span, value: Node { span: item.span, value } })
    };
    // Of two lines with one name the last one counts.
    let mut pairs: Vec<Entry> = Vec::new();
    for pair in items.iter().filter_map(pair) {
        pairs.retain(|known| known.key != pair.key);
        pairs.push(pair);
    }
    entry.value.value = Value::Mapping(pairs);
}

/// Appends the items of a list; one about the same thing as an item before replaces it.
fn append(key: &str, own: &mut Vec<Node>, other: Vec<Node>, draft: &mut Draft<'_>) {
    for item in other {
        let what = identity(key, &item);
        match own.iter().position(|known| identity(key, known) == what) {
            Some(at) => {
                if own[at].span.source != item.span.source {
                    draft.note(own[at].span, "a later file replaces it");
                }
                own[at] = item;
            }
            None => own.push(item),
        }
    }
}

/// What an item of a list is about: the place in the container, else all of it.
fn identity(key: &str, item: &Node) -> String {
    let text = scalar(item);
    match (key, text) {
        ("volumes" | "devices", Some(text)) => {
            let parts: Vec<&str> = text.split(':').collect();
            parts
                .get(1)
                .or(parts.first())
                .map_or(String::new(), |target| target.trim_end_matches('/').to_owned())
        }
        ("volumes" | "devices", None) => {
            let target = text_at(item, "target").unwrap_or_else(|| item.to_json().to_string());
            target.trim_end_matches('/').to_owned()
        }
        ("configs" | "secrets", None) => {
            text_at(item, "target").or_else(|| text_at(item, "source")).unwrap_or_default()
        }
        ("env_file", None) => text_at(item, "path").unwrap_or_default(),
        (_, Some(text)) => text,
        (_, None) => item.to_json().to_string(),
    }
}
