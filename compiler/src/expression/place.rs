//! The place of an expression in a source, and errors at that place.

use std::ops::Range;

use super::failure::Failure;
use super::split::{Expression, OPEN};
use crate::diagnostic::{Diagnostic, Location, Safety};
use crate::source::{Sources, Span};

/// The place of the code of an expression in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeSpan {
    /// The span of the code, or of the whole value if the source is escaped or folded.
    pub span: Span,
    /// Whether the span matches the code verbatim.
    pub exact: bool,
    /// Whether the value is in double quotes.
    pub quoted: bool,
}

impl CodeSpan {
    /// Finds an expression of a value in the source text of the value.
    ///
    /// Quotes, block scalars and indentation make the source differ from the value, so the expression is found
    /// by its number.
    pub fn find(sources: &Sources, value: Span, text: &str, expression: &Expression<'_>) -> Self {
        let raw = sources.slice(value);
        let quoted = raw.starts_with('"');
        let whole = Self { span: value, exact: false, quoted };
        if raw.matches(OPEN).count() != text.matches(OPEN).count() {
            return whole;
        }
        let nth = text[..expression.range.start].matches(OPEN).count();
        let Some((start, _)) = raw.match_indices(OPEN).nth(nth) else { return whole };
        let begin = value.start as usize + start + OPEN.len();
        if raw[start + OPEN.len()..].starts_with(expression.code) {
            let code = expression.code;
            // Blanks inside the braces are not underlined.
            let lead = code.len() - code.trim_start().len();
            if code.trim().is_empty() {
                return Self {
                    span: Span::new(value.source, begin - OPEN.len(), begin + code.len() + 2),
                    exact: false,
                    quoted,
                };
            }
            return Self {
                span: Span::new(value.source, begin + lead, begin + code.trim_end().len()),
                exact: true,
                quoted,
            };
        }
        let end = raw[start..].find("}}").map_or(raw.len(), |at| start + at + 2);
        Self {
            span: Span::new(value.source, begin - OPEN.len(), value.start as usize + end),
            exact: false,
            quoted,
        }
    }

    /// The place of a `${{` without a matching `}}`.
    pub fn open(sources: &Sources, value: Span, text: &str, start: usize) -> Span {
        let nth = text[..start].matches(OPEN).count();
        match sources.slice(value).match_indices(OPEN).nth(nth) {
            Some((at, open)) => {
                let at = value.start as usize + at;
                Span::new(value.source, at, at + open.len())
            }
            None => value,
        }
    }

    /// The span of a name that can be replaced, if the source matches the code and is not quoted.
    pub fn name(self, code: &str, range: &Range<usize>) -> Option<Location> {
        let span = self.part(code, Some(range));
        let alone =
            self.exact && span.range().len() == range.len() && !code[range.clone()].contains(['"', '\'']);
        alone.then_some(Location::Span(span))
    }

    /// The position after the code, if the source matches the code and has no quotes around it.
    fn end(self, code: &str) -> Option<Location> {
        let end = self.span.start as usize + code.trim().len();
        let there = self.exact && self.span.range().len() == code.trim().len();
        there.then_some(Location::Span(Span::new(self.span.source, end, end)))
    }

    /// The span of a range of the code.
    pub fn part(self, code: &str, range: Option<&Range<usize>>) -> Span {
        let lead = code.len() - code.trim_start().len();
        match range {
            Some(range) if self.exact && range.start >= lead && range.end <= code.trim_end().len() => {
                let base = self.span.start as usize;
                Span::new(self.span.source, base + range.start - lead, base + range.end - lead)
            }
            _ => self.span,
        }
    }
}

/// The end of the character that contains a byte.
fn ceil(code: &str, at: usize) -> usize {
    (at..code.len()).find(|&at| code.is_char_boundary(at)).unwrap_or(code.len())
}

impl Failure {
    /// The finding, shown at the code, or at the whole value if the place of the code is unknown.
    pub fn diagnose(mut self, code: &str, at: Option<CodeSpan>, value: Location) -> Diagnostic {
        // The engine counts an unknown character as one byte.
        self.range = self.range.map(|range| code.floor_char_boundary(range.start)..ceil(code, range.end));
        let name = at.zip(self.range.as_ref()).and_then(|(at, range)| at.name(code, range));
        let behind = self.behind().zip(at).and_then(|(text, at)| {
            let text = if at.quoted { text.replace('"', "'") } else { text.to_owned() };
            Some((text, at.end(code)?))
        });
        let place = at.map_or(value, |at| Location::Span(at.part(code, self.range.as_ref())));
        let mut diagnostic = Diagnostic::error(self.code, self.message).at_place(place, self.label);
        diagnostic.notes = self.notes;
        match (name, self.near) {
            (Some(name), Some(near)) => diagnostic.write(name, &near),
            _ => match behind {
                Some((text, place)) => {
                    diagnostic.fix(format!("write `{}`", text.trim()), place, text, Safety::Unsafe)
                }
                None => diagnostic,
            },
        }
    }
}
