//! The text between values: blanks, comments, and invalid text that is skipped.

use crate::diagnostic::{Diagnostic, Location, Safety, codes};

use super::Loader;

impl Loader<'_, '_, '_> {
    /// Skips to the next value or punctuation; `true` if a mark for omitted text was skipped.
    pub(super) fn blank(&mut self) -> Option<bool> {
        let mut elided = false;
        loop {
            self.at = self.run(char::is_whitespace);
            let rest = &self.text[self.at..];
            if rest.starts_with("//") {
                self.at = self.run(|c| c != '\n');
            } else if rest.starts_with("/*") {
                self.comment()?;
            } else if rest.starts_with('#') {
                let span = self.report.span(self.at, self.at + 1);
                self.spelling("`#` begins a comment in YAML: in JSON write `//`", span, "//");
                self.at = self.run(|c| c != '\n');
            } else if let Some(length) = continuation(rest) {
                self.continued(self.at, self.at + length, "");
                self.at += length;
            } else if let Some(length) = elision(rest) {
                self.elided(length);
                elided = true;
            } else {
                return Some(elided);
            }
        }
    }

    fn comment(&mut self) -> Option<()> {
        let start = self.at;
        if let Some(length) = self.text[start + 2..].find("*/") {
            self.at = start + 2 + length + 2;
            return Some(());
        }
        let span = self.report.span(start, start + 2);
        self.report.push(
            Diagnostic::error(codes::UNCLOSED, "the comment `/*` is not closed").at_span(span, "opened here"),
        );
        None
    }

    /// Reports a backslash that ends a line; `instead` is the text that joins the two lines.
    pub(super) fn continued(&mut self, start: usize, end: usize, instead: &str) {
        let span = self.report.span(start, start + 1);
        if self.report.wants(codes::NOT_JSON, span) {
            let cut = self.report.span(start, end);
            self.report.push(
                Diagnostic::error(codes::NOT_JSON, "a backslash at the end of a line is not JSON: remove it")
                    .at_span(span, "joins lines in a shell only")
                    .fix("remove it", Location::Span(cut), instead, Safety::Safe),
            );
        }
    }

    fn elided(&mut self, length: usize) {
        let span = self.report.span(self.at, self.at + length);
        self.at += length;
        if !self.report.wants(codes::NOT_JSON, span) {
            return;
        }
        let dots = &self.text[span.range()];
        let message = format!("`{dots}` is not JSON, it marks omitted text: remove it");
        // Remove the comma before it too, unless another entry follows.
        let before = self.text[..span.start as usize].trim_end();
        let after = self.text[self.at..].trim_start();
        let from = if before.ends_with(',') && !after.starts_with(['"', '{', '[']) {
            before.len() - 1
        } else {
            span.start as usize
        };
        let cut = self.report.span(from, self.at);
        let (what, instead) = match (before.ends_with(':'), dots.starts_with('[')) {
            (false, _) => ("remove it", ""),
            (true, false) => ("write `null`", "null"),
            (true, true) => ("write an empty list", "[]"),
        };
        self.report.push(Diagnostic::error(codes::NOT_JSON, message).at_span(span, "").fix(
            what,
            Location::Span(cut),
            instead,
            Safety::Unsafe,
        ));
    }
}

/// The length of a backslash, blanks, and the line ending after them.
pub(super) fn continuation(rest: &str) -> Option<usize> {
    let behind = rest.strip_prefix('\\')?;
    // Web pages may contain any kind of blank there.
    let is_blank = |c: char| matches!(c, ' ' | '\t' | '\r') || crate::blank::name(c).is_some();
    let blanks = behind.len() - behind.trim_start_matches(is_blank).len();
    match behind[blanks..].chars().next() {
        Some('\n') => Some(1 + blanks + 1),
        None => Some(1 + blanks),
        Some(_) => None,
    }
}

/// The length of a mark for omitted text, such as `...`.
fn elision(rest: &str) -> Option<usize> {
    let marks = ["[...]", "[…]", "<...>", "<…>", "(...)", "(…)", "...", "…"];
    let mark = marks.iter().find(|mark| rest.starts_with(**mark))?;
    let dots = rest[mark.len()..].len() - rest[mark.len()..].trim_start_matches('.').len();
    Some(mark.len() + dots)
}

/// Whether a text contains syntax that only this parser accepts, outside of double quotes: comments, backslashes that
/// end a line, dots that mark omitted text. In YAML all three are text.
pub(in super::super) fn is_not_yaml(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut quoted = false;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            b'\\' if continuation(&text[at..]).is_some() => return true,
            b'.' if !quoted && elision(&text[at..]).is_some() => return true,
            b'/' if !quoted && matches!(bytes.get(at + 1), Some(b'/' | b'*')) => return true,
            _ => {}
        }
        at += 1;
    }
    false
}
