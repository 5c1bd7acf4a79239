//! Duplicate keys, with suggested edits: an identical entry is removed, a role gets
//! another name, and any other entry becomes a comment.

use crate::diagnostic::{Location, Safety, codes};
use crate::document::{Entry, Node};
use crate::parse::keys::duplicate;
use crate::parse::report::Report;
use crate::source::Span;

/// Reports an entry whose key an earlier entry has.
pub(super) fn report(
    text: &str,
    entries: &[Entry],
    (key, span): (&str, Span),
    node: &Node,
    report: &mut Report<'_>,
) {
    if !report.wants(codes::DUPLICATE_KEY, span) {
        return;
    }
    let Some(first) = entries.iter().find(|entry| entry.key == key) else { return };
    let mut diagnostic = duplicate(key, span, first.key_span);
    let is_same = first.value.to_json() == node.to_json();
    let (start, end) = (span.start as usize, node.span.end.max(span.end) as usize);
    let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let in_lines = text[line..start].trim().is_empty() && node.span.source == span.source;
    let whole = text[..end].trim_end().len();
    let last = text[whole..].find('\n').map_or(text.len(), |at| whole + at + 1);
    let in_braces = text[whole..last].trim_start().starts_with([',', '}']);
    if !is_same && node.get("run").is_some() {
        // Two roles with one name; references to the name mean the first.
        let name = format!("{key}-2");
        diagnostic = diagnostic.fix(format!("write `{name}`"), Location::Span(span), name, Safety::Unsafe);
    }
    if in_lines && !in_braces {
        let lines = Location::Span(report.span(line, last));
        let indent = start - line;
        let comment = |line: &str| {
            let blanks = line.len() - line.trim_start_matches(' ').len();
            let (before, rest) = line.split_at(indent.min(blanks));
            let mark = if rest.trim().is_empty() { "" } else { "# " };
            format!("{before}{mark}{rest}")
        };
        diagnostic = if is_same {
            diagnostic.fix("remove the second", lines, "", Safety::Unsafe)
        } else {
            let commented: String = text[line..last].split_inclusive('\n').map(comment).collect();
            diagnostic.fix("comment out the second", lines, commented, Safety::Unsafe)
        };
    } else if let Some(before) = entries.last().filter(|_| is_same) {
        let from = before.value.span.end.max(before.key_span.end) as usize;
        if text.get(from..start).is_some_and(|between| between.trim_matches([' ', ',']).is_empty()) {
            let place = Location::Span(report.span(from, end));
            diagnostic = diagnostic.fix("remove the second", place, "", Safety::Unsafe);
        }
    }
    report.push(diagnostic);
}
