//! What a part of the schema accepts: types, words, and a description for messages.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::document::{Node, Value};

use super::forms::{self, PatternForm};
use super::schema::{Schema, branches};

/// The JSON types that a part of the schema accepts.
pub(super) fn accepted<'a>(schema: &'a Schema, part: &'a Json) -> BTreeSet<&'a str> {
    let part = schema.resolve(part);
    let mut types: BTreeSet<&str> = match part.get("type") {
        Some(Json::String(only)) => BTreeSet::from([only.as_str()]),
        Some(Json::Array(several)) => several.iter().filter_map(Json::as_str).collect(),
        // A word alone has no type, since editors would report the type and the word separately.
        _ if part.get("const").is_some_and(Json::is_string) => BTreeSet::from(["string"]),
        _ => BTreeSet::new(),
    };
    types.extend(branches(part).flat_map(|branch| accepted(schema, branch)));
    types
}

pub(super) fn takes_scalars(types: &BTreeSet<&str>) -> bool {
    ["string", "number", "integer", "boolean"].iter().any(|kind| types.contains(kind))
}

/// Whether a part of the schema accepts the YAML type of a value.
pub(super) fn fits(schema: &Schema, part: &Json, node: &Node) -> bool {
    let types = accepted(schema, part);
    let kind = kind_of(node);
    types.contains(kind) || (kind == "integer" && types.contains("number"))
}

fn kind_of(node: &Node) -> &'static str {
    match &node.value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number { number, .. } => {
            let whole = number.as_f64().is_some_and(|n| n.fract() == 0.0);
            if whole { "integer" } else { "number" }
        }
        Value::String(_) => "string",
        Value::Sequence(_) => "array",
        Value::Mapping(_) => "object",
    }
}

/// The words that a part of the schema allows; empty if it also allows other values.
pub(super) fn allowed(schema: &Schema, part: &Json) -> Vec<String> {
    let part = schema.resolve(part);
    let word = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(value) = part.get("const") {
        return vec![word(value)];
    }
    if let Some(values) = part.get("enum").and_then(Json::as_array) {
        return values.iter().map(word).collect();
    }
    if part.get("oneOf").is_some() {
        return branches(part).flat_map(|branch| allowed(schema, branch)).collect();
    }
    vec![]
}

/// Describes what a part of the schema accepts: `a whole number`, `` `auto` ``, `a map`.
pub(super) fn expected(schema: &Schema, part: &Json) -> Vec<String> {
    let part = schema.resolve(part);
    let mut words: Vec<String> = vec![];
    let mut add = |word: String| {
        if !words.contains(&word) {
            words.push(word);
        }
    };
    let choices = allowed(schema, part);
    if !choices.is_empty() {
        return choices.iter().map(|choice| format!("`{choice}`")).collect();
    }
    if branches(part).next().is_some() {
        // A map comes first in the schema and last in a sentence: `a whole number or a map`.
        let is_map = |branch: &&Json| accepted(schema, branch).contains("object");
        let (maps, others): (Vec<&Json>, Vec<&Json>) = branches(part).partition(is_map);
        others.into_iter().chain(maps).flat_map(|branch| expected(schema, branch)).for_each(add);
        return words;
    }
    let form = part.get("pattern").and_then(Json::as_str).and_then(forms::find);
    if let Some(form @ PatternForm { amount: true, .. }) = form {
        return vec![form.what.to_owned()];
    }
    for kind in accepted(schema, part) {
        match (kind, form) {
            ("string", Some(form)) if !form.words.is_empty() => {
                for word in form.words {
                    add(format!("`{word}`"));
                }
            }
            // The string is only for an expression.
            ("string", Some(form)) if form.what.is_empty() => {}
            ("string", _) => add("a string".to_owned()),
            ("integer", _) => add("a whole number".to_owned()),
            ("number", _) => add("a number".to_owned()),
            ("boolean", _) => add("`true` or `false`".to_owned()),
            ("array", _) => add("a list".to_owned()),
            ("object", _) => add("a map".to_owned()),
            _ => {}
        }
    }
    words
}
