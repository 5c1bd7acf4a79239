//! Messages for expressions that cannot be evaluated.

use std::ops::Range;

use minijinja::value::ValueKind;
use minijinja::{ErrorKind, Value};

use super::names::{Key, Path};
use super::scopes::Scope;
use crate::diagnostic::{Code, codes};
use crate::suggest;

/// Why an expression cannot be evaluated.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The code of the diagnostic.
    pub code: Code,
    /// The message.
    pub message: String,
    /// The byte range in the code; the whole code if `None`.
    pub range: Option<Range<usize>>,
    /// The label at that place.
    pub label: Box<str>,
    /// Additional help.
    pub notes: Vec<String>,
    /// A suggested replacement for the name at that place.
    pub near: Option<Box<str>>,
}

/// Help for a list inside text.
pub(super) const JOIN: &str = "write `| join(\",\")` behind it, or pick one with `[0]`";

impl Failure {
    pub(super) fn new(code: Code, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            range: None,
            label: label.into().into_boxed_str(),
            notes: vec![],
            near: None,
        }
    }

    /// A suggestion to append to the code.
    pub(super) fn behind(&self) -> Option<&'static str> {
        self.notes.iter().any(|note| note == JOIN).then_some(" | join(\",\")")
    }

    pub(super) fn at(mut self, range: Range<usize>) -> Self {
        self.range = Some(range);
        self
    }

    pub(super) fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }
}

/// An undefined step of a path.
pub(super) fn missing(path: &Path, step: usize, parent: &Value) -> Failure {
    let so_far = written_path(path, step);
    match (&path.steps[step].key, parent.kind()) {
        (Key::Item(index), ValueKind::Seq) => {
            let length = parent.len().unwrap_or_default();
            let mut failure = Failure::new(
                codes::EXPRESSION_NAME,
                format!("`{so_far}` has no item {index}"),
                "out of range",
            )
            .note(match length {
                1 => format!("`{so_far}` has one item, number 0"),
                _ => format!("`{so_far}` has {length} items, counted from 0"),
            });
            failure.near = length.checked_sub(1).map(|last| last.to_string().into());
            failure
        }
        (Key::Name(name), ValueKind::Map) => {
            let keys = keys(parent);
            let near = suggest::nearest(name, keys.iter().map(String::as_str));
            // `job` has only one field.
            let only = keys.first().filter(|_| keys.len() == 1 && so_far == "job").map(String::as_str);
            let near = near.or(only).map(str::to_owned);
            undefined(path, step, name, near.as_deref(), keys.iter().map(String::as_str))
        }
        (_, kind) => {
            let kind = match kind {
                ValueKind::Seq => "a list",
                ValueKind::Map => "a map",
                ValueKind::String => "text",
                ValueKind::Number => "a number",
                _ => "a single value",
            };
            let message = format!(
                "`{so_far}` is {kind} and has no `{}`",
                written_path(path, step + 1)[so_far.len()..].trim_start_matches('.')
            );
            let mut failure = Failure::new(codes::EXPRESSION_NAME, message, "not there");
            if kind == "a list" {
                failure = failure.note(format!("pick an item: `{so_far}[0]`"));
            }
            failure
        }
    }
}

/// An undefined name, with the defined names.
pub(super) fn undefined<'a>(
    path: &Path,
    step: usize,
    name: &str,
    near: Option<&str>,
    known: impl Iterator<Item = &'a str>,
) -> Failure {
    let whole = written_path(path, step + 1);
    let label = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "not defined".to_owned(),
    };
    let mut known = known.peekable();
    let is_empty = known.peek().is_none();
    let list = suggest::list(known);
    let note = if step > 0 {
        let above = written_path(path, step);
        if is_empty {
            format!("there is nothing in `{above}` here")
        } else {
            format!("known in `{above}`: {list}")
        }
    } else if let Some(scope) = Scope::parse(name) {
        format!("`{}` is not known here; known: {list}", scope.as_str())
    } else {
        format!("names begin with {list}; text goes in quotes: `\"{name}\"`")
    };
    let mut failure =
        Failure::new(codes::EXPRESSION_NAME, format!("`{whole}` is not defined"), label).note(note);
    failure.near = near.map(Box::from);
    failure
}

/// The first steps of a path as written in code.
fn written_path(path: &Path, steps: usize) -> String {
    let mut out = String::new();
    for step in path.steps.iter().take(steps) {
        match &step.key {
            Key::Name(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            Key::Item(index) => {
                out.push('[');
                out.push_str(&index.to_string());
                out.push(']');
            }
        }
    }
    out
}

fn keys(map: &Value) -> Vec<String> {
    map.try_iter().map(|keys| keys.map(|key| key.to_string()).collect()).unwrap_or_default()
}

/// The fields to choose from in a map.
pub(super) fn keys_note(map: &Value) -> String {
    let keys = keys(map);
    format!("pick one of its values: {}", suggest::list(keys.iter().map(String::as_str)))
}

/// An empty `${{ }}`.
pub(super) fn empty() -> Failure {
    Failure::new(codes::EXPRESSION_SYNTAX, "the expression is empty", "empty")
        .note("write for example `${{ params.batch_size }}`")
}

/// An expression that is too long for the engine.
pub(super) fn too_long(limit: usize) -> Failure {
    Failure::new(codes::EXPRESSION_SYNTAX, format!("the expression is longer than {limit} bytes"), "")
        .note("expressions are for names and small calculations; leave the rest to the program")
}

/// Rewords an error of the engine.
pub(super) fn failure(error: &minijinja::Error, same_code: bool) -> Failure {
    let detail = error.detail().unwrap_or_default();
    let (code, message) = match error.kind() {
        ErrorKind::SyntaxError
        | ErrorKind::BadEscape
        | ErrorKind::UnknownFilter
        | ErrorKind::UnknownTest
        | ErrorKind::UnknownFunction => {
            (codes::EXPRESSION_SYNTAX, format!("the expression cannot be read: {detail}"))
        }
        ErrorKind::OutOfFuel => (codes::EXPRESSION_VALUE, "the expression takes too many steps".to_owned()),
        kind if detail.is_empty() => {
            (codes::EXPRESSION_VALUE, format!("the expression has no value: {kind}"))
        }
        _ => (codes::EXPRESSION_VALUE, format!("the expression has no value: {detail}")),
    };
    let mut failure = Failure::new(code, message, "");
    failure.range = error.range().filter(|_| same_code);
    failure
}
