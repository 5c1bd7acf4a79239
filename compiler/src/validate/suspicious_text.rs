//! Texts that mean something else than they look like: a word processor's quotes, and expressions of other tools.

mod continuation;
mod expressions;
mod typography;

use std::ops::Range;

use jobc_schema::Pointer;

use crate::diagnostic::{Edit, Fix, Place, Safety, Sink};
use crate::document::{Document, Node, Value};
use crate::source::{Sources, Span};

/// A text of the job file.
struct TextNode<'a> {
    at: Pointer,
    node: &'a Node,
    text: &'a str,
    /// As the file has it: with its quotes, escapes and indentation.
    raw: &'a str,
}

/// Warns of texts of a sound job file that do not mean what they look like.
pub fn check_written(document: &Document, sources: &Sources, sink: &mut Sink) {
    texts(&document.root, &Pointer::ROOT, sources, &mut |written| {
        continuation::check(written, sink);
        typography::check(written, sink);
        expressions::check(written, document, sink);
    });
}

/// Calls a function for every text that is more than words for people.
fn texts<'a>(node: &'a Node, at: &Pointer, sources: &'a Sources, visit: &mut dyn FnMut(&TextNode<'a>)) {
    match &node.value {
        Value::String(text) => {
            visit(&TextNode { at: at.clone(), node, text, raw: sources.slice(node.span) });
        }
        Value::Sequence(items) => {
            for (index, item) in items.iter().enumerate() {
                texts(item, &at.index(index), sources, visit);
            }
        }
        Value::Mapping(entries) => {
            let for_machines = |key: &str| key != "description" && !key.starts_with("x-");
            for entry in entries.iter().filter(|entry| for_machines(&entry.key)) {
                texts(&entry.value, &at.key(&entry.key), sources, visit);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number { .. } => {}
    }
}

impl TextNode<'_> {
    /// Whether it is a command, or a part of one.
    fn is_command(&self) -> bool {
        let segments: Vec<String> = self.at.segments().collect();
        let is_command = |key: &String| matches!(key.as_str(), "run" | "setup" | "args" | "exec");
        segments.first().is_some_and(|first| first == "roles") && segments.iter().skip(2).any(is_command)
    }

    /// The places in the file of parts of the text, which the file has letter by letter; all of the text's parts that
    /// read alike are looked for in the same order.
    fn places(&self, parts: &[Range<usize>]) -> Option<Vec<Span>> {
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

    /// An edit that writes something else in such places.
    fn fix(
        &self,
        message: String,
        parts: &[Range<usize>],
        safety: Safety,
        instead: impl Fn(&str) -> String,
    ) -> Option<Fix> {
        let edit = |(span, range): (Span, &Range<usize>)| Edit {
            place: Place::Span(span),
            text: instead(&self.text[range.clone()]),
        };
        let edits = self.places(parts)?.into_iter().zip(parts).map(edit).collect();
        Some(Fix { message, edits, safety })
    }
}
