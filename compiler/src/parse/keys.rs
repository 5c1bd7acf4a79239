//! Detects duplicate keys in a map, in linear time.

use std::collections::BTreeMap;

use crate::diagnostic::{Diagnostic, codes};
use crate::document::Entry;
use crate::source::Span;

use super::report::Report;

/// Maps up to this size are searched linearly; larger ones get an index.
const MAX_SEARCHED: usize = 16;

/// The keys of a map that is being parsed.
#[derive(Debug, Default)]
pub(super) struct Keys {
    index: BTreeMap<String, Span>,
    indexed: usize,
}

impl Keys {
    /// The index of an earlier entry with the same key, if any.
    pub(super) fn find(&mut self, entries: &[Entry], key: &str) -> Option<Span> {
        if entries.len() <= MAX_SEARCHED {
            return entries.iter().find(|entry| entry.key == key).map(|entry| entry.key_span);
        }
        for entry in &entries[self.indexed..] {
            self.index.entry(entry.key.clone()).or_insert(entry.key_span);
        }
        self.indexed = entries.len();
        self.index.get(key).copied()
    }

    /// Finds and reports a duplicate key; `true` if there is one.
    pub(super) fn twice(&mut self, entries: &[Entry], key: &str, at: Span, report: &mut Report<'_>) -> bool {
        let Some(first) = self.find(entries, key) else { return false };
        if report.wants(codes::DUPLICATE_KEY, at) {
            report.push(duplicate(key, at, first));
        }
        true
    }
}

/// The finding for a duplicate key.
pub(super) fn duplicate(key: &str, at: Span, first: Span) -> Diagnostic {
    Diagnostic::error(codes::DUPLICATE_KEY, format!("duplicate key `{}`", shorten(key)))
        .at_span(at, "here again")
        .at_span(first, "first here")
        .note("keep one of the two")
}

/// A text shortened to one line for a message.
pub(super) fn shorten(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.len() == text.len() && line.chars().count() <= 60 {
        return text.to_owned();
    }
    let mut short: String = line.chars().take(57).collect();
    short.push('…');
    short
}
