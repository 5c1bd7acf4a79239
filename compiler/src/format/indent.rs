//! Computes the number of columns by which each line is shifted.

use super::lines::Lines;
use crate::document::{Document, Node, Value};

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// It begins a key or an item, or is blank or a comment.
    Itself,
    /// It continues the text of an earlier line, where spaces may be significant.
    Scalar,
    /// It continues a map or list in brackets.
    Flow,
}

/// The kind of each line.
pub(super) fn owners(document: &Document, text: &Lines<'_>) -> Vec<Owner> {
    let mut owners = vec![Owner::Itself; text.line_count()];
    mark(&document.root, text, &mut owners);
    owners
}

fn mark(node: &Node, text: &Lines<'_>, owners: &mut [Owner]) {
    let (first, last) = (text.line_of(node.span.start as usize), text.line_of(node.span.end as usize));
    let owner = match &node.value {
        Value::Mapping(_) | Value::Sequence(_) => text.is_flow(node).then_some(Owner::Flow),
        _ => Some(Owner::Scalar),
    };
    if let Some(owner) = owner {
        for line in &mut owners[first + 1..=last.max(first)] {
            *line = owner;
        }
    }
    for entry in node.entries() {
        mark(&entry.value, text, owners);
    }
    for item in node.items() {
        mark(item, text, owners);
    }
}

/// The number of columns by which each line is shifted, for an indentation of two.
pub(super) fn moves(document: &Document, text: &Lines<'_>, owners: &[Owner]) -> Vec<isize> {
    let mut wanted: Vec<Option<usize>> = vec![None; text.line_count()];
    place(&document.root, 0, text, &mut wanted);
    let depth = |line: usize| {
        let content = text.content(line);
        content.len() - content.trim_start_matches(' ').len()
    };
    let by = |line: usize| wanted[line].map(|to| to.cast_signed() - depth(line).cast_signed());
    let mut moves = vec![0; text.line_count()];
    let mut last = 0;
    for line in 0..text.line_count() {
        if let Some(columns) = by(line) {
            last = columns;
            moves[line] = columns;
        } else if owners[line] == Owner::Itself {
            moves[line] = comment(line, text, &wanted, &depth).unwrap_or(0);
        } else {
            moves[line] = last;
        }
    }
    moves
}

/// A comment has the depth of the next line at its indentation, else of the previous one, else of the next line.
fn comment(
    line: usize,
    text: &Lines<'_>,
    wanted: &[Option<usize>],
    depth: &dyn Fn(usize) -> usize,
) -> Option<isize> {
    let by = |other: usize| wanted[other].map(|to| to.cast_signed() - depth(other).cast_signed());
    let next = (line + 1..text.line_count()).find(|&other| wanted[other].is_some());
    let before = (0..line).rev().find(|&other| wanted[other].is_some() && depth(other) <= depth(line));
    let same = |other: &usize| depth(*other) == depth(line);
    next.filter(same).or(before.filter(same)).or(next).or(before).and_then(by)
}

/// Records the depth of every line that begins an entry or an item of a block.
fn place(node: &Node, depth: usize, text: &Lines<'_>, wanted: &mut [Option<usize>]) {
    if text.is_flow(node) {
        return;
    }
    match &node.value {
        Value::Mapping(entries) => {
            for entry in entries {
                begin(entry.key_span.start as usize, depth, text, wanted);
                let below = match &entry.value.value {
                    Value::Sequence(items) => {
                        // `- ` may be at its key's indentation or two columns deeper: keep it.
                        let dash = items.first().and_then(|item| dash(item, text));
                        let key = text.column(entry.key_span.start as usize);
                        let further = dash.is_some_and(|at| text.column(at) > key);
                        depth + if further { 2 } else { 0 }
                    }
                    _ => depth + 2,
                };
                place(&entry.value, below, text, wanted);
            }
        }
        Value::Sequence(items) => {
            for item in items {
                if let Some(dash) = dash(item, text) {
                    begin(dash, depth, text, wanted);
                }
                place(item, depth + 2, text, wanted);
            }
        }
        _ => {}
    }
}

/// Records the depth of a line if only spaces precede an offset.
fn begin(offset: usize, depth: usize, text: &Lines<'_>, wanted: &mut [Option<usize>]) {
    let line = text.line_of(offset);
    let before = &text.as_str()[text.line(line).start..offset];
    if before.bytes().all(|byte| byte == b' ') {
        wanted[line] = Some(depth);
    }
}

/// The offset of an item's dash.
fn dash(item: &Node, text: &Lines<'_>) -> Option<usize> {
    let start = item.span.start as usize;
    if text.as_str()[start..].starts_with("- ") && matches!(item.value, Value::Sequence(_)) {
        return None;
    }
    let before = text.as_str()[..start].trim_end_matches([' ', '\n', '\r']);
    before.ends_with('-').then(|| before.len() - 1)
}
