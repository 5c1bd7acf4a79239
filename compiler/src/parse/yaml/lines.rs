//! The lines around a syntax error, and mistakes that are visible in them.

use std::ops::Range;

/// A tab in a line's indentation.
pub(super) struct Tab {
    /// The first tab in it.
    pub(super) at: usize,
    /// How many of the following lines also begin with a tab.
    pub(super) more: usize,
}

/// The text, relative to the line of an error.
pub(super) struct Lines<'t> {
    text: &'t str,
    /// The line of the error, without its line ending.
    line: Range<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str, at: usize) -> Self {
        Self { text, line: line_at(text, at) }
    }

    /// A tab in the indentation of the error's line; with `ahead` also one on a later line, up to the first
    /// line with another indentation, because the parser stops at the end of the line before the tab.
    pub(super) fn leading_tab(&self, ahead: bool) -> Option<Tab> {
        let mut line = self.line.clone();
        for _ in 0..if ahead { 64 } else { 1 } {
            let body = &self.text[line.clone()];
            let indent = &body[..body.len() - body.trim_start_matches([' ', '\t']).len()];
            if let Some(tab) = indent.find('\t')
                && indent.len() < body.len()
            {
                let (start, end) = (line.start, line.start + indent.len());
                let below = self.text[end..].lines().skip(1);
                let more = below.filter(|line| line.starts_with('\t') && !line.trim().is_empty()).count();
                return Some(Tab { at: start + tab, more });
            }
            line = line_at(self.text, self.next(line.end)?);
        }
        None
    }

    /// The indentation of the line.
    pub(super) fn indent(&self) -> usize {
        indent(&self.text[self.line.clone()])
    }

    /// Whether the line is indented no deeper than the earlier line of an offset.
    pub(super) fn is_outdented_from(&self, offset: usize) -> bool {
        let opener = line_at(self.text, offset);
        opener.start < self.line.start && self.indent() <= indent(&self.text[opener])
    }

    /// The line without its indentation, comment and trailing blanks.
    pub(super) fn content(&self) -> Range<usize> {
        content(self.text, &self.line)
    }

    /// The value on the error's line that contains `at`: everything after the first `: `.
    pub(super) fn value_before(&self, at: usize) -> Option<Range<usize>> {
        let content = self.content();
        let before = self.text.get(content.start..at)?;
        let colon = before.find(": ")?;
        let start = content.start + colon + 1;
        let blank = self.text[start..].len() - self.text[start..].trim_start_matches(' ').len();
        (start + blank < content.end).then(|| start + blank..content.end)
    }

    /// The colon of a `key:value` on previous lines of the same scalar.
    pub(super) fn blank_missing_above(&self) -> Option<usize> {
        let own = self.indent();
        let mut found = None;
        let mut end = self.line.start;
        while end > 0 {
            let line = line_at(self.text, end - 1);
            end = line.start;
            let body = &self.text[line.clone()];
            if body.trim().is_empty() {
                continue;
            }
            let range = content(self.text, &line);
            let text = &self.text[range.clone()];
            match missing_blanks(text) {
                Some(colons) if indent(body) <= own => found = Some(range.start + colons[0]),
                _ => break,
            }
        }
        found
    }

    /// The previous line with a key and its value, if this line is indented deeper.
    pub(super) fn key_above(&self) -> Option<Range<usize>> {
        let before = self.text[..self.line.start].trim_end();
        let line = line_at(self.text, before.len());
        let range = content(self.text, &line);
        let is_key = self.text[range.clone()].contains(": ");
        (is_key && indent(&self.text[line]) < self.indent()).then_some(range)
    }

    /// The start of the line after an offset in a line ending.
    fn next(&self, end: usize) -> Option<usize> {
        self.text[end..].find('\n').map(|n| end + n + 1)
    }
}

/// The colons of a text in which every line is a `key:value`; `None` for any other text.
pub(super) fn missing_blanks(text: &str) -> Option<Vec<usize>> {
    let mut colons = vec![];
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let body = line.trim();
        let colon = body.find(':')?;
        let (key, value) = (&body[..colon], &body[colon + 1..]);
        let word = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if !word || value.is_empty() || value.starts_with([' ', ':', '/', '\t']) {
            return None;
        }
        colons.push(start + (line.len() - line.trim_start().len()) + colon);
        start += line.len();
    }
    (!colons.is_empty()).then_some(colons)
}

fn line_at(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let end = text[at..].find('\n').map_or(text.len(), |n| at + n);
    start..start + text[start..end.max(start)].trim_end_matches('\r').len()
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn content(text: &str, line: &Range<usize>) -> Range<usize> {
    let body = &text[line.clone()];
    let start = line.start + body.len() - body.trim_start().len();
    let body = body.trim_start();
    let kept = body.find(" #").map_or(body, |n| &body[..n]).trim_end();
    start..start + kept.len()
}
