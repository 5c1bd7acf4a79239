//! Reads the fields of a map of another tool's format.

use std::fmt::Display;

use crate::diagnostic::{Diagnostic, Location, Safety, Sink, codes};
use crate::document::{Entry, Node, Value};
use crate::source::Span;
use crate::suggest;

/// The maximum of every number.
const MAX_INTEGER: i64 = 2_147_483_647;

/// A map of another tool's format, and its name in messages.
pub(super) struct Fields<'a> {
    /// The map.
    pub(super) node: &'a Node,
    /// The span that names the map: its key, or itself.
    pub(super) place: Span,
    /// ` in role 1`, or empty at the top level.
    pub(super) within: String,
}

impl<'a> Fields<'a> {
    /// The field with that name.
    pub(super) fn entry(&self, name: &str) -> Option<&'a Entry> {
        self.node.entries().iter().find(|entry| entry.key == name)
    }

    /// Reports unknown fields.
    pub(super) fn refuse_others(&self, known: &[&str], sink: &mut Sink) {
        self.refuse_others_but(known, &[], sink);
    }

    /// Reports unknown fields; for those in `elsewhere`, says what to write instead.
    pub(super) fn refuse_others_but(&self, known: &[&str], elsewhere: &[(&str, &str)], sink: &mut Sink) {
        for entry in self.node.entries().iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            sink.push(match elsewhere.iter().find(|(name, _)| *name == entry.key) {
                Some((_, instead)) => self.moved(entry, instead),
                None => self.unknown(entry, known),
            });
        }
    }

    /// The finding for a field that is spelled differently or belongs elsewhere.
    fn moved(&self, entry: &Entry, instead: &str) -> Diagnostic {
        let message = format!("unknown field `{}`{}", entry.key, self.within);
        let found = Diagnostic::error(codes::OPENPAI_FIELD, message).at_span(entry.key_span, "");
        let name = instead.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
        match name.filter(|name| !name.contains([':', '`', ' '])) {
            Some(name) if self.entry(name).is_some() => {
                found.note(format!("remove it: `{name}` is there already"))
            }
            Some(name) => {
                let text = as_key(entry, name);
                found.fix(format!("write `{name}`"), Location::Span(entry.key_span), text, Safety::Unsafe)
            }
            None => found.note(format!("write {instead}")),
        }
    }

    /// The finding for an unknown field, with the most similar known one.
    fn unknown(&self, entry: &Entry, known: &[&str]) -> Diagnostic {
        let near = suggest::nearest(&entry.key, known.iter().copied());
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let message = format!("unknown field `{}`{}{hint}", entry.key, self.within);
        let diagnostic = Diagnostic::error(codes::OPENPAI_FIELD, message).at_span(entry.key_span, "");
        let Some(near) = near.filter(|near| self.entry(near).is_none()) else {
            return diagnostic.note(format!("the fields known here are {}", list(known)));
        };
        let text = as_key(entry, near);
        diagnostic.fix(format!("write `{near}`"), Location::Span(entry.key_span), text, Safety::Safe)
    }

    /// A required field.
    pub(super) fn required(&self, name: &str, sink: &mut Sink) -> Option<&'a Entry> {
        let entry = self.entry(name);
        if entry.is_none() {
            let message = format!("`{name}` is missing{}", self.within);
            sink.push(Diagnostic::error(codes::OPENPAI_MISSING, message).at_span(self.place, ""));
        }
        entry
    }

    /// A text; an empty one counts as absent, as in OpenPAI.
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

    /// An integer of at least `least`.
    pub(super) fn number(&self, name: &str, least: i64, sink: &mut Sink) -> Option<(&'a Entry, u64)> {
        let entry = self.entry(name)?;
        let read = whole(entry, least, sink)?;
        u64::try_from(read).ok().map(|read| (entry, read))
    }

    /// An integer of at least `least`, which may be negative; null counts as absent.
    pub(super) fn integer(&self, name: &str, least: i64, sink: &mut Sink) -> Option<(&'a Entry, i64)> {
        let entry = self.entry(name).filter(|entry| entry.value.value != Value::Null)?;
        whole(entry, least, sink).map(|read| (entry, read))
    }

    /// `true` or `false`.
    pub(super) fn flag(&self, name: &str, sink: &mut Sink) -> Option<(&'a Entry, bool)> {
        let entry = self.entry(name)?;
        if let Value::Bool(flag) = entry.value.value {
            return Some((entry, flag));
        }
        wrong(entry, "`true` or `false`", sink);
        None
    }

    /// A map with fields of its own.
    pub(super) fn map(&self, name: &str, what: &str, sink: &mut Sink) -> Option<(&'a Entry, Self)> {
        let entry = self.entry(name)?;
        if !matches!(entry.value.value, Value::Mapping(_)) {
            wrong(entry, what, sink);
            return None;
        }
        Some((entry, Self { node: &entry.value, place: entry.key_span, within: self.inside(name) }))
    }

    /// The items of a list.
    pub(super) fn list(&self, name: &str, what: &str, sink: &mut Sink) -> &'a [Node] {
        let Some(entry) = self.entry(name) else { return &[] };
        if !matches!(entry.value.value, Value::Sequence(_)) {
            wrong(entry, what, sink);
        }
        entry.value.items()
    }

    /// The items of a list of texts, which must not be empty.
    pub(super) fn texts(&self, name: &str, sink: &mut Sink) -> Vec<(&'a Node, &'a str)> {
        let items = self.list(name, "a list of strings", sink);
        if let Some(entry) = self.entry(name).filter(|entry| entry.value.value == Value::Sequence(vec![])) {
            wrong(entry, "a list of at least one string", sink);
        }
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            match item.as_str() {
                Some(text) => texts.push((item, text)),
                None => sink.push(
                    Diagnostic::error(
                        codes::OPENPAI_VALUE,
                        format!("an item of `{name}` must be a string, not {}", describe(item)),
                    )
                    .at_span(item.span, "")
                    .note("text with `: ` or ` #` in it needs quotes"),
                ),
            }
        }
        texts
    }

    /// A list item as a map; reports other items.
    pub(super) fn of_item(node: &'a Node, list: &str, sink: &mut Sink) -> Option<Self> {
        let Some(first) = node.entries().first() else {
            let message = format!("an item of `{list}` must be a map of fields, not {}", describe(node));
            sink.push(Diagnostic::error(codes::OPENPAI_VALUE, message).at_span(node.span, ""));
            return None;
        };
        let named = node.get("name").and_then(Node::as_str);
        let within = match named {
            Some(name) => format!(" in `{name}` of `{list}`"),
            None => format!(", in `{list}`"),
        };
        Some(Self { node, place: first.key_span, within })
    }

    fn inside(&self, name: &str) -> String {
        match self.within.strip_prefix(" in ") {
            Some(outer) => format!(" in `{name}` of {outer}"),
            None => format!(" in `{name}`{}", self.within),
        }
    }
}

