//! Keys of a map: the entries below one, which of a set are present, and which exclude each other.

use jobc_schema::Pointer;

use crate::diagnostic::{Diagnostic, codes};
use crate::document::{Entry, Node};

use super::super::place;
use super::super::report::Report;

/// The entries of the map under a key, with their paths.
pub(super) fn below<'a>(
    node: &'a Node,
    at: &Pointer,
    key: &str,
) -> impl Iterator<Item = (Pointer, &'a Entry)> {
    let at = at.key(key);
    let entries = node.get(key).map_or(&[][..], Node::entries);
    entries.iter().map(move |entry| (at.key(&entry.key), entry))
}

/// Reports keys of one map that exclude each other, at the first.
pub(super) fn exclude(report: &mut Report<'_>, at: &Pointer, keys: &[&str], why: &str) {
    if let Some(diagnostic) = exclusive(report, at, keys, why) {
        report.push(diagnostic);
    }
}

/// The finding for keys of one map that exclude each other.
pub(super) fn exclusive(report: &Report<'_>, at: &Pointer, keys: &[&str], why: &str) -> Option<Diagnostic> {
    let [first, rest @ ..] = keys else { return None };
    let names: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    let (last, others) = names.split_last().map_or(("", &[][..]), |(last, others)| (last.as_str(), others));
    let mut diagnostic = Diagnostic::error(
        codes::EXCLUSIVE,
        format!("{} and {last} exclude each other{}", others.join(", "), place::within(&place::segments(at))),
    )
    .at_place(report.key(&at.key(first)), "");
    for key in rest {
        diagnostic = diagnostic.at_place(report.key(&at.key(key)), "and here");
    }
    Some(diagnostic.note(why))
}

/// Those of the given keys that a map has.
pub(super) fn present<'k>(node: &Node, keys: &[&'k str]) -> Vec<&'k str> {
    keys.iter().copied().filter(|key| node.get(key).is_some()).collect()
}
