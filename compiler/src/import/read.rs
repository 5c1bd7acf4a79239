//! What a reader makes of a file, and the comments of a file.

use indexmap::IndexMap;

use crate::document::{Document, Node, Value};
use crate::source::{Source, SourceId};

use super::account::Account;

/// Comments of a file by the number of their line, from 0: the text, and whether the line holds nothing else.
pub(crate) type Comments = IndexMap<usize, (String, bool)>;

/// What a reader makes of a file.
pub(crate) struct Read {
    /// The job; `None` if the file has errors.
    pub(crate) document: Option<Document>,
    /// Settings of a target, as `targets.<name>` has them.
    pub(crate) targets: Option<Node>,
    /// What became of each part.
    pub(crate) account: Account,
    /// The comments outside commands, of each file.
    pub(crate) comments: Vec<(SourceId, Comments)>,
}

/// The comments of a source, by the number of their line: the text, and whether the line holds nothing else.
pub(crate) fn comment_lines(original: &Document, source: &Source) -> Comments {
    let mut scalars = Vec::new();
    collect_scalars(&original.root, &mut scalars);
    let mut comments = IndexMap::new();
    let mut start = 0;
    // The line where a comment of several lines begins.
    let mut open: Option<usize> = None;
    for (number, line) in source.text().split_inclusive('\n').enumerate() {
        if let Some((text, _)) = open.and_then(|first| comments.get_mut(&first)) {
            let part =
                line.split("*/").next().unwrap_or_default().trim().trim_start_matches('*').trim_start();
            let text: &mut String = text;
            if !part.is_empty() {
                text.push('\n');
                text.push_str(part);
            }
            open = open.filter(|_| !line.contains("*/"));
            start += line.len();
            continue;
        }
        let inside =
            |at: usize| scalars.iter().any(|range: &std::ops::Range<usize>| range.contains(&(start + at)));
        let marks = line.match_indices('#').chain(line.match_indices("//")).chain(line.match_indices("/*"));
        let blank_before = |at: usize| line[..at].chars().next_back().is_none_or(char::is_whitespace);
        if let Some((at, mark)) = marks.filter(|(at, _)| blank_before(*at) && !inside(*at)).min() {
            let rest = &line[at + mark.len()..];
            let (text, after) =
                if mark == "/*" { rest.split_once("*/").unwrap_or((rest, "")) } else { (rest, "") };
            if mark == "/*" && !rest.contains("*/") {
                open = Some(number);
            }
            let whole = line[..at].trim().is_empty() && after.trim().is_empty();
            comments.insert(number, (text.trim_start_matches('*').trim().to_owned(), whole));
        }
        start += line.len();
    }
    comments
}

fn collect_scalars(node: &Node, ranges: &mut Vec<std::ops::Range<usize>>) {
    match &node.value {
        Value::Mapping(entries) => entries.iter().for_each(|entry| {
            ranges.push(entry.key_span.range());
            collect_scalars(&entry.value, ranges);
        }),
        Value::Sequence(items) => items.iter().for_each(|item| collect_scalars(item, ranges)),
        _ => ranges.push(node.span.range()),
    }
}
