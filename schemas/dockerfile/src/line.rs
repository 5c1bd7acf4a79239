//! A line of a Dockerfile that maps each of its bytes to a place in the file.

use super::forms::Word;
use super::refusal::Span;

/// An instruction: its lines joined, and the heredocs after it.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) text: String,
    /// Where pieces of `text` begin, in it and in the file.
    pub(super) pieces: Vec<(usize, usize)>,
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

/// A heredoc as written in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Raw {
    /// Its name without quotes.
    pub(super) name: String,
    /// Whether leading tabs are removed: `<<-`.
    pub(super) chomp: bool,
    /// Whether its name is unquoted.
    pub(super) expand: bool,
    /// Its content, including tabs.
    pub(super) content: String,
    /// The span of its content.
    pub(super) span: Span,
    /// The end of the line with its name.
    pub(super) end: usize,
}

/// The unmodified lines of the file.
pub(super) struct Physical<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl<'a> Physical<'a> {
    /// The span and text of the next line, including its line ending.
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

    pub(super) fn back(&mut self, at: usize) {
        self.at = at;
    }
}

impl Line {
    /// Adds a line of the file; returns whether the instruction continues on the next line.
    pub(super) fn push(&mut self, at: usize, line: &str, escape: char) -> bool {
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

    /// The span of a range of `text`.
    fn place(&self, start: usize, end: usize) -> Span {
        // The piece that contains a byte is the last one that begins at or before it.
        let piece = |at: usize| {
            let index = self.pieces.partition_point(|(begin, _)| *begin <= at).saturating_sub(1);
            let (begin, source) = self.pieces[index];
            source + (at - begin)
        };
        if start >= end {
            // An empty range: its position is after the text before it.
            let at = start.checked_sub(1).map_or_else(|| piece(0), |before| piece(before) + 1);
            return at..at;
        }
        piece(start)..piece(end - 1) + 1
    }

    /// The whole line, without surrounding blanks.
    pub(super) fn part(&self) -> Part<'_> {
        Part { line: self, start: 0, end: self.text.len() }.trim()
    }
}

/// The span of blanks other than spaces and tabs after an escape character at the end of a line: in other builders
/// the line ends there.
pub(super) fn blanks_after_escape(line: &str, escape: char) -> Option<Span> {
    let line = line.trim_end_matches(['\r', '\n']);
    let before = line.trim_end_matches(is_blank);
    let is_plain = |c: char| matches!(c, ' ' | '\t');
    (before.ends_with(escape) && !line[before.len()..].chars().all(is_plain))
        .then_some(before.len()..line.len())
}

/// The line without the escape character at its end, if it has an unescaped one.
fn continued(line: &str, escape: char) -> Option<&str> {
    let before = line.trim_end_matches(is_blank).strip_suffix(escape)?;
    (!before.ends_with(escape)).then_some(before)
}

/// Whether a character looks like a space or is invisible.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}')
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
    pub(super) fn word(&self) -> Word {
        Word { text: self.text().to_owned(), span: self.span() }
    }

    /// The text up to the first blank, and the text after the blanks.
    pub(super) fn split_first(&self) -> (Self, Self) {
        let text = self.text();
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        (self.slice(0, end), self.slice(end, text.len()).trim())
    }
}

impl Raw {
    /// The content of a heredoc, without tabs that `<<-` removes.
    pub(super) fn text(&self) -> String {
        if !self.chomp {
            return self.content.clone();
        }
        self.content.split_inclusive('\n').map(|line| line.trim_start_matches('\t')).collect()
    }
}
