//! A text of the job file, with its place in the source.

use std::ops::Range;

use jobc_schema::Pointer;

use crate::diagnostic::{Edit, Fix, Location, Safety};
use crate::document::Node;
use crate::source::Span;

/// A text of the job file.
pub(super) struct TextNode<'a> {
    pub(super) at: Pointer,
    pub(super) node: &'a Node,
    pub(super) text: &'a str,
    /// The source text: with quotes, escapes and indentation.
    pub(super) raw: &'a str,
}

impl TextNode<'_> {
    /// Whether it is a command, or part of one.
    pub(super) fn is_command(&self) -> bool {
        let segments: Vec<String> = self.at.segments().collect();
        let is_command = |key: &String| matches!(key.as_str(), "run" | "setup" | "args" | "exec");
        segments.first().is_some_and(|first| first == "roles") && segments.iter().skip(2).any(is_command)
    }

    /// The spans of parts of the text that the source contains verbatim; equal parts are
    /// found in the same order.
    pub(super) fn places(&self, parts: &[Range<usize>]) -> Option<Vec<Span>> {
        let place = |range: &Range<usize>| {
            let part = &self.text[range.clone()];
            let nth = self.text[..range.start].matches(part).count();
            let same = self.raw.matches(part).count() == self.text.matches(part).count();
            let (start, _) = self.raw.match_indices(part).nth(nth).filter(|_| same)?;
            let start = self.node.span.start as usize + start;
            Some(Span::new(self.node.span.source, start, start + part.len()))
        };
        parts.iter().map(place).collect()
    }

    /// An edit that replaces such spans.
    pub(super) fn fix(
        &self,
        message: String,
        parts: &[Range<usize>],
        safety: Safety,
        instead: impl Fn(&str) -> String,
    ) -> Option<Fix> {
        let edit = |(span, range): (Span, &Range<usize>)| Edit {
            place: Location::Span(span),
            text: instead(&self.text[range.clone()]),
        };
        let edits = self.places(parts)?.into_iter().zip(parts).map(edit).collect();
        Some(Fix { message, edits, safety })
    }
}
