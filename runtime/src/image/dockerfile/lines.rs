//! Lines joined to instructions, with a place in the file for every byte of them.
//!
//! A line that ends with the escape character goes on in the next; comments and empty lines between are left out, blanks
//! at the beginning of a later line are kept. Comments before anything else may be directives.

use super::heredoc::{self, Raw};
use super::{Refusal, Span};

/// What comments at the top tell the reader.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Directives {
    /// `# escape=`.
    pub(super) escape: char,
}

/// An instruction: its lines in one, and the heredocs behind it.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) text: String,
    /// Where pieces of `text` begin, there and in the file.
    pieces: Vec<(usize, usize)>,
    pub(super) heredocs: Vec<Raw>,
    /// All of it.
    pub(super) span: Span,
}

/// A part of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    pub(super) line: &'a Line,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// What a file consists of.
pub(super) struct Read {
    pub(super) directives: Directives,
    pub(super) lines: Vec<Line>,
    pub(super) refusals: Vec<Refusal>,
    pub(super) remarks: Vec<Refusal>,
}

/// Reads a whole file.
pub(super) fn read(text: &str) -> Read {
    let mut rest =
        Physical { text, at: if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 } };
    let mut read = Read {
        directives: Directives { escape: '\\' },
        lines: Vec::new(),
        refusals: Vec::new(),
        remarks: Vec::new(),
    };
    directives(&mut rest, &mut read);
    instructions(&mut rest, &mut read);
    read
}

/// Reads one instruction that stood behind an `ONBUILD`.
pub(super) fn trigger(text: &str, escape: char) -> Read {
    let mut read = Read {
        directives: Directives { escape },
        lines: Vec::new(),
        refusals: Vec::new(),
        remarks: Vec::new(),
    };
    instructions(&mut Physical { text, at: 0 }, &mut read);
    read
}

/// The lines of the file as they stand there.
pub(super) struct Physical<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Physical<'a> {
    /// The next line's place and text, its end of line included.
    pub(super) fn next(&mut self) -> Option<(usize, &'a str)> {
        let rest = &self.text[self.at..];
        if rest.is_empty() {
            return None;
        }
        let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let line = (self.at, &rest[..end]);
        self.at += end;
        Some(line)
    }

    fn back(&mut self, at: usize) {
        self.at = at;
    }
}

fn directives(rest: &mut Physical<'_>, read: &mut Read) {
    let mut seen = Vec::new();
    while let Some((at, line)) = rest.next() {
        let Some((name, value)) = directive(line.trim()) else {
            rest.back(at);
            return;
        };
        let name = name.to_ascii_lowercase();
        let start = at + line.find(value).unwrap_or(0);
        let span = start..start + value.len();
        if seen.contains(&name) {
            read.refusals
                .push(Refusal::new(span, format!("there are two directives `{name}`")).help("keep one"));
            continue;
        }
        match name.as_str() {
            "escape" => match value {
                "\\" => {}
                "`" => read.directives.escape = '`',
                _ => read.refusals.push(
                    Refusal::new(span, format!("`{value}` cannot be the escape character"))
                        .help("write a backslash or a grave accent"),
                ),
            },
            "syntax" if !is_docker(value) => read.refusals.push(
                Refusal::new(span, format!("the syntax `{value}` is another language than this builder reads"))
                    .help("write `docker/dockerfile:1` or leave the line out; for other frontends take `--builder docker`"),
            ),
            // What the checks of other builders leave out says nothing to this one.
            "syntax" | "check" => {}
            _ => {
                rest.back(at);
                return;
            }
        }
        seen.push(name);
    }
}

/// `# name = value`.
fn directive(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix('#')?.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let good = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric());
    (good && !value.is_empty()).then_some((name, value))
}

/// Whether a `# syntax=` is that of Docker's own language, version 1.
fn is_docker(value: &str) -> bool {
    let value = value.strip_prefix("docker.io/").unwrap_or(value);
    let Some(version) =
        value.strip_prefix("docker/dockerfile").map(|rest| rest.strip_prefix("-upstream").unwrap_or(rest))
    else {
        return false;
    };
    let version = version.split('@').next().unwrap_or_default();
    let of_one = |version: &str| {
        version == "latest"
            || version == "labs"
            || version == "master"
            || version.split(['.', '-']).next().is_some_and(|major| major == "1")
    };
    version.is_empty() || version.strip_prefix(':').is_some_and(of_one)
}

