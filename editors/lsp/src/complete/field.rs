//! The text that is inserted for a field: its key, and tab stops for its value.

use serde_json::Value;

use super::keys::default_text;
use super::snippet;
use crate::schema::{Schema, is_type, list};

/// Fields whose values are completed by name: placeholder text would only have to be removed.
const NAMED: [&str; 19] = [
    "image",
    "from",
    "use",
    "uses",
    "needs",
    "data",
    "outputs",
    "roles",
    "model",
    "profile",
    "provider",
    "secret",
    "launch",
    "port",
    "backends",
    "default",
    "dockerfile",
    "requirements",
    "driver",
];

/// The maximum number of words that are offered as choices of a tab stop.
const MAX_CHOICES: usize = 12;

/// The text after a key's colon in YAML: a block on its own lines for a map or a list, otherwise a tab stop.
pub(super) fn opening(schema: &Schema, key: &str, property: &Value, on_own_line: bool) -> String {
    let forms = schema.forms(property);
    let all = |kind: &str| !forms.is_empty() && forms.iter().all(|form| is_type(form, kind));
    if all("object") {
        return if on_own_line { block(schema, key, property) } else { " {$0}".to_owned() };
    }
    if all("array") {
        return if on_own_line { "\n  - $0" } else { " [$0]" }.to_owned();
    }
    format!(" {}", stop(schema, key, property, 1, !on_own_line))
}

/// A key and its value in JSON.
pub(super) fn in_json(schema: &Schema, key: &str, property: &Value) -> String {
    let forms = schema.forms(property);
    let all = |kind: &str| !forms.is_empty() && forms.iter().all(|form| is_type(form, kind));
    // A number or a boolean may also be a string with an expression.
    let unquoted =
        forms.iter().any(|form| ["integer", "number", "boolean"].iter().any(|kind| is_type(form, kind)));
    let value = if all("object") {
        "{$0}"
    } else if all("array") {
        "[$0]"
    } else if all("string") && !unquoted {
        "\"$0\""
    } else {
        "$0"
    };
    format!("\"{key}\": {value}")
}

/// The lines below a key whose value is a map: its required keys, or a first name.
fn block(schema: &Schema, key: &str, property: &Value) -> String {
    let forms = schema.forms(property);
    let wanted: Vec<&str> = match key {
        "resources" => vec!["cpu", "memory"],
        _ => forms.iter().flat_map(|form| list(form, "required")).filter_map(Value::as_str).collect(),
    };
    let field = |key: &str| forms.iter().find_map(|form| form.get("properties")?.get(key));
    let known: Vec<(&str, &Value)> = wanted.iter().filter_map(|key| Some((*key, field(key)?))).collect();
    if !known.is_empty() {
        let line = |(number, (key, property)): (usize, &(&str, &Value))| {
            format!("\n  {key}: {}", stop(schema, key, property, number + 1, false))
        };
        return known.iter().enumerate().map(line).collect();
    }
    let below = forms.iter().find_map(|form| form.get("additionalProperties").filter(|it| it.is_object()));
    let Some(below) = below else { return "\n  $0".to_owned() };
    let maps = schema.forms(below).iter().all(|form| is_type(form, "object"));
    let name = if key == "env" { "NAME" } else { "name" };
    if maps { format!("\n  ${{1:{name}}}:\n    $0") } else { format!("\n  ${{1:{name}}}: $0") }
}

/// A tab stop for a value: the words to choose from, or an example.
fn stop(schema: &Schema, key: &str, property: &Value, number: usize, in_brackets: bool) -> String {
    let forms = schema.forms(property);
    let words: Vec<&str> = forms.iter().flat_map(|form| Schema::words(form)).map(|(word, _)| word).collect();
    let plain =
        |word: &&str| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if forms.iter().all(|form| is_type(form, "boolean")) {
        return format!("${{{number}|true,false|}}");
    }
    if !words.is_empty() && words.len() <= MAX_CHOICES && words.iter().all(plain) {
        return format!("${{{number}|{}|}}", words.join(","));
    }
    let scalar = ["string", "number", "integer", "boolean"];
    let is_scalar = |form: &&&Value| scalar.iter().any(|kind| is_type(form, kind));
    if forms.iter().any(|form| is_type(form, "array"))
        && !forms.iter().any(|form| is_scalar(&form))
        && number > 1
    {
        return format!("[${number}]");
    }
    let resolved = schema.resolve(property);
    let mut examples = list(property, "examples").chain(list(resolved, "examples"));
    let example = examples.find(|value| value.is_string() || value.is_number());
    let versions = list(property, "enum").chain(list(resolved, "enum")).next();
    match versions.or(example) {
        Some(value) if !NAMED.contains(&key) => {
            let text = default_text(value, in_brackets);
            if text.contains('\n') {
                format!("${number}")
            } else {
                format!("${{{number}:{}}}", snippet::escaped(&text))
            }
        }
        _ if number == 1 => "$0".to_owned(),
        _ => format!("${number}"),
    }
}
