//! The job that a reader is writing, with the account of what it read.

use crate::diagnostic::{Diagnostic, Location, Safety, Sink, codes};
use crate::document::{Document, Entry, Node, Value};
use crate::source::Span;

use super::account::Account;
use super::nodes::{entry, map, number};

/// A job in the making.
pub(super) struct Draft<'s> {
    /// The findings.
    pub(super) sink: &'s mut Sink,
    /// What became of each part.
    pub(super) account: Account,
    /// Whether files that the file names may be absent: the job is one to edit, which does not run yet.
    pub(super) is_sketch: bool,
    root: Node,
    /// Settings of a target, by path below `targets.<name>`.
    settings: Node,
}

impl<'s> Draft<'s> {
    /// An empty job.
    pub(super) fn new(at: Span, sink: &'s mut Sink) -> Self {
        let root = map(at, vec![entry("version", at, number(at, 1))]);
        Self { sink, account: Account::default(), is_sketch: false, root, settings: map(at, vec![]) }
    }

    /// Sets a field, with the maps around it; a later value replaces an earlier one.
    pub(super) fn set(&mut self, path: &[&str], key: Span, value: Node) {
        insert(&mut self.root, path, key, value);
    }

    /// Sets a field, and accounts for the part that it comes from.
    pub(super) fn field(&mut self, path: &[&str], part: Span, value: Node) {
        self.account.field(part, path.join("."));
        self.set(path, part, value);
    }

    /// Sets a field of a target, and accounts for the part that it comes from.
    pub(super) fn target(&mut self, path: &[&str], part: Span, value: Node) {
        self.account.target(part, path.join("."));
        insert(&mut self.settings, path, part, value);
    }

    /// Removes a field.
    pub(super) fn remove(&mut self, path: &[&str]) {
        let Some((last, before)) = path.split_last() else { return };
        let mut node = &mut self.root;
        for key in before {
            let Value::Mapping(entries) = &mut node.value else { return };
            let Some(entry) = entries.iter_mut().find(|entry| entry.key == *key) else { return };
            node = &mut entry.value;
        }
        if let Value::Mapping(entries) = &mut node.value {
            entries.retain(|entry| entry.key != *last);
        }
    }

    /// The value of a field so far.
    pub(super) fn get(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(&self.root, |node, key| node.get(key))
    }

    /// Sets a field of a target that the job needs there, and no part of the file asks for.
    pub(super) fn need_of_target(&mut self, path: &[&str], at: Span, value: Node) {
        insert(&mut self.settings, path, at, value);
    }

    /// The value of a setting of the target so far.
    pub(super) fn setting(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(&self.settings, |node, key| node.get(key))
    }

    /// Appends to a list.
    pub(super) fn push(&mut self, path: &[&str], part: Span, value: Node) {
        self.account.field(part, path.join("."));
        let mut items = self.get(path).map_or(vec![], |list| list.items().to_vec());
        items.push(value);
        self.set(path, part, super::nodes::sequence(part, items));
    }

    /// Says that a part needs no field.
    pub(super) fn note(&mut self, part: Span, why: impl Into<String>) {
        self.account.note(part, why);
    }

    /// Refuses a part: it has no counterpart.
    pub(super) fn refuse(&mut self, part: Span, message: impl Into<String>, instead: impl Into<String>) {
        self.report(part, Diagnostic::error(codes::IMPORT_REFUSED, message), instead);
    }

    /// Reports an invalid part.
    pub(super) fn invalid(&mut self, part: Span, message: impl Into<String>, instead: impl Into<String>) {
        self.report(part, Diagnostic::error(codes::IMPORT_VALUE, message), instead);
    }

    /// Reports a file that is absent: a warning where the job is one to edit.
    pub(super) fn lacks(&mut self, part: Span, message: impl Into<String>, instead: impl Into<String>) {
        let message = message.into();
        if self.is_sketch {
            self.changed(part, format!("{message}: what it has is not in the job"), instead);
        } else {
            self.invalid(part, message, instead);
        }
    }

    /// Reports a misspelt name, and offers the one that is meant in its place.
    pub(super) fn unknown(&mut self, name: Span, message: impl Into<String>, near: Option<&str>) {
        let message = message.into();
        let found = match near {
            Some(near) => Diagnostic::error(
                codes::IMPORT_VALUE,
                format!("{message}; did you mean `{near}`?"),
            )
            .fix(format!("write `{near}`"), Location::Span(name), near, Safety::Unsafe),
            None => Diagnostic::error(codes::IMPORT_VALUE, message),
        };
        self.report(name, found, "");
    }

    /// Warns of a part that means something else here.
    pub(super) fn changed(&mut self, part: Span, message: impl Into<String>, note: impl Into<String>) {
        self.report(part, Diagnostic::warning(codes::IMPORT_CHANGED, message), note);
    }

    /// Warns of a part that the tool itself ignores.
    pub(super) fn ignored(&mut self, part: Span, message: impl Into<String>, note: impl Into<String>) {
        self.report(part, Diagnostic::warning(codes::IMPORT_IGNORED, message), note);
    }

    fn report(&mut self, part: Span, found: Diagnostic, note: impl Into<String>) {
        let note = note.into();
        let found = found.at_span(part, "");
        let found = if note.is_empty() { found } else { found.note(note) };
        self.account.finding(part, &found);
        self.sink.push(found);
    }

    /// The job, the settings of a target, and the account.
    pub(super) fn finish(self) -> (Document, Option<Node>, Account) {
        let settings = (!self.settings.entries().is_empty()).then_some(self.settings);
        (Document { root: self.root }, settings, self.account)
    }
}

fn insert(node: &mut Node, path: &[&str], key: Span, value: Node) {
    let [first, rest @ ..] = path else {
        *node = value;
        return;
    };
    if !matches!(node.value, Value::Mapping(_)) {
        *node = map(node.span, vec![]);
    }
    let Value::Mapping(entries) = &mut node.value else { return };
    let at = entries.iter().position(|entry| entry.key == *first).unwrap_or_else(|| {
        entries.push(Entry { key: (*first).to_owned(), key_span: key, value: map(key, vec![]) });
        entries.len() - 1
    });
    if rest.is_empty() {
        entries[at].key_span = key;
    }
    insert(&mut entries[at].value, rest, key, value);
}
