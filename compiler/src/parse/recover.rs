//! The tree of a YAML text with syntax errors: everything that can be parsed, with its positions.
//!
//! The text is divided by indentation into the lines of each key. Lines that can be parsed alone are; other lines
//! are divided again, down to a single line, of which the key is kept.

use std::ops::Range;

use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::document::{Document, Entry, Node, Value};
use crate::source::{Source, SourceId, Sources, Span};

use super::parse;

/// The number of lines from which a block is divided without trying to parse it: that was tried with the whole text.
const LARGE: usize = 100;

/// The maximum number of findings about parts of a text.
const MAX_FINDINGS: usize = 50;

/// The maximum depth of division.
const MAX_DEPTH: usize = 32;

/// The readable part of a text with syntax errors.
#[derive(Debug)]
pub struct Recovered {
    /// The tree; a value that cannot be read is its text.
    pub document: Document,
    /// The places of values that cannot be read.
    pub broken: Vec<Range<usize>>,
    /// Whether lines are left out whose place in the tree is not known: what seems to be missing may be in them.
    pub has_gaps: bool,
    /// What is wrong with the parts, each parsed alone: with those that can be read, and those that cannot.
    pub findings: Vec<Diagnostic>,
}

/// The readable part of a text; `None` if no line of it has a key.
pub fn recover(text: &str) -> Option<Recovered> {
    let mut lines = Lines { text, broken: vec![], has_gaps: false, findings: vec![] };
    let entries = lines.entries(0..text.len(), 0, 0);
    let (first, last) = (entries.first()?, entries.last()?);
    let span = span(first.key_span.start as usize, last.value.span.end as usize);
    let document = Document { root: Node { span, value: Value::Mapping(entries) } };
    let Lines { broken, has_gaps, findings, .. } = lines;
    Some(Recovered { document, broken, has_gaps, findings })
}

/// A fragment of a text on its own, and what is wrong with it.
fn parse_alone(text: &str) -> (Option<Document>, Vec<Diagnostic>) {
    let mut sources = Sources::new();
    let id = sources.add(Source::new("job.yaml", text));
    let mut sink = Sink::new();
    let document = parse(&sources, id, &mut sink);
    (document, sink.into_diagnostics())
}

fn span(start: usize, end: usize) -> Span {
    Span::new(SourceId::default(), start, end)
}

/// A text, and what of it could not be read.
struct Lines<'t> {
    text: &'t str,
    broken: Vec<Range<usize>>,
    has_gaps: bool,
    findings: Vec<Diagnostic>,
}

