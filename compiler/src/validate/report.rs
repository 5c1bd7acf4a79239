//! Collects the findings of the rules about one document, with a limit for each code.

use std::collections::{BTreeMap, BTreeSet};

use jobc_schema::Pointer;
use serde_json::Value as Json;

use crate::diagnostic::{Code, Diagnostic, DocumentId, Edit, Fix, Location, Safety, Shape, Sink, flow};
use crate::document::{Document, Node, Part, Value};

/// The maximum number of findings per code to show; a generated file may repeat one mistake ten thousand times.
pub(super) const MAX_REPORTED: usize = 100;

/// The findings of one run over one document.
pub(super) struct Report<'a> {
    /// The document that is checked.
    pub(super) document: &'a Document,
    id: DocumentId,
    json: bool,
    sink: &'a mut Sink,
    /// The number of findings of each code, and the last of them.
    found: BTreeMap<Code, (usize, Location)>,
    refused: BTreeSet<Pointer>,
}

impl<'a> Report<'a> {
    pub(super) fn new(document: &'a Document, id: DocumentId, sink: &'a mut Sink) -> Self {
        Self { document, id, json: is_json(document), sink, found: BTreeMap::new(), refused: BTreeSet::new() }
    }

    /// The value at a path of this document.
    pub(super) fn value(&self, pointer: &Pointer) -> Location {
        Location::Path { document: self.id, pointer: pointer.clone(), part: Part::Value }
    }

    /// The key at a path of this document.
    pub(super) fn key(&self, pointer: &Pointer) -> Location {
        Location::Path { document: self.id, pointer: pointer.clone(), part: Part::Key }
    }

