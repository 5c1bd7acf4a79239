//! Keys: strings only, unique, and no `<<`.

use crate::diagnostic::{Diagnostic, Location, Safety, codes};
use crate::document::{Node, Value};
use crate::source::Span;

use super::super::super::scalar::PlainScalar;
use super::{Builder, Items, PendingKey, Scalar, Style, Tag, scalar, shorten};

impl Builder<'_, '_, '_> {
    /// Accepts a scalar in the position of a key.
    pub(super) fn scalar_key(&mut self, scalar: Scalar<'_>, tag: Option<&Tag>, anchor: usize) {
        let span = self.report.span(scalar.range.start, scalar.range.end);
        self.last = scalar.range.end;
        if anchor != 0 {
            // `&name key: value` puts the anchor on the key, not the value, which surprises.
            self.report.push(
                Diagnostic::error(codes::KEY, "an anchor is before a key: move it after the colon")
                    .at_span(span, "this key"),
            );
        }
        let core = tag.and_then(|tag| tag.core.as_deref());
        if let Some(tag) = tag
            && core != Some("str")
        {
            self.refuse_tag(tag, "only the tag `!!str` is allowed on a key: remove it".to_owned());
        }
        if scalar.absent && core.is_none() {
            self.report.push(
                Diagnostic::error(codes::KEY, "a key is missing before `:`")
                    .at_span(span, "")
                    .note("text that begins with `:` must be quoted"),
            );
            self.expect(PendingKey::Dropped);
            return;
        }
        if scalar.style == Style::Plain && core.is_none() {
            if scalar.value == "<<" {
                self.expect(PendingKey::Merge(span));
                return;
            }
            self.plain_key(&scalar.value, span);
        }
        self.take_key(scalar.value.into_owned(), span);
    }

    /// Accepts a list, map or alias in the position of a key.
    pub(super) fn complex_key(&mut self, node: &Node) {
        // Only an alias can be a string here: scalars are handled before they become nodes.
        if let Value::String(text) = &node.value {
            self.take_key(text.clone(), node.span);
            return;
        }
        let is_first = |frame: &&mut super::Frame| frame.flow && frame.start + 1 == node.span.start as usize;
        match self.frames.last_mut().filter(is_first) {
            // Reported at the end of the outer map: it may be an expression of another tool.
            Some(frame) if matches!(node.value, Value::Mapping(_)) => frame.braces = Some(node.clone()),
            _ => self.report_complex_key(node),
        }
        self.expect(PendingKey::Dropped);
    }

    /// Reports a list or a map where a key belongs.
    pub(super) fn report_complex_key(&mut self, node: &Node) {
        if self.report.wants(codes::KEY, node.span) {
            let message = format!("expected a key, found {}: a key is a string", node.describe());
            let mut diagnostic = Diagnostic::error(codes::KEY, message).at_span(node.span, "");
            let at = node.span.start as usize;
            if self.text[..at].ends_with('{') {
                diagnostic = diagnostic.note("`{{` opens two maps; an expression is written `\"${{ … }}\"`");
            }
            self.report.push(diagnostic);
        }
    }

    /// Reports a plain key that is not a string, or that other tools do not read as one.
    fn plain_key(&mut self, text: &str, span: Span) {
        let what = match scalar::resolve(text) {
            PlainScalar::Text => {
                self.misread_key(text, span);
                return;
            }
            PlainScalar::Null => "null",
            PlainScalar::Bool(_) => "a boolean",
            _ => "a number",
        };
        if !self.report.wants(codes::KEY, span) {
            return;
        }
        let quoted = format!("\"{text}\"");
        let message = format!("the key `{text}` is {what}, and a key must be a string: write `{quoted}`");
        self.report.push(Diagnostic::error(codes::KEY, message).at_span(span, "").fix(
            "quote the key",
            Location::Span(span),
            quoted,
            Safety::Safe,
        ));
    }

    fn misread_key(&mut self, text: &str, span: Span) {
        if scalar::misread_key(text) && self.report.wants(codes::MISREAD, span) {
            let quoted = format!("\"{text}\"");
            let message = format!("other tools read the key `{text}` as a boolean: write `{quoted}`");
            self.report.push(
                Diagnostic::warning(codes::MISREAD, message)
                    .at_span(span, "a string to YAML 1.2, a boolean to YAML 1.1")
                    .fix("quote the key", Location::Span(span), quoted, Safety::Safe),
            );
        }
    }

    fn take_key(&mut self, key: String, span: Span) {
        let Some(frame) = self.frames.last_mut() else { return };
        frame.end = frame.end.max(span.end as usize);
        let Items::Map { entries, keys, .. } = &mut frame.items else { return };
        let pending = match keys.find(entries, &key) {
            Some(_) => PendingKey::Again(key, span),
            None => PendingKey::Key(key, span),
        };
        self.expect(pending);
    }

    fn expect(&mut self, next: PendingKey) {
        if let Some(frame) = self.frames.last_mut()
            && let Items::Map { pending, .. } = &mut frame.items
        {
            *pending = Some(next);
        }
    }

    /// The key whose value is next, for messages.
    pub(super) fn pending_key(&self) -> Option<(&str, Span)> {
        match &self.frames.last()?.items {
            Items::Map { pending: Some(PendingKey::Key(key, span)), .. } => Some((key, *span)),
            _ => None,
        }
    }

    /// The text of a key for a message.
    pub(super) fn key_name(key: &str) -> String {
        shorten(key)
    }
}
