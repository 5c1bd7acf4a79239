//! Formatting: indentation of two, no trailing spaces, single blank lines, one newline at the end.
//!
//! Lines are moved and never rewritten, so comments and quoting stay. The result is parsed again, and only used if it
//! is the same document. Where moving lines would change it, they stay.

mod indent;

use jobc_compiler::diagnostic::Sink;
use jobc_compiler::document::{Document, Node, Value};
use jobc_compiler::parse;
use jobc_compiler::source::{Source, Sources};
use lsp_types::TextEdit;

use crate::text::Text;

/// The change of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    /// The new text, without its line end.
    Kept(String),
    /// The line is removed.
    Gone,
}

/// The edits that format a YAML text; none for JSON, or for a text that does not parse.
pub(crate) fn format(text: &Text) -> Vec<TextEdit> {
    let source = text.as_str();
    if source.trim_start().starts_with(['{', '/']) {
        return vec![];
    }
    let Some(document) = parse_valid(source) else { return vec![] };
    let owners = indent::owners(&document, text);
    let moved = indent::moves(&document, text, &owners);
    for moves in [Some(moved), None] {
        let lines = lines(text, &owners, moves.as_deref());
        let new = joined(text, &lines);
        if new == source {
            return vec![];
        }
        if parse_valid(&new).is_some_and(|formatted| same(&formatted.root, &document.root)) {
            return edits(text, &lines);
        }
    }
    vec![]
}

/// The change of each line, when it is moved by the given number of columns or stays.
fn lines(text: &Text, owners: &[indent::Owner], moves: Option<&[isize]>) -> Vec<Line> {
    let mut out: Vec<Line> = vec![];
    let mut blank_before = true;
    let last = (0..text.line_count()).rev().find(|&line| !is_blank(text, line)).unwrap_or(0);
    for line in 0..text.line_count() {
        let content = &text.as_str()[text.line(line)];
        let inside = owners[line] == indent::Owner::Scalar;
        if is_blank(text, line) && !inside {
            // The empty line after the last newline is not a line.
            let goes = blank_before || line > last;
            let end = line + 1 == text.line_count();
            out.push(if goes && !end { Line::Gone } else { Line::Kept(String::new()) });
            blank_before = true;
            continue;
        }
        blank_before = false;
        let depth = content.len() - content.trim_start_matches(' ').len();
        let wanted = moves.map_or(depth, |moves| depth.saturating_add_signed(moves[line]));
        let body = if inside { &content[depth..] } else { content[depth..].trim_end() };
        let indent = if body.is_empty() { 0 } else { wanted };
        let body = if moves.is_some() && owners[line] == indent::Owner::Itself {
            dashes(body)
        } else {
            body.to_owned()
        };
        out.push(Line::Kept(format!("{}{body}", " ".repeat(indent))));
    }
    out
}

/// A line with one space after each dash at its start.
fn dashes(body: &str) -> String {
    match body.strip_prefix("- ").map(str::trim_start) {
        Some(rest) if !rest.starts_with('#') => format!("- {}", dashes(rest)),
        _ => body.to_owned(),
    }
}

fn is_blank(text: &Text, line: usize) -> bool {
    text.as_str()[text.line(line)].trim().is_empty()
}

/// The formatted text, with its original line ends and one at the end.
fn joined(text: &Text, lines: &[Line]) -> String {
    let mut out = String::new();
    for (number, line) in lines.iter().enumerate() {
        if let Line::Kept(content) = line {
            let next = text.line(number + 1).start;
            let end = if number + 1 < lines.len() { &text.as_str()[text.line(number).end..next] } else { "" };
            out.push_str(content);
            out.push_str(end);
        }
    }
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

fn edits(text: &Text, lines: &[Line]) -> Vec<TextEdit> {
    let mut out = vec![];
    for (number, line) in lines.iter().enumerate() {
        let bytes = text.line(number);
        match line {
            Line::Kept(content) if text.as_str()[bytes.clone()] != **content => {
                out.push(TextEdit { range: text.range(bytes), new_text: content.clone() });
            }
            Line::Kept(_) => {}
            Line::Gone => {
                let next = text.line(number + 1).start;
                out.push(TextEdit { range: text.range(bytes.start..next), new_text: String::new() });
            }
        }
    }
    if !text.as_str().ends_with('\n') {
        let end = text.as_str().len();
        match out.last_mut().filter(|edit| edit.range.end == text.position(end)) {
            Some(edit) => edit.new_text.push('\n'),
            None => out.push(TextEdit { range: text.range(end..end), new_text: "\n".to_owned() }),
        }
    }
    out
}

/// The tree of a text without syntax errors.
fn parse_valid(text: &str) -> Option<Document> {
    let mut sources = Sources::new();
    let id = sources.add(Source::new("job.yaml", text));
    let mut sink = Sink::new();
    let document = parse::parse(&sources, id, &mut sink);
    document.filter(|_| !sink.has_errors())
}

/// Whether two trees are equal, ignoring positions.
fn same(a: &Node, b: &Node) -> bool {
    match (&a.value, &b.value) {
        (Value::Mapping(a), Value::Mapping(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.key == b.key && same(&a.value, &b.value))
        }
        (Value::Sequence(a), Value::Sequence(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests;
