//! A text with the offsets of its lines.

use std::ops::Range;

use crate::document::{Node, Value};

/// A text and where its lines begin.
pub(super) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(ends).collect() }
    }

    pub(super) fn as_str(&self) -> &'a str {
        self.text
    }

    /// The number of lines, including the empty one after the last newline.
    pub(super) fn line_count(&self) -> usize {
        self.starts.len()
    }

    /// The byte range of a line without its line ending; the end of the text if there is no such line.
    pub(super) fn line(&self, line: usize) -> Range<usize> {
        let Some(&start) = self.starts.get(line) else { return self.text.len()..self.text.len() };
        let end = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        start..start + self.text[start..end].trim_end_matches(['\n', '\r']).len()
    }

    /// A line without its line ending.
    pub(super) fn content(&self, line: usize) -> &'a str {
        &self.text[self.line(line)]
    }

    /// A line with its line ending.
    pub(super) fn whole(&self, line: usize) -> &'a str {
        let end = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        &self.text[self.starts[line]..end]
    }

    /// The line that contains an offset.
    pub(super) fn line_of(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset) - 1
    }

    /// The column of an offset, in bytes.
    pub(super) fn column(&self, offset: usize) -> usize {
        offset - self.starts[self.line_of(offset)]
    }

    pub(super) fn is_blank(&self, line: usize) -> bool {
        self.content(line).trim().is_empty()
    }

    /// Whether a value is a map or list in brackets.
    pub(super) fn is_flow(&self, node: &Node) -> bool {
        let collection = matches!(node.value, Value::Mapping(_) | Value::Sequence(_));
        collection
            && self
                .text
                .as_bytes()
                .get(node.span.start as usize)
                .is_some_and(|byte| matches!(byte, b'{' | b'['))
    }
}
