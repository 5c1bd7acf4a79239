//! The tree that the parser builds: JSON's data model with a span for every key and value.

mod inherited;

use std::cell::Cell;
use std::ops::Range;

use jobc_schema::{Pointer, Scalar};
use serde_json::Value as Json;

use crate::source::{Sources, Span};

pub use inherited::inherited;

/// The number of entries from which a map is long.
const LONG: usize = 256;

/// A parsed file.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The root value.
    pub root: Node,
}

/// One value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The span of the value; a collection's span ends at its last child.
    pub span: Span,
    /// The value.
    pub value: Value,
}

/// The content of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, with its source text, so that `3.10` stays `3.10`.
    Number {
        /// The number.
        number: serde_json::Number,
        /// The source text.
        text: String,
    },
    /// Text.
    String(String),
    /// A list.
    Sequence(Vec<Node>),
    /// A map, in source order.
    Mapping(Vec<Entry>),
}

/// One key of a map and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key's text.
    pub key: String,
    /// The span of the key.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

/// The entry with a key. The keys of a long map, such as `roles`, are looked up in about their order: each search begins
/// where the last one has ended.
fn entry<'e>(entries: &'e [Entry], key: &str) -> Option<&'e Entry> {
    thread_local! {
        static LAST: Cell<usize> = const { Cell::new(0) };
    }
    if entries.len() < LONG {
        return entries.iter().find(|entry| entry.key == key);
    }
    let (before, after) = entries.split_at(LAST.get().min(entries.len()));
    let at = after.iter().position(|entry| entry.key == key).map(|at| before.len() + at);
    let at = at.or_else(|| before.iter().position(|entry| entry.key == key))?;
    LAST.set(at);
    Some(&entries[at])
}

/// The part of a path that a diagnostic points to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The value at the path.
    #[default]
    Value,
    /// The key of the value.
    Key,
}

impl Document {
    /// The node at a JSON Pointer.
    pub fn at(&self, pointer: &Pointer) -> Option<&Node> {
        pointer.segments().try_fold(&self.root, |node, segment| node.get(&segment))
    }

    /// The span of a path's key or value; for a field that a role inherits, the span in the job.
    pub fn span_of_cause(&self, pointer: &Pointer, part: Part) -> Span {
        let exists = |at: &Pointer| self.at(at).is_some();
        self.span(inherited(pointer, exists).as_ref().unwrap_or(pointer), part)
    }

    /// The span of a path's key or value, or of its nearest existing ancestor.
    pub fn span(&self, pointer: &Pointer, part: Part) -> Span {
        let mut node = &self.root;
        let mut key = self.root.span;
        for segment in pointer.segments() {
            let next = match &node.value {
                Value::Mapping(entries) => entry(entries, &segment),
                _ => None,
            };
            if let Some(entry) = next {
                (node, key) = (&entry.value, entry.key_span);
            } else if let Some(item) = node.get(&segment) {
                (node, key) = (item, item.span);
            } else {
                // A missing value is shown at its parent's key, if it has one, or at the parent.
                return key;
            }
        }
        if part == Part::Key { key } else { node.span }
    }

    /// The span of a part of a text; `None` if the source does not contain the text verbatim.
    ///
    /// A scalar as long as its text is that text verbatim; one two bytes longer is quoted without escapes. In a block
    /// (`|`) the lines are verbatim.
    pub fn span_inside(
        &self,
        sources: &Sources,
        pointer: &Pointer,
        text: &str,
        range: Range<usize>,
    ) -> Option<Span> {
        let node = self.at(pointer).filter(|node| node.as_str() == Some(text))?;
        let raw = sources.slice(node.span);
        let range = if raw.starts_with('|') {
            in_block(raw, text, range)?
        } else {
            let lead = match raw.len().checked_sub(text.len())? {
                0 => 0,
                2 if raw.starts_with(['"', '\'']) => 1,
                _ => return None,
            };
            range.start + lead..range.end + lead
        };
        let start = node.span.start as usize;
        Some(Span::new(node.span.source, start + range.start, start + range.end))
    }

