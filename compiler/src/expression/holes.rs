//! Placeholders in the value of an expression: values that only a target knows, as marks inside plain strings.
//!
//! The engine has no placeholders, only strings. So a placeholder is passed as a string between two characters of a
//! private plane, and the caller splits the result. A mark contains only digits and dots, so that filters such as
//! `upper` leave it whole.

use std::fmt;
use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Enumerator, Object, ObjectRepr};

const OPEN: char = '\u{F0000}';
const CLOSE: char = '\u{F0001}';

/// A piece of a string with marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSegment<'a> {
    /// Text.
    Text(&'a str),
    /// The content of a mark.
    Mark(&'a str),
}

/// The string that marks a placeholder.
pub fn mark(inside: &str) -> String {
    format!("{OPEN}{inside}{CLOSE}")
}

/// Splits a string into text and marks.
pub fn stretches(text: &str) -> Vec<TextSegment<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(OPEN) {
        let Some(end) = rest[start..].find(CLOSE).map(|at| start + at) else { break };
        if start > 0 {
            found.push(TextSegment::Text(&rest[..start]));
        }
        found.push(TextSegment::Mark(&rest[start + OPEN.len_utf8()..end]));
        rest = &rest[end + CLOSE.len_utf8()..];
    }
    if !rest.is_empty() {
        found.push(TextSegment::Text(rest));
    }
    found
}

/// A placeholder that also has names or items below it: a port whose label is also the name of a role, or the only
/// port of a list.
#[derive(Debug)]
pub struct Hole {
    /// The content of its mark.
    pub inside: String,
    /// The values below it.
    pub below: Value,
}

impl Object for Hole {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.below.get_item(key).ok().filter(|value| !value.is_undefined())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&mark(&self.inside))
    }
}

/// A list of placeholders, created on demand: a role may have 100,000 instances.
pub struct HoleList {
    /// The length of the list.
    pub length: usize,
    /// Returns the content of an item's mark.
    pub item: Box<dyn Fn(usize) -> String + Send + Sync>,
    /// Returns the content of the mark for all items joined by a separator; `None` if the plan has no such placeholder.
    pub joined: Option<JoinFn>,
}

/// Creates the content of the mark for a whole list joined by a separator.
pub type JoinFn = Box<dyn Fn(&str) -> String + Send + Sync>;

impl fmt::Debug for HoleList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HoleList").field("length", &self.length).finish_non_exhaustive()
    }
}

impl Object for HoleList {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let index = key.as_usize().filter(|&index| index < self.length)?;
        Some(Value::from(mark(&(self.item)(index))))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.length)
    }
}
