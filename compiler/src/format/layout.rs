//! Indentation of two, no trailing spaces, single blank lines, one newline at the end.
//!
//! Lines are shifted, never rewritten. If shifting would change the document, they are not shifted.

use super::indent::{self, Owner};
use super::lines::Lines;
use crate::document::Document;

/// The change of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    /// The new text, without its line end.
    Kept(String),
    /// The line is removed.
    Gone,
}

/// The text with shifted lines, and without shifting any.
pub(super) fn forms(text: &str, document: &Document) -> Vec<String> {
    let text = Lines::new(text);
    let owners = indent::owners(document, &text);
    let moves = indent::moves(document, &text, &owners);
    [Some(&*moves), None].map(|moves| joined(&text, &lines(&text, &owners, moves))).to_vec()
}

/// The change of each line, shifted by the given number of columns or not.
fn lines(text: &Lines<'_>, owners: &[Owner], moves: Option<&[isize]>) -> Vec<Line> {
    let mut out: Vec<Line> = vec![];
    let mut blank_before = true;
    let last = (0..text.line_count()).rev().find(|&line| !text.is_blank(line)).unwrap_or(0);
    for line in 0..text.line_count() {
        let content = text.content(line);
        let inside = owners[line] == Owner::Scalar;
        if text.is_blank(line) && !inside {
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
        let body =
            if moves.is_some() && owners[line] == Owner::Itself { dashes(body) } else { body.to_owned() };
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

/// The formatted text, with its original line endings and a newline at the end.
fn joined(text: &Lines<'_>, lines: &[Line]) -> String {
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