    /// The text of the key or the item at a path.
    pub fn name_at(&self, pointer: &Pointer) -> Option<String> {
        let last = pointer.segments().last()?;
        let node = self.at(pointer)?;
        let item = last.bytes().all(|b| b.is_ascii_digit()).then(|| node.as_str()).flatten();
        Some(item.map_or(last, str::to_owned))
    }

    /// The document as plain JSON.
    pub fn to_json(&self) -> Json {
        self.root.to_json()
    }
}

/// The bytes of a part of one line of a text, in the block (`|`) that has it.
fn in_block(raw: &str, text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let number = text[..range.start].matches('\n').count();
    let begin = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let line = text[begin..].split('\n').next().filter(|line| range.end <= begin + line.len())?;
    // The first line of a block is its header.
    let (start, _) = raw.match_indices('\n').nth(number)?;
    let indented = raw[start + 1..].split('\n').next()?.trim_end_matches('\r');
    let indent = indented.strip_suffix(line).filter(|indent| indent.bytes().all(|byte| byte == b' '))?;
    let lead = start + 1 + indent.len();
    Some(lead + range.start - begin..lead + range.end - begin)
}

impl Entry {
    /// Shifts the spans of the key and its value by a number of bytes.
    pub fn shift(&mut self, by: i32) {
        self.key_span.shift(by);
        self.value.shift(by);
    }
}

impl Node {
    /// The child under a key, or at an index.
    pub fn get(&self, segment: &str) -> Option<&Node> {
        match &self.value {
            Value::Mapping(entries) => entry(entries, segment).map(|entry| &entry.value),
            Value::Sequence(items) => segment.parse::<usize>().ok().and_then(|i| items.get(i)),
            _ => None,
        }
    }

    /// The entries of a map; empty for anything else.
    pub fn entries(&self) -> &[Entry] {
        if let Value::Mapping(entries) = &self.value { entries } else { &[] }
    }

    /// The items of a list; empty for anything else.
    pub fn items(&self) -> &[Node] {
        if let Value::Sequence(items) = &self.value { items } else { &[] }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(text) = &self.value { Some(text) } else { None }
    }

    /// The value as a scalar with its text; `None` for a list, a map, or null.
    pub fn to_scalar(&self) -> Option<Scalar> {
        match &self.value {
            Value::Bool(b) => Some(Scalar { value: Json::Bool(*b), text: b.to_string() }),
            Value::Number { number, text } => {
                Some(Scalar { value: Json::Number(number.clone()), text: text.clone() })
            }
            Value::String(text) => Some(Scalar::string(text.clone())),
            Value::Null | Value::Sequence(_) | Value::Mapping(_) => None,
        }
    }

    /// Shifts the spans of the node and its descendants by a number of bytes, after an earlier edit.
    pub fn shift(&mut self, by: i32) {
        self.span.shift(by);
        match &mut self.value {
            Value::Mapping(entries) => entries.iter_mut().for_each(|entry| entry.shift(by)),
            Value::Sequence(items) => items.iter_mut().for_each(|item| item.shift(by)),
            _ => {}
        }
    }

    /// The value as plain JSON.
    pub fn to_json(&self) -> Json {
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(b) => Json::Bool(*b),
            Value::Number { number, .. } => Json::Number(number.clone()),
            Value::String(text) => Json::String(text.clone()),
            Value::Sequence(items) => Json::Array(items.iter().map(Node::to_json).collect()),
            Value::Mapping(entries) => {
                Json::Object(entries.iter().map(|e| (e.key.clone(), e.value.to_json())).collect())
            }
        }
    }

    /// Describes the value for a message: `a list`, `the number 3`.
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(b) => format!("`{b}`"),
            Value::Number { text, .. } => format!("the number {text}"),
            Value::String(text) if text.chars().count() > 40 => "a string".to_owned(),
            Value::String(text) => format!("the string {text:?}"),
            Value::Sequence(_) => "a list".to_owned(),
            Value::Mapping(_) => "a map".to_owned(),
        }
    }
}
