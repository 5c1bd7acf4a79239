//! Scalars as values: their types, and mistakes in how they are written.

use crate::diagnostic::{Diagnostic, Edit, Fix, Location, Safety, codes};
use crate::document::{Node, Value};
use crate::source::Span;

use super::super::super::scalar::PlainScalar;
use super::super::lines::missing_blanks;
use super::{Builder, Scalar, Style, Tag, scalar, shorten};

impl Builder<'_, '_, '_> {
    /// Makes a node of a scalar in the position of a value.
    pub(super) fn scalar_value(&mut self, scalar: Scalar<'_>, tag: Option<&Tag>) -> Node {
        let (start, end) = self.extent(&scalar);
        let span = self.report.span(start, end);
        let value = match tag {
            Some(tag) => self.tagged(&scalar, tag, span),
            None if scalar.absent => {
                self.glued_key(span);
                Value::Null
            }
            None if scalar.style == Style::Plain => self.plain(scalar.value.into_owned(), span),
            None => Value::String(scalar.value.into_owned()),
        };
        Node { span, value }
    }

    /// The real span of a value.
    ///
    /// The parser puts an absent value before its colon, begins a block scalar at its text, and includes the
    /// blank lines after it.
    fn extent(&self, scalar: &Scalar<'_>) -> (usize, usize) {
        let (start, end) = (scalar.range.start, scalar.range.end);
        if scalar.absent {
            let at = start + usize::from(self.text[start..].starts_with(':'));
            return (at, at);
        }
        if scalar.style != Style::Block {
            return (start, end);
        }
        let header = self.text[..start].trim_end_matches([' ', '\t', '\r', '\n']);
        let line = header.rfind('\n').map_or(0, |n| n + 1).max(self.last()).min(header.len());
        let marker = header[line..].find(['|', '>']).map_or(start, |n| line + n);
        let content = self.text.get(start..end).unwrap_or_default();
        let end = start + content.trim_end_matches([' ', '\t', '\r', '\n']).len();
        let first_line = self.text[marker..].find(['\r', '\n']).map_or(self.text.len(), |n| marker + n);
        (marker, end.max(first_line.min(start)))
    }

    fn tagged(&mut self, scalar: &Scalar<'_>, tag: &Tag, span: Span) -> Value {
        let text = scalar.value.to_string();
        let plain = scalar.style == Style::Plain;
        let resolved = if plain { scalar::resolve(&text) } else { PlainScalar::Text };
        let Some(core) = tag.core.as_deref() else {
            self.custom_tag(tag);
            return Value::String(text);
        };
        match (core, resolved) {
            ("str", _) => Value::String(text),
            ("null", PlainScalar::Null) => Value::Null,
            ("bool", PlainScalar::Bool(b)) => Value::Bool(b),
            ("int", PlainScalar::Number(number)) if !number.is_f64() => Value::Number { number, text },
            ("float", PlainScalar::Number(number)) => Value::Number { number, text },
            _ => {
                let message = format!("the tag `!!{core}` does not fit the value `{}`", shorten(&text));
                self.refuse_tag(tag, message);
                if plain { self.plain(text, span) } else { Value::String(text) }
            }
        }
    }

    fn plain(&mut self, text: String, span: Span) -> Value {
        match scalar::resolve(&text) {
            PlainScalar::Null => Value::Null,
            PlainScalar::Bool(b) => Value::Bool(b),
            PlainScalar::Number(number) => Value::Number { number, text },
            // The fix usually makes it a string (`mode: 0644`), so later passes see one.
            PlainScalar::LeadingZero => {
                self.leading_zero(&text, span);
                Value::String(text)
            }
            PlainScalar::NotFinite => {
                self.number(format!("`{text}` is not a valid number: write a finite number"), &text, span);
                Value::String(text)
            }
            PlainScalar::TooLarge => {
                let shown = shorten(&text);
                self.number(format!("the number {shown} does not fit into 64 bits"), &text, span);
                Value::String(text)
            }
            PlainScalar::Text => {
                self.report_yaml11(&text, span);
                self.glued_values(&text, span);
                Value::String(text)
            }
        }
    }

    fn leading_zero(&mut self, text: &str, span: Span) {
        if !self.report.wants(codes::LEADING_ZERO, span) {
            return;
        }
        let bare = text.trim_start_matches(['-', '+']);
        let digits = bare.trim_start_matches('0');
        let decimal = if digits.is_empty() { "0" } else { digits };
        let quoted = format!("\"{text}\"");
        let message =
            format!("the number {} begins with a zero: write `{}`", shorten(text), shorten(&quoted));
        let place = Location::Span(span);
        let diagnostic = Diagnostic::error(codes::LEADING_ZERO, message)
            .at_span(span, "octal to some tools, decimal to others");
        if bare.len() == 4 && self.pending_key().is_some_and(|(key, _)| key == "mode") {
            // A file mode has only one spelling.
            self.report.push(diagnostic.fix("quote it", place, quoted, Safety::Safe));
            return;
        }
        let mut diagnostic = diagnostic.fix("quote it if it is text", place.clone(), quoted, Safety::Unsafe);
        if let Ok(value) = u64::from_str_radix(bare, 8)
            && !text.starts_with(['-', '+'])
            && value > 7
        {
            let message = format!("write octal, which is {value}");
            diagnostic = diagnostic.fix(message, place.clone(), format!("0o{digits}"), Safety::Unsafe);
        }
        let sign = if text.starts_with('-') { "-" } else { "" };
        self.report.push(diagnostic.fix("write decimal", place, format!("{sign}{decimal}"), Safety::Unsafe));
    }

    fn number(&mut self, message: String, text: &str, span: Span) {
        if self.report.wants(codes::NUMBER, span) {
            self.report.push(Diagnostic::error(codes::NUMBER, message).at_span(span, "").fix(
                "quote it if it is text",
                Location::Span(span),
                format!("\"{text}\""),
                Safety::Unsafe,
            ));
        }
    }

    /// Warns about a plain string that YAML 1.1 does not read as a string.
    fn report_yaml11(&mut self, text: &str, span: Span) {
        let Some(what) = scalar::yaml11_meaning(text) else { return };
        if !self.report.wants(codes::MISREAD, span) {
            return;
        }
        let quoted = format!("\"{text}\"");
        let message = format!("other tools read `{0}` as {what}: write `{quoted}`", shorten(text));
        let mut diagnostic = Diagnostic::warning(codes::MISREAD, message)
            .at_span(span, format!("a string to YAML 1.2, {what} to YAML 1.1"));
        let digits = text.replace('_', "");
        if text.contains('_') && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let message = format!("write {digits} if it is a number");
            diagnostic = diagnostic.fix(message, Location::Span(span), digits, Safety::Unsafe);
        }
        self.report.push(diagnostic.fix("quote it", Location::Span(span), quoted, Safety::Safe));
    }

    /// Reports `{cpu:4}`, which YAML reads as the key `cpu:4` without a value.
    fn glued_key(&mut self, absent: Span) {
        let Some((key, span)) = self.pending_key() else { return };
        let Some(colon) = key.find(':') else { return };
        let flow = self.frames.last().is_some_and(|frame| frame.flow);
        let written = self.text.get(span.range()) == Some(key);
        let no_colon = !self.text[..absent.start as usize].ends_with(':');
        if !flow || !written || !no_colon || key[colon..].starts_with("://") || key.ends_with(':') {
            return;
        }
        let (name, rest) = (Self::key_name(&key[..colon]), shorten(&key[colon + 1..]));
        let place = Location::Span(
            self.report.span(span.start as usize + colon + 1, span.start as usize + colon + 1),
        );
        let message = format!("missing space after the colon: write `{name}: {rest}`");
        self.report.push(
            Diagnostic::error(codes::MISSING_BLANK, message)
                .at_span(span, "read as one word, a key without a value")
                .fix("add a space after the colon", place, " ", Safety::Safe),
        );
    }

    /// Warns about `cpu:4` on separate lines below a key, which YAML reads as text.
    fn glued_values(&mut self, text: &str, span: Span) {
        let Some((_, key)) = self.pending_key() else { return };
        if !text.contains(':') {
            return;
        }
        let (from, start, end) = (key.end as usize, span.start as usize, span.end as usize);
        let between = self.text.get(from..start).unwrap_or_default();
        if !between.contains('\n') || self.frames.last().is_some_and(|frame| frame.flow) {
            return;
        }
        let Some(colons) = missing_blanks(&self.text[start..end]) else { return };
        let edits = colons
            .iter()
            .map(|at| start + at + 1)
            .map(|at| Edit { place: Location::Span(self.report.span(at, at)), text: " ".to_owned() })
            .collect();
        let mut diagnostic = Diagnostic::warning(
            codes::MISSING_BLANK,
            "this is text, not a map: missing space after the colon",
        )
        .at_span(span, "read as text");
        let message = "add a space after each colon".to_owned();
        diagnostic.fixes.push(Fix { message, edits, safety: Safety::Unsafe });
        self.report.push(diagnostic);
    }
}