impl Lines<'_> {
    /// Keeps findings about the fragment at an offset. Its anchors may be elsewhere.
    fn keep(&mut self, found: Vec<Diagnostic>, start: usize) {
        let by = i32::try_from(start).unwrap_or_default();
        let room = MAX_FINDINGS.saturating_sub(self.findings.len());
        for mut finding in found.into_iter().filter(|finding| finding.code != codes::ALIAS).take(room) {
            let edits = finding.fixes.iter_mut().flat_map(|fix| &mut fix.edits).map(|edit| &mut edit.place);
            for place in finding.labels.iter_mut().map(|label| &mut label.place).chain(edits) {
                if let Location::Span(span) = place {
                    span.shift(by);
                }
            }
            self.findings.push(finding);
        }
    }

    /// The entries of a block map whose keys begin in a column.
    fn entries(&mut self, range: Range<usize>, column: usize, depth: usize) -> Vec<Entry> {
        let text = self.text;
        let mut lines = content_lines(&text[range.clone()], range.start);
        self.has_gaps |=
            lines.any(|(_, line)| indent(line) < column || indent(line) == column && key(line).is_none());
        let starts: Vec<usize> = content_lines(&text[range.clone()], range.start)
            .filter(|(_, line)| indent(line) == column && key(line).is_some())
            .map(|(at, _)| at)
            .collect();
        let mut found: Vec<Entry> = vec![];
        for (number, &start) in starts.iter().enumerate() {
            let end = starts.get(number + 1).copied().unwrap_or(range.end);
            for entry in self.block(start..end, depth) {
                // Only nearby keys are compared: a broken text is not worth more.
                if !found.iter().rev().take(64).any(|known| known.key == entry.key) {
                    found.push(entry);
                }
            }
        }
        found
    }

    /// The lines of one key.
    fn block(&mut self, range: Range<usize>, depth: usize) -> Vec<Entry> {
        let text = self.text;
        let lines = &text[range.clone()];
        let first = lines.lines().next().unwrap_or_default();
        let Some((name, colon)) = key(first) else { return vec![] };
        let rest = first[colon + 1..].split(" #").next().unwrap_or_default().trim();
        let is_large = rest.is_empty() && lines.lines().nth(LARGE).is_some();
        let mut found = vec![];
        if !is_large {
            let (read, findings) = alone(lines, range.start);
            if let Some(read) = read {
                self.keep(findings, range.start);
                return read;
            }
            found = findings;
        }
        let key_span = span(range.start + name.start, range.start + name.end);
        let text_of_key = first[name].trim_matches(['"', '\'']).to_owned();
        let after = range.start + colon + 1;
        let value = if rest.is_empty() && depth < MAX_DEPTH {
            let below = range.start + first.len() + usize::from(lines.len() > first.len());
            self.children(below.min(range.end)..range.end, depth + 1)
        } else {
            let start = after + first[colon + 1..].find(rest).unwrap_or(0);
            (!rest.is_empty()).then(|| Node {
                span: span(start, start + rest.len()),
                value: Value::String(rest.to_owned()),
            })
        };
        if !rest.is_empty() || value.is_none() {
            self.keep(found, range.start);
            self.broken.push(after..range.end);
        }
        let value = value.unwrap_or(Node { span: span(after, after), value: Value::Null });
        vec![Entry { key: text_of_key, key_span, value }]
    }

    /// The value in the lines below a key.
    fn children(&mut self, range: Range<usize>, depth: usize) -> Option<Node> {
        let text = self.text;
        let lines = &text[range.clone()];
        let (start, line) = content_lines(lines, range.start).next()?;
        let column = indent(line);
        if !line[column..].starts_with("- ") {
            let entries = self.entries(start..range.end, column, depth);
            let (first, last) = (entries.first()?, entries.last()?);
            let span = span(first.key_span.start as usize, last.value.span.end as usize);
            return Some(Node { span, value: Value::Mapping(entries) });
        }
        let dashes: Vec<usize> = content_lines(lines, range.start)
            .filter(|(_, line)| indent(line) == column && line[column..].starts_with('-'))
            .map(|(at, _)| at)
            .collect();
        let mut items = vec![];
        for (number, &start) in dashes.iter().enumerate() {
            let end = dashes.get(number + 1).copied().unwrap_or(range.end);
            let (read, found) = parse_alone(&text[start..end]);
            self.keep(found, start);
            if let Some(Value::Sequence(read)) = read.map(|document| document.root.value) {
                items.extend(read.into_iter().map(|mut item| {
                    item.shift(i32::try_from(start).unwrap_or_default());
                    item
                }));
            } else {
                self.broken.push(start..end);
                items.push(Node { span: span(start + column, start + column + 1), value: Value::Null });
            }
        }
        let end = items.last().map_or(start, |item| item.span.end as usize);
        Some(Node { span: span(start + column, end), value: Value::Sequence(items) })
    }
}

/// The value of lines parsed alone, with positions in the whole text, and what is wrong with the lines.
fn alone(lines: &str, start: usize) -> (Option<Vec<Entry>>, Vec<Diagnostic>) {
    let (document, found) = parse_alone(lines);
    let entries = document.and_then(|Document { mut root }| {
        root.shift(i32::try_from(start).ok()?);
        match root.value {
            Value::Mapping(entries) if !entries.is_empty() => Some(entries),
            _ => None,
        }
    });
    (entries, found)
}

/// The lines that are not blank and not only a comment, with their offsets.
fn content_lines(lines: &str, start: usize) -> impl Iterator<Item = (usize, &str)> {
    let mut at = start;
    lines
        .split_inclusive('\n')
        .map(move |line| {
            let start = at;
            at += line.len();
            (start, line)
        })
        .filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The range of the key that a line begins with, and the position of its colon.
fn key(line: &str) -> Option<(Range<usize>, usize)> {
    let start = indent(line);
    let body = line[start..].trim_end();
    let end = match body.chars().next()? {
        quote @ ('"' | '\'') => body[1..].find(quote)? + 2,
        '#' | '-' | '{' | '[' | '}' | ']' | '?' | '&' | '*' | '!' | '|' | '>' | '%' | '@' | '`' => {
            return None;
        }
        _ => {
            let at = |(at, _): (usize, &str)| body[at + 1..].is_empty() || body[at + 1..].starts_with(' ');
            let colon = body.match_indices(':').find(|found| at(*found))?.0;
            return (!body[..colon].contains(" #"))
                .then(|| (start..start + body[..colon].trim_end().len(), start + colon));
        }
    };
    let colon = end + body[end..].find(':').filter(|&at| body[end..end + at].trim().is_empty())?;
    Some((start..start + end, start + colon))
}

#[cfg(test)]
mod tests;
