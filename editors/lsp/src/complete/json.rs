//! The contents of the schema in JSON: keys and words with their quotes, and the commas around them.
//!
//! The cursor is found among the tokens of the text and not in its tree, since JSON that is being typed rarely parses.

mod tokens;

use std::ops::Range;

use lsp_types::CompletionItemKind;
use serde_json::Value;

use super::item::Item;
use super::snippet;
use crate::documents::Kind;
use crate::schema::{Schema, is_type, list, text};

use tokens::Spot;

/// An item with its place.
pub(super) struct Placed {
    pub(super) item: Item,
    pub(super) replace: Range<usize>,
    /// Where a comma is missing before it.
    pub(super) comma: Option<usize>,
}

/// Whether a file is JSON: by its extension, or because it begins like JSON.
pub(super) fn is_json(extension: Option<&str>, text: &str) -> bool {
    match extension {
        Some("json" | "jsonc") => true,
        _ => text.trim_start().starts_with('{'),
    }
}

/// What the schema has for an offset of a text.
pub(super) fn items(kind: Kind, whole: &str, offset: usize) -> Vec<Placed> {
    let Some(spot) = tokens::spot(whole, offset) else { return vec![] };
    let schema = Schema::of(kind);
    let mut found = vec![];
    for part in schema.at(&spot.path) {
        if spot.is_key {
            keys(schema, part, &spot, &mut found);
        } else {
            values(schema, part, &spot, &mut found);
        }
    }
    let placed = |item: Item| Placed { item, replace: spot.replace.clone(), comma: spot.comma_before };
    found.into_iter().map(placed).collect()
}

fn keys(schema: &Schema, part: &Value, spot: &Spot, found: &mut Vec<Item>) {
    let free = |key: &str| !spot.taken.iter().any(|taken| taken == key);
    let known = |found: &[Item], key: &str| found.iter().any(|item| item.label == key);
    for form in schema.forms(part) {
        let required: Vec<&str> = list(form, "required").filter_map(Value::as_str).collect();
        let properties = form.get("properties").and_then(Value::as_object);
        for (key, property) in properties.into_iter().flatten() {
            if !free(key) || known(found, key) || property.get("doNotSuggest").is_some() {
                continue;
            }
            let needed = required.contains(&key.as_str());
            let item = Item::new(CompletionItemKind::Property, key)
                .insert(spot.key(key, opening(schema, property)))
                .documentation(text(property, "markdownDescription"))
                .rank(if needed { 2 } else { 3 });
            found.push(if needed { item.detail("required") } else { item });
        }
        let names = form.get("propertyNames").into_iter().flat_map(|names| list(names, "enum"));
        for word in names.filter_map(Value::as_str).filter(|word| free(word)) {
            found.push(Item::new(CompletionItemKind::Property, word).insert(spot.key(word, "$0")).rank(2));
        }
    }
    if !spot.in_quotes && !spot.has_colon {
        blocks(schema, part, found, |body| {
            let entries = body.as_object()?.iter().filter(|(key, _)| free(key));
            let lines: Vec<String> =
                entries.map(|(key, value)| format!("\"{key}\": {}", block(value, ""))).collect();
            (!lines.is_empty()).then(|| format!("{}{}", lines.join(",\n"), spot.comma_after))
        });
    }
}

/// The value after a key's colon, with the place of what is written into it.
fn opening(schema: &Schema, property: &Value) -> &'static str {
    let forms = schema.forms(property);
    let all = |kind: &str| !forms.is_empty() && forms.iter().all(|form| is_type(form, kind));
    let number = forms.iter().any(|form| is_type(form, "integer") || is_type(form, "number"));
    let words = || !forms.is_empty() && forms.iter().all(|form| !Schema::words(form).is_empty());
    if all("object") {
        "{$0}"
    } else if all("array") {
        "[$0]"
    } else if (all("string") && !number) || words() {
        "\"$0\""
    } else {
        "$0"
    }
}

fn values(schema: &Schema, part: &Value, spot: &Spot, found: &mut Vec<Item>) {
    for form in schema.forms(part) {
        for (word, about) in Schema::words(form) {
            let item = Item::new(CompletionItemKind::EnumMember, word);
            found.extend(spot.value(&word.into()).map(|text| item.insert(text).documentation(about).rank(1)));
        }
        for value in list(form, "enum") {
            found.extend(spot.item(CompletionItemKind::EnumMember, value, 1));
        }
        if is_type(form, "boolean") {
            let both = [true.into(), false.into()];
            found.extend(both.iter().filter_map(|value| spot.item(CompletionItemKind::Value, value, 1)));
        }
    }
    let examples = schema.forms(part).into_iter().flat_map(|form| list(form, "examples"));
    for value in part.get("default").into_iter().chain(list(part, "examples")).chain(examples) {
        let detail = if part.get("default") == Some(value) { "default" } else { "example" };
        let item = spot.item(CompletionItemKind::Value, value, 2).map(|item| item.detail(detail));
        if let Some(item) = item.filter(|item| !found.iter().any(|known| known.label == item.label)) {
            found.push(item);
        }
    }
    if !spot.in_quotes {
        blocks(schema, part, found, |body| {
            body.is_object().then(|| format!("{}{}", block(body, ""), spot.comma_after))
        });
    }
}

/// The blocks of a part, each as `written` writes its body.
fn blocks(schema: &Schema, part: &Value, found: &mut Vec<Item>, written: impl Fn(&Value) -> Option<String>) {
    for snippet in schema.snippets(part) {
        let Some(insert) = snippet.get("body").and_then(&written) else { continue };
        let shown = snippet::plain(&insert);
        let documentation = format!("{}\n\n```json\n{shown}\n```", text(snippet, "description"));
        let item = Item::new(CompletionItemKind::Snippet, text(snippet, "label"));
        found.push(item.insert(insert).documentation(documentation).rank(4));
    }
}

/// A block of the schema as JSON; a string that begins with `^` is written without quotes.
fn block(body: &Value, indent: &str) -> String {
    let below = format!("{indent}  ");
    match body {
        Value::Object(map) if !map.is_empty() => {
            let entry =
                |(key, value): (&String, &Value)| format!("{below}\"{key}\": {}", block(value, &below));
            format!("{{\n{}\n{indent}}}", map.iter().map(entry).collect::<Vec<_>>().join(",\n"))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(|item| block(item, indent)).collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => match text.strip_prefix('^') {
            Some(raw) => raw.to_owned(),
            None => format!("\"{text}\""),
        },
        other => other.to_string(),
    }
}
