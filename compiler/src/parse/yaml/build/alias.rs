//! Anchors and aliases: an alias copies the anchor's value, up to a limit.

use std::ops::Range;

use crate::diagnostic::{Diagnostic, Location, codes};
use crate::document::{Node, Value};
use crate::source::Span;
use crate::suggest;

use super::limits::{MAX_ALIAS_NODES, MAX_ALIAS_TEXT};
use super::{Builder, MAX_DEPTH, Weight, shorten};

impl Builder<'_, '_, '_> {
    /// Remembers an anchor's name for messages about unknown ones.
    pub(in super::super) fn name_anchor(&mut self, id: usize, name: &str) -> bool {
        self.names.push((id, name.to_owned()));
        true
    }

    /// Puts a copy of the anchor's value at the alias.
    pub(in super::super) fn alias(&mut self, id: usize, range: Range<usize>) -> bool {
        let span = self.report.span(range.start, range.end);
        let Some(weight) = self.anchors.get(&id).map(|(_, weight)| *weight) else {
            return self.alias_of_itself(span);
        };
        if self.frames.len() + weight.height > MAX_DEPTH {
            self.too_deep(range.start);
            return false;
        }
        if !self.budget.pay(weight) {
            self.over_budget(span);
            return false;
        }
        // The copy has the span of the alias: a message about it should show that line.
        let value = self.anchors.get(&id).map_or(Value::Null, |(node, _)| node.value.clone());
        self.attach(Node { span, value }, weight);
        true
    }

    /// Reports an alias without an anchor before it, and continues without a value in its place.
    pub(in super::super) fn unknown_alias(&mut self, name: &str, range: Range<usize>) -> bool {
        let span = self.report.span(range.start, range.end);
        if self.report.wants(codes::ALIAS, span) {
            let message = format!("no anchor `&{}` before this alias", shorten(name));
            let mut diagnostic = Diagnostic::error(codes::ALIAS, message).at_span(span, "");
            let known = || self.names.iter().rev().take(200).map(|(_, name)| name.as_str());
            if let Some(near) = suggest::nearest(name, known()) {
                let near = format!("*{near}");
                diagnostic =
                    diagnostic.note(format!("did you mean `{near}`?")).write(Location::Span(span), &near);
            }
            self.report.push(
                diagnostic
                    .note("text that begins with `*`, such as a file pattern, must be quoted: `\"*.py\"`"),
            );
        }
        self.attach(Node { span, value: Value::Null }, Weight::scalar(0));
        true
    }

    fn alias_of_itself(&mut self, span: Span) -> bool {
        if self.report.wants(codes::ALIAS, span) {
            self.report.push(
                Diagnostic::error(codes::ALIAS, "an alias is inside the value that it refers to")
                    .at_span(span, "inside its own anchor"),
            );
        }
        self.attach(Node { span, value: Value::Null }, Weight::scalar(0));
        true
    }

    pub(super) fn over_budget(&mut self, span: Span) {
        let message = format!(
            "anchors and aliases copy more than {MAX_ALIAS_NODES} values or {} MiB of text",
            MAX_ALIAS_TEXT / (1024 * 1024)
        );
        self.report.push(
            Diagnostic::error(codes::LIMIT, message)
                .at_span(span, "the budget is spent here")
                .note("write it once instead: values at the job level apply to every role"),
        );
    }
}