/// The integer value of a field, also `4.0`; reports other values, and numbers below `least`.
fn whole(entry: &Entry, least: i64, sink: &mut Sink) -> Option<i64> {
    let what = match least {
        i64::MIN..=-2 => "a whole number".to_owned(),
        -1 => "a whole number, or -1 for never".to_owned(),
        _ => format!("a whole number of at least {least}"),
    };
    match &entry.value.value {
        Value::Number { number, .. } => {
            // `4.0` is the integer 4, as in JSON Schema.
            let read = number
                .as_i64()
                .or_else(|| format!("{:.1}", number.as_f64()?).strip_suffix(".0")?.parse().ok());
            let read = read.filter(|_| number.as_f64().is_some_and(|float| float.fract() == 0.0));
            let read = read.filter(|n| (least..=MAX_INTEGER).contains(n));
            if read.is_none() {
                wrong(entry, what, sink);
            }
            read
        }
        Value::String(text) if text.trim().parse::<u32>().is_ok() => {
            let text = text.trim();
            sink.push(mismatch(entry, what).fix(
                format!("write `{text}`"),
                Location::Span(entry.value.span),
                text,
                Safety::Safe,
            ));
            None
        }
        _ => {
            wrong(entry, what, sink);
            None
        }
    }
}

/// Reports a value that its field does not accept.
pub(super) fn wrong(entry: &Entry, what: impl Display, sink: &mut Sink) {
    sink.push(mismatch(entry, what));
}

/// The finding for a value that its field does not accept.
pub(super) fn mismatch(entry: &Entry, what: impl Display) -> Diagnostic {
    let message = format!("`{}` must be {what}, not {}", entry.key, describe(&entry.value));
    let diagnostic = Diagnostic::error(codes::OPENPAI_VALUE, message).at_span(entry.value.span, "");
    match entry.key.as_str() {
        "memoryMB" | "shmMB" => diagnostic.note("it counts MiB and has no unit: 32 GiB is `32768`"),
        "ports" => diagnostic.note(
            "write a map with the number of each: `ports: {http: 1}`; OpenPAI chooses the port numbers",
        ),
        _ => diagnostic,
    }
}

/// A name to replace an entry's key, quoted if the key is.
fn as_key(entry: &Entry, name: &str) -> String {
    let quoted = (entry.key_span.end - entry.key_span.start) as usize > entry.key.len();
    if quoted { format!("\"{name}\"") } else { name.to_owned() }
}

/// Describes a value.
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