fn instructions(rest: &mut Physical<'_>, read: &mut Read) {
    let escape = read.directives.escape;
    while let Some((at, line)) = rest.next() {
        let content = line.trim_start();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let start = at + line.len() - content.len();
        let mut joined =
            Line { text: String::new(), pieces: Vec::new(), heredocs: Vec::new(), span: start..start };
        let mut goes_on = joined.push(start, content, escape);
        let mut gap = None;
        while goes_on {
            let Some((at, line)) = rest.next() else { break };
            if line.trim().is_empty() {
                gap = gap.or(Some(at..at + line.trim_end_matches(['\r', '\n']).len()));
            } else if !line.trim_start().starts_with('#') {
                goes_on = joined.push(at, line, escape);
            }
        }
        if joined.text.trim().is_empty() {
            continue;
        }
        if let Some(gap) = gap {
            read.remarks.push(
                Refusal::new(gap, "an empty line inside an instruction")
                    .help("leave it out, or begin it with `#`: the instruction goes on behind it"),
            );
        }
        match heredoc::take(&joined, rest) {
            Ok(heredocs) => joined.heredocs = heredocs,
            Err(refusal) => read.refusals.push(refusal),
        }
        if let Some(last) = joined.heredocs.last() {
            joined.span.end = last.end;
        }
        read.lines.push(joined);
    }
}

impl Line {
    /// Adds a line of the file; whether it goes on in the next.
    fn push(&mut self, at: usize, line: &str, escape: char) -> bool {
        let content = line.trim_end_matches(['\r', '\n']);
        self.span.end = at + content.len();
        let (content, goes_on) = match continued(content, escape) {
            Some(content) => (content, true),
            None => (content, false),
        };
        self.pieces.push((self.text.len(), at));
        self.text.push_str(content);
        goes_on
    }

    /// The place of a range of `text`.
    fn place(&self, start: usize, end: usize) -> Span {
        // The piece that a byte is in is the last that begins at it or before.
        let piece = |at: usize| {
            let index = self.pieces.partition_point(|(begin, _)| *begin <= at).saturating_sub(1);
            let (begin, source) = self.pieces[index];
            source + (at - begin)
        };
        if start >= end {
            // Nothing: behind what stands before it.
            let at = start.checked_sub(1).map_or_else(|| piece(0), |before| piece(before) + 1);
            return at..at;
        }
        piece(start)..piece(end - 1) + 1
    }

    /// All of it, blanks around left out.
    pub(super) fn part(&self) -> Part<'_> {
        Part { line: self, start: 0, end: self.text.len() }.trim()
    }
}

/// The line without the escape character at its end, where it has one that nothing escapes.
fn continued(line: &str, escape: char) -> Option<&str> {
    let before = line.trim_end_matches([' ', '\t']).strip_suffix(escape)?;
    (!before.ends_with(escape)).then_some(before)
}

impl<'a> Part<'a> {
    pub(super) fn text(&self) -> &'a str {
        &self.line.text[self.start..self.end]
    }

    /// Its place in the file.
    pub(super) fn span(&self) -> Span {
        self.line.place(self.start, self.end)
    }

    /// A part of this part.
    pub(super) fn slice(&self, start: usize, end: usize) -> Self {
        Self { line: self.line, start: self.start + start, end: self.start + end }
    }

    pub(super) fn trim(&self) -> Self {
        let text = self.text();
        let start = text.len() - text.trim_start().len();
        self.slice(start, start + text.trim().len())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// It as a word.
    pub(super) fn word(&self) -> super::Word {
        super::Word { text: self.text().to_owned(), span: self.span() }
    }

    /// Up to the first blank, and what stands behind the blanks.
    pub(super) fn split_first(&self) -> (Self, Self) {
        let text = self.text();
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        (self.slice(0, end), self.slice(end, text.len()).trim())
    }
}

#[cfg(test)]
mod tests;
