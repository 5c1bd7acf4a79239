//! The published schemas, for completion and hover.

use std::sync::LazyLock;

use jobc_schema::{JOB_SCHEMA, TARGETS_SCHEMA};
use serde_json::Value;

use crate::kind::Kind;

static JOB: LazyLock<Schema> = LazyLock::new(|| Schema::read(JOB_SCHEMA));
static TARGETS: LazyLock<Schema> = LazyLock::new(|| Schema::read(TARGETS_SCHEMA));

/// One schema.
pub(crate) struct Schema {
    root: Value,
}

impl Schema {
    /// The schema of a kind of file.
    pub(crate) fn of(kind: Kind) -> &'static Self {
        if kind == Kind::Targets { &TARGETS } else { &JOB }
    }

    fn read(text: &str) -> Self {
        Self { root: serde_json::from_str(text).expect("the committed schema is JSON") }
    }

    /// The fields of the map at a JSON Pointer.
    pub(crate) fn fields(&self, pointer: &str) -> Vec<&str> {
        let fields = self.root.pointer(&format!("{pointer}/properties")).and_then(Value::as_object);
        fields.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
    }

    /// The schema of a place: one part for each alternative that the values on the path match, with its documentation
    /// and not yet resolved.
    pub(crate) fn at(&self, path: &[String]) -> Vec<&Value> {
        let start = vec![&self.root];
        path.iter().fold(start, |parts, step| {
            let forms = parts.into_iter().flat_map(|part| self.forms(part));
            forms.filter_map(|form| child(form, step)).collect()
        })
    }

    /// The alternatives of a part: the branches of a union, resolved, or the part itself.
    pub(crate) fn forms<'a>(&'a self, part: &'a Value) -> Vec<&'a Value> {
        let resolved = self.resolve(part);
        let branches = |keyword| resolved.get(keyword).and_then(Value::as_array).into_iter().flatten();
        let all: Vec<&Value> = branches("anyOf").flat_map(|branch| self.forms(branch)).collect();
        if all.is_empty() { vec![resolved] } else { all }
    }

    /// The part itself, or the target of its `$ref`.
    pub(crate) fn resolve<'a>(&'a self, part: &'a Value) -> &'a Value {
        let target = part.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#'));
        target.and_then(|pointer| self.root.pointer(pointer)).unwrap_or(part)
    }

    /// The example blocks of a part, its own and those of its `$ref`.
    pub(crate) fn snippets<'a>(&'a self, part: &'a Value) -> impl Iterator<Item = &'a Value> {
        let mut all: Vec<&Value> = list(part, "defaultSnippets").collect();
        let resolved = self.resolve(part);
        if !std::ptr::eq(resolved, part) {
            all.extend(list(resolved, "defaultSnippets"));
        }
        all.extend(
            self.forms(part)
                .into_iter()
                .filter(|form| !std::ptr::eq(*form, resolved))
                .flat_map(|form| list(form, "defaultSnippets")),
        );
        all.into_iter()
    }

    /// The words that an alternative accepts, with their descriptions.
    pub(crate) fn words<'a>(form: &'a Value) -> Vec<(&'a str, &'a str)> {
        let word = |branch: &'a Value| Some((branch.get("const")?.as_str()?, text(branch, "description")));
        ["oneOf", "anyOf"].into_iter().flat_map(|key| list(form, key)).filter_map(word).collect()
    }
}

/// The part below an alternative, for a key or an index.
fn child<'a>(form: &'a Value, step: &str) -> Option<&'a Value> {
    if let Some(known) = form.get("properties").and_then(|properties| properties.get(step)) {
        return Some(known);
    }
    // No name begins with a digit: an index is not a key of a map.
    let below = if is_index(step) { "items" } else { "additionalProperties" };
    form.get(below).filter(|part| part.is_object())
}

/// Whether a step of a path is the index of an item.
pub(crate) fn is_index(step: &str) -> bool {
    !step.is_empty() && step.bytes().all(|b| b.is_ascii_digit())
}

/// The schema of a list's items.
pub(crate) fn list<'a>(part: &'a Value, keyword: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    part.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

/// A text of the schema; empty if absent.
pub(crate) fn text<'a>(part: &'a Value, keyword: &str) -> &'a str {
    part.get(keyword).and_then(Value::as_str).unwrap_or_default()
}

/// Whether an alternative has a JSON type.
pub(crate) fn is_type(form: &Value, wanted: &str) -> bool {
    match form.get("type") {
        Some(Value::String(only)) => only == wanted,
        Some(Value::Array(several)) => several.iter().any(|kind| kind == wanted),
        _ => false,
    }
}
