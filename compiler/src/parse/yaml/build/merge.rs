//! `<<` of YAML 1.1: reported, and then read as intended, so that nothing seems to be missing.

use std::ops::Range;

use crate::diagnostic::{Diagnostic, Location, Safety, codes, flow};
use crate::document::{Entry, Node, Value};
use crate::source::Span;

use super::super::super::report::Report;

/// A `<<` with what it names.
pub(super) struct Merge {
    /// From `<<` to the end of its value.
    pub range: Range<usize>,
    pub entries: Vec<Entry>,
    /// Whether all that it names are maps.
    pub is_sound: bool,
}

impl Merge {
    pub(super) fn new(key: Span, node: Node) -> Self {
        let mut merge =
            Self { range: key.start as usize..node.span.end as usize, entries: vec![], is_sound: true };
        merge.take(node);
        merge
    }

    fn take(&mut self, node: Node) {
        match node.value {
            Value::Mapping(entries) => self.entries.extend(entries),
            Value::Sequence(items) => items.into_iter().for_each(|item| self.take(item)),
            _ => self.is_sound = false,
        }
    }
}

/// Reports a `<<`; a fix writes the entries that the map gets from it.
pub(super) fn report(
    text: &str,
    range: &Range<usize>,
    entries: &[Entry],
    (in_flow, is_sound): (bool, bool),
    report: &mut Report<'_>,
) {
    let key = report.span(range.start, range.start + "<<".len());
    if !report.wants(codes::MERGE, key) {
        return;
    }
    let mut diagnostic = Diagnostic::error(codes::MERGE, "`<<` is not part of version 1: write the keys out")
        .at_span(key, "merges another map")
        .note("YAML 1.2 has no merge key; an alias can repeat a whole value: `env: *env`")
        .note("values at the job level, such as `image` and `env`, apply to every role");
    let line = text[..range.start].rfind('\n').map_or(0, |end| end + 1);
    let indent = &text[line..range.start];
    // After a dash, further lines begin below the key.
    let indent: String = indent.chars().map(|c| if c == '-' { ' ' } else { c }).collect();
    if is_sound && !entries.is_empty() && (in_flow || indent.trim().is_empty()) {
        let written: Vec<String> = entries.iter().map(|entry| write(text, entry)).collect();
        let between = if in_flow { ", ".to_owned() } else { format!("\n{indent}") };
        let place = Location::Span(report.span(range.start, range.end));
        diagnostic = diagnostic.fix("write the keys out", place, written.join(&between), Safety::Safe);
    }
    report.push(diagnostic);
}

/// An entry on one line: numbers in their own digits.
fn write(text: &str, entry: &Entry) -> String {
    let key = &text[entry.key_span.range()];
    let value = match &entry.value.value {
        Value::Number { text, .. } => text.clone(),
        _ => flow(&entry.value.to_json(), false),
    };
    format!("{key}: {value}")
}
