//! The tree of an open text: after an edit, only the changed part is parsed again.
//!
//! While a text has syntax errors, its tree is the part that can be parsed, with positions in the current
//! text.

use std::cell::OnceCell;

use camino::Utf8Path;
use jobc_compiler::diagnostic::Sink;
use jobc_compiler::document::{Document, Node, Value};
use jobc_compiler::parse::{self, Change, patch};
use jobc_compiler::source::{Source, Sources};

use crate::names::Mention;
use crate::text::Text;

/// Whether a text is JSON, by its name or its beginning.
pub(crate) fn is_json(path: Option<&Utf8Path>, text: &str) -> bool {
    let extension = path.and_then(Utf8Path::extension).unwrap_or_default();
    let begins = text.trim_start_matches('\u{feff}').trim_start();
    matches!(extension, "json" | "jsonc")
        || ["{\"", "{ \"", "{\n", "//", "/*"].iter().any(|start| begins.starts_with(start))
        || begins == "{"
}

/// A text and its tree.
pub(crate) struct Tree {
    pub(crate) text: Text,
    pub(crate) document: Document,
    /// Whether the text has no syntax errors; otherwise the tree is incomplete.
    pub(crate) parses: bool,
    /// Whether parsing it had no findings.
    pub(crate) is_clean: bool,
    /// The names in it, once requested.
    pub(crate) mentions: OnceCell<Vec<Mention>>,
}

impl Tree {
    /// The tree of a text, updated from the tree of the previous text if there is one; `None` for an empty
    /// text.
    pub(crate) fn read(before: Option<Self>, path: Option<&Utf8Path>, text: &Text) -> Option<Self> {
        let new = text.as_str();
        let mut before = before;
        if let Some(tree) = &mut before
            && tree.text.as_str() == new
        {
            return before;
        }
        let yaml = !is_json(path, new);
        if let Some(mut tree) = before.take_if(|tree| yaml && tree.parses && tree.is_clean) {
            if patch(&mut tree.document, tree.text.as_str(), new) {
                return Some(Self { text: text.clone(), mentions: OnceCell::new(), ..tree });
            }
            before = Some(tree);
        }
        let mut sources = Sources::new();
        let id = sources.add(Source::new(path.unwrap_or("job.yaml".into()), new));
        let mut sink = Sink::new();
        let root = parse::parse(&sources, id, &mut sink);
        let (parses, is_clean) = (root.is_some(), sink.diagnostics().is_empty());
        let recovered = || if yaml { Some(parse::recover(new)?.document) } else { None };
        let document = root.or_else(recovered).or_else(|| before.map(|tree| moved(tree, new)))?;
        Some(Self { text: text.clone(), document, parses, is_clean, mentions: OnceCell::new() })
    }
}

/// The tree of the last text, with its positions shifted by the edits since.
fn moved(tree: Tree, new: &str) -> Document {
    let change = Change::between(tree.text.as_str(), new);
    let mut document = tree.document;
    move_node(&mut document.root, change);
    document
}

fn move_node(node: &mut Node, change: Change) {
    let to = |offset: u32| {
        let at = offset as usize;
        let moved = match at {
            _ if at <= change.start => at,
            _ if at >= change.old_end => at + change.new_end - change.old_end,
            _ => change.start,
        };
        u32::try_from(moved).unwrap_or(u32::MAX)
    };
    (node.span.start, node.span.end) = (to(node.span.start), to(node.span.end));
    match &mut node.value {
        Value::Mapping(entries) => {
            for entry in entries {
                (entry.key_span.start, entry.key_span.end) =
                    (to(entry.key_span.start), to(entry.key_span.end));
                move_node(&mut entry.value, change);
            }
        }
        Value::Sequence(items) => items.iter_mut().for_each(|item| move_node(item, change)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
