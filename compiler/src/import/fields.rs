//! Reading the fields of a map whose names are another tool's.

use std::fmt::Display;

use crate::diagnostic::{Diagnostic, Place, Safety, Sink, codes};
use crate::document::{Entry, Node, Value};
use crate::source::Span;
use crate::suggest;

/// The greatest number of anything.
const MOST: i64 = 2_147_483_647;

/// A map of another tool's and what it is called in messages.
pub(super) struct Fields<'a> {
    /// What is read.
    pub(super) node: &'a Node,
    /// Where the map is named: its key, or itself.
    pub(super) place: Span,
    /// ` in role 1`, or nothing at the top.
    pub(super) within: String,
}

impl<'a> Fields<'a> {
    /// The field with that name.
    pub(super) fn entry(&self, name: &str) -> Option<&'a Entry> {
        self.node.entries().iter().find(|entry| entry.key == name)
    }

    /// Reports the fields that are not known.
    pub(super) fn refuse_others(&self, known: &[&str], sink: &mut Sink) {
        for entry in self.node.entries().iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let near = suggest::nearest(&entry.key, known.iter().copied());
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let message = format!("unknown field `{}`{}{hint}", entry.key, self.within);
            let mut diagnostic = Diagnostic::error(codes::OPENPAI_FIELD, message).at_span(entry.key_span, "");
            if let Some(near) = near.filter(|near| self.entry(near).is_none()) {
                let quoted = (entry.key_span.end - entry.key_span.start) as usize > entry.key.len();
                let text = if quoted { format!("\"{near}\"") } else { near.to_owned() };
                let fix = format!("write `{near}`");
                diagnostic = diagnostic.fix(fix, Place::Span(entry.key_span), text, Safety::Safe);
            } else {
                diagnostic = diagnostic.note(format!("the fields known here are {}", list(known)));
            }
            sink.push(diagnostic);
        }
    }

    /// A field that must be there.
    pub(super) fn required(&self, name: &str, sink: &mut Sink) -> Option<&'a Entry> {
        let entry = self.entry(name);
        if entry.is_none() {
            let message = format!("`{name}` is missing{}", self.within);
            sink.push(Diagnostic::error(codes::OPENPAI_MISSING, message).at_span(self.place, ""));
        }
        entry
    }

    /// A text; an empty one is none, as OpenPAI has it.
    pub(super) fn text(&self, name: &str, sink: &mut Sink) -> Option<(&'a Entry, &'a str)> {
        let entry = self.entry(name)?;
        match &entry.value.value {
            Value::String(text) if text.trim().is_empty() => None,
            Value::String(text) => Some((entry, text)),
            _ => {
                wrong(entry, "a string", sink);
                None
            }
        }
    }

    /// A whole number of at least `least`.
    pub(super) fn number(&self, name: &str, least: i64, sink: &mut Sink) -> Option<(&'a Entry, u64)> {
        let entry = self.entry(name)?;
        let what = format!("a whole number of at least {least}");
        match &entry.value.value {
            Value::Number { number, .. } => {
                let fits = |n: &u64| i64::try_from(*n).is_ok_and(|n| (least..=MOST).contains(&n));
                let read = number.as_u64().filter(fits);
                if read.is_none() {
                    wrong(entry, what, sink);
                }
                read.map(|read| (entry, read))
            }
            Value::String(text) if text.trim().parse::<u32>().is_ok() => {
                let text = text.trim();
                let diagnostic = mismatch(entry, what).fix(
                    format!("write `{text}`"),
                    Place::Span(entry.value.span),
                    text,
                    Safety::Safe,
                );
                sink.push(diagnostic);
                None
            }
            _ => {
                wrong(entry, what, sink);
                None
            }
        }
    }
}

/// Reports a value that its field does not take.
pub(super) fn wrong(entry: &Entry, what: impl Display, sink: &mut Sink) {
    sink.push(mismatch(entry, what));
}

/// The finding for a value that its field does not take.
pub(super) fn mismatch(entry: &Entry, what: impl Display) -> Diagnostic {
    let message = format!("`{}` must be {what}, not {}", entry.key, describe(&entry.value));
    let diagnostic = Diagnostic::error(codes::OPENPAI_VALUE, message).at_span(entry.value.span, "");
    match entry.key.as_str() {
        "memoryMB" | "shmMB" => diagnostic.note("it counts MiB and has no unit: 32 GiB is `32768`"),
        "retryCount" => {
            diagnostic.note("OpenPAI's -1 and -2 choose by the kind of failure, which has no equal here")
        }
        _ => diagnostic,
    }
}

/// What a value is, in words.
pub(super) fn describe(node: &Node) -> String {
    match &node.value {
        Value::Sequence(items) if items.is_empty() => "an empty list".to_owned(),
        Value::Mapping(entries) if entries.is_empty() => "an empty map".to_owned(),
        _ => node.describe(),
    }
}

fn list(known: &[&str]) -> String {
    let names: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
