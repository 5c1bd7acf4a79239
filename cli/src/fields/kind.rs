//! Types in words: `list of string`, `map of names to Role`.

use serde_json::Value;

use super::format::{Format, text};

/// How a type that has a definition is named.
pub(super) enum Naming<'a, 'n> {
    /// By what it is: `map`, `string`.
    Plain,
    /// By a link to its section in a page. The names of the definitions are added.
    Linked(&'n mut Vec<&'a str>),
}

/// A type in words.
pub(super) fn words<'a>(format: &'a Format, rules: &'a Value, naming: &mut Naming<'a, '_>) -> String {
    if let Some((name, definition)) = format.definition(rules) {
        return match naming {
            Naming::Linked(found) => {
                found.push(name);
                format!("[{name}](#type-{})", name.to_lowercase())
            }
            Naming::Plain => words(format, definition, naming),
        };
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(branches) = rules[keyword].as_array() {
            return alternatives(branches.iter().map(|branch| words(format, branch, naming)).collect());
        }
    }
    if let Some(value) = rules.get("const") {
        return format!("`{value}`");
    }
    if let Some(values) = rules["enum"].as_array() {
        return alternatives(values.iter().map(|value| format!("`{value}`")).collect());
    }
    let kinds: Vec<&str> = match &rules["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => kind.as_str().into_iter().collect(),
    };
    // Beside another type a string is only an expression.
    let is_expression =
        kinds.len() > 1 && text(rules, "pattern").is_some_and(|it| it.starts_with(r"^\$\{\{"));
    let parts = kinds.into_iter().map(|kind| match kind {
        "array" if rules["items"].is_object() => {
            format!("list of {}", words(format, &rules["items"], naming))
        }
        "array" => "list".to_owned(),
        "object" if rules["additionalProperties"].is_object() => {
            format!("map of names to {}", words(format, &rules["additionalProperties"], naming))
        }
        "object" => "map".to_owned(),
        "boolean" => "true or false".to_owned(),
        "string" if is_expression => "expression".to_owned(),
        other => other.to_owned(),
    });
    let words = alternatives(parts.collect());
    if words.is_empty() { "any value".to_owned() } else { words }
}

fn alternatives(parts: Vec<String>) -> String {
    let mut known: Vec<String> = Vec::new();
    for part in parts {
        if !known.contains(&part) {
            known.push(part);
        }
    }
    known.join(" or ")
}

/// What limits a value besides its type: `required`, `at least 1`.
pub(super) fn limits(rules: &Value, is_required: bool) -> Vec<String> {
    const LIMITS: [(&str, &str); 5] = [
        ("minimum", "at least"),
        ("exclusiveMinimum", "more than"),
        ("maximum", "at most"),
        ("minItems", "items: at least"),
        ("maxItems", "items: at most"),
    ];
    let required = is_required.then(|| "required".to_owned());
    let limits = LIMITS.into_iter().filter_map(|(key, words)| Some(format!("{words} {}", rules.get(key)?)));
    required.into_iter().chain(limits).collect()
}