    /// Adds a finding; beyond [`SHOWN`] of a code it is only counted.
    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        let place =
            diagnostic.labels.first().map_or(Location::Span(self.document.root.span), |l| l.place.clone());
        let (count, last) = self.found.entry(diagnostic.code).or_insert((0, place.clone()));
        *count += 1;
        if *count <= MAX_REPORTED {
            self.sink.push(diagnostic);
        } else {
            *last = place;
        }
    }

    /// Whether findings of a code are now only counted.
    pub(super) fn is_full(&self, code: Code) -> bool {
        self.found.get(&code).is_some_and(|(count, _)| *count >= MAX_REPORTED)
    }

    /// Counts a finding that is not explained, because enough similar ones were.
    pub(super) fn count(&mut self, code: Code, at: &Pointer) {
        let place = self.value(at);
        let (count, last) = self.found.entry(code).or_insert((MAX_REPORTED, place.clone()));
        // Findings of other codes do not count for this limit.
        *count = MAX_REPORTED.max(*count) + 1;
        *last = place;
    }

    /// Records that a value was reported, so that no later rule reports it again.
    pub(super) fn refuse(&mut self, at: &Pointer) {
        self.refused.insert(at.clone());
    }

    /// Whether a value was already reported.
    pub(super) fn is_refused(&self, at: &Pointer) -> bool {
        self.refused.contains(at)
    }

    /// Reports how many findings were not shown.
    pub(super) fn finish(self) {
        for (code, (count, last)) in self.found {
            if let Some(more) = count.checked_sub(MAX_REPORTED).filter(|more| *more > 0) {
                let mistakes = if more == 1 { "mistake" } else { "mistakes" };
                let message = format!("{more} more {mistakes} of this kind ({}) not shown", code.title());
                self.sink.push(Diagnostic::error(code, message).at_place(last, "the last of them"));
            }
        }
    }

    /// A string as written in this file: quoted if the file is JSON or the text needs quotes.
    pub(super) fn string(&self, text: &str) -> String {
        let plain = !self.json
            && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/')
            && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '.'))
            && !is_ambiguous(text);
        if plain { text.to_owned() } else { quoted(text) }
    }

    /// A fix that renames a key.
    pub(super) fn rename(
        &self,
        diagnostic: Diagnostic,
        at: &Pointer,
        name: &str,
        safety: Safety,
    ) -> Diagnostic {
        let text = if self.json { quoted(name) } else { self.string(name) };
        diagnostic.fix(format!("write `{name}`"), self.key(at), text, safety)
    }

    /// A value on one line, as written in this file.
    pub(super) fn flow(&self, value: &Json) -> String {
        flow(value, self.json)
    }

    /// A fix that replaces an entry's key and value.
    pub(super) fn replace(
        &self,
        diagnostic: Diagnostic,
        at: &Pointer,
        name: &str,
        value: &Json,
    ) -> Diagnostic {
        let mut diagnostic = self.rename(diagnostic, at, name, Safety::Unsafe);
        if let Some(fix) = diagnostic.fixes.last_mut() {
            let text = self.flow(value);
            fix.message = format!("write `{name}: {}`", flow(value, false));
            fix.edits.push(Edit { place: self.value(at), text });
        }
        diagnostic
    }

    /// A fix that moves an entry to another map, optionally with another value.
    pub(super) fn move_entry(
        &self,
        diagnostic: Diagnostic,
        from: &Pointer,
        to: &Pointer,
        value: Option<Json>,
    ) -> Diagnostic {
        diagnostic.move_entry(self.id, from, to, value)
    }

    /// A fix that writes other entries instead of one, which may stay as a comment.
    pub(super) fn write_instead(
        &self,
        mut diagnostic: Diagnostic,
        from: &Pointer,
        entries: &[(Pointer, Json)],
        keep: bool,
    ) -> Diagnostic {
        let (document, pointer) = (self.id, from.clone());
        let old = if keep {
            Location::Shaped { document, pointer, shape: Shape::Comment }
        } else {
            Location::Entry { document, pointer }
        };
        let mut edits = vec![Edit { place: old, text: String::new() }];
        let mut written = vec![];
        for (to, value) in entries {
            written.push(format!("`{}: {}`", to.last().unwrap_or_default(), flow(value, false)));
            let place = Location::Moved { document, from: from.clone(), to: to.clone() };
            edits.push(Edit { place, text: value.to_string() });
        }
        let key = from.last().unwrap_or_default();
        let comment = if keep { format!(", and keep `{key}` as a comment") } else { String::new() };
        let message = format!("write {}{comment}", written.join(" and "));
        diagnostic.fixes.push(Fix { message, edits, safety: Safety::Unsafe });
        diagnostic
    }

    /// A fix that comments an entry out, so that its content is kept.
    pub(super) fn comment_out(&self, diagnostic: Diagnostic, at: &Pointer) -> Diagnostic {
        let message = format!("comment out `{}`", at.last().unwrap_or_default());
        diagnostic.reshape(self.id, at, Shape::Comment, message)
    }

    /// A fix that replaces an entry with other text.
    pub(super) fn reshape(
        &self,
        diagnostic: Diagnostic,
        at: &Pointer,
        shape: Shape,
        message: String,
    ) -> Diagnostic {
        diagnostic.reshape(self.id, at, shape, message)
    }

    /// A fix that removes an entry.
    pub(super) fn remove(&self, diagnostic: Diagnostic, at: &Pointer) -> Diagnostic {
        let message = format!("remove `{}`", at.last().unwrap_or_default());
        let place = Location::Entry { document: self.id, pointer: at.clone() };
        diagnostic.fix(message, place, "", Safety::Unsafe)
    }

    /// Makes the last fix also replace a value.
    pub(super) fn and_write(&self, mut diagnostic: Diagnostic, at: &Pointer, text: &str) -> Diagnostic {
        if let Some(fix) = diagnostic.fixes.last_mut() {
            fix.message += &format!(", and write `{}: {text}`", at.last().unwrap_or_default());
            let text = self.flow(&Json::String(text.to_owned()));
            fix.edits.push(Edit { place: self.value(at), text });
        }
        diagnostic
    }

    /// A fix that adds an entry.
    pub(super) fn set(&self, diagnostic: Diagnostic, at: &Pointer, value: impl Into<Json>) -> Diagnostic {
        diagnostic.set_in(self.id, at, value)
    }

    /// A fix that replaces a value.
    pub(super) fn rewrite(
        &self,
        diagnostic: Diagnostic,
        at: &Pointer,
        text: &str,
        safety: Safety,
    ) -> Diagnostic {
        diagnostic.fix(format!("write `{text}`"), self.value(at), text, safety)
    }
}

/// Whether the file is JSON: its root is a flow map with quoted keys.
fn is_json(document: &Document) -> bool {
    document.root.entries().first().is_some_and(|first| {
        let quoted = (first.key_span.end - first.key_span.start) as usize == first.key.len() + 2;
        quoted && document.root.span.start < first.key_span.start
    })
}

/// A text in double quotes, valid in both YAML and JSON.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

/// Whether YAML would read a plain text as a different value.
fn is_ambiguous(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    matches!(lower.as_str(), "true" | "false" | "null" | "yes" | "no" | "on" | "off")
        || text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-' | b'e'))
}

/// The value as the user wrote it, for a message; strings without quotes and escapes.
pub(super) fn source_text(node: &Node) -> String {
    match &node.value {
        Value::Number { text, .. } | Value::String(text) => text.clone(),
        Value::Bool(b) => b.to_string(),
        _ => node.describe(),
    }
}
