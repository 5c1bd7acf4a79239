//! The contents of the schema: keys, words, whole blocks.

use lsp_types::CompletionItemKind;
use serde_json::Value;

use super::context::Context;
use super::item::Item;
use super::order::order;
use super::{field, snippet};
use crate::schema::{Schema, is_type, list, text};
use crate::text::Text;

pub(super) fn items(context: &Context<'_>, whole: &Text) -> Vec<Item> {
    let schema = Schema::of(context.kind);
    let parts = schema.at(&context.cursor.path);
    let mut found = vec![];
    for part in parts {
        if context.cursor.is_key {
            keys(context, schema, part, &mut found);
        } else {
            values(context, schema, part, whole, &mut found);
        }
    }
    found
}

fn keys(context: &Context<'_>, schema: &Schema, part: &Value, found: &mut Vec<Item>) {
    let cursor = context.cursor;
    let free = |key: &str| !cursor.taken.iter().any(|taken| taken == key);
    for form in schema.forms(part) {
        let properties = form.get("properties").and_then(Value::as_object);
        let required: Vec<&str> = list(form, "required").filter_map(Value::as_str).collect();
        for (declared, (key, property)) in properties.into_iter().flatten().enumerate() {
            if !free(key) || property.get("doNotSuggest").is_some() {
                continue;
            }
            let insert = if cursor.has_colon {
                snippet::escaped(key)
            } else if context.json {
                field::in_json(schema, key, property)
            } else {
                format!("{key}:{}", field::opening(schema, key, property, cursor.on_own_line()))
            };
            let needed = required.contains(&key.as_str());
            let item = Item::new(CompletionItemKind::Property, key)
                .insert(insert)
                .order(order(&cursor.path, key, declared))
                .rank(if needed { 2 } else { 3 });
            let item = if needed { item.detail("required") } else { item };
            found.push(item.documentation(text(property, "markdownDescription")));
        }
        let names = form.get("propertyNames");
        for word in names.into_iter().flat_map(|names| list(names, "enum")).filter_map(Value::as_str) {
            if free(word) {
                found.push(
                    Item::new(CompletionItemKind::Property, word)
                        .insert(if context.json { format!("\"{word}\": $0") } else { format!("{word}: $0") })
                        .rank(2),
                );
            }
        }
    }
    if cursor.on_own_line() && !cursor.has_colon && !context.json {
        for block in schema.snippets(part) {
            let Some(body) = block.get("body").and_then(Value::as_object) else { continue };
            // A block is inserted without the keys that the map already has, and its own name is another one.
            let left: serde_json::Map<String, Value> = body
                .iter()
                .filter(|(key, _)| free(key))
                .map(|(key, value)| (unused(key, &cursor.taken), value.clone()))
                .collect();
            if !left.is_empty() {
                let item = block_item(block, &snippet::yaml(&left.into()).join("\n"));
                // In an empty file, a whole job comes before its first key.
                let rank = if cursor.path.is_empty() && cursor.taken.is_empty() { 0 } else { item.rank };
                found.push(item.rank(rank));
            }
        }
    }
}

/// The key of a block, where it is a tab stop with a name: that name, or with a number behind it if it is taken.
fn unused(key: &str, taken: &[String]) -> String {
    let name = snippet::plain(key);
    if name == key || !taken.contains(&name) {
        return key.to_owned();
    }
    // One more than are taken is free.
    let mut others = (2..taken.len() + 3).map(|number| format!("{name}-{number}"));
    let free = others.find(|name| !taken.contains(name));
    free.map_or_else(|| key.to_owned(), |free| key.replacen(&name, &free, 1))
}

fn values(context: &Context<'_>, schema: &Schema, part: &Value, whole: &Text, found: &mut Vec<Item>) {
    let cursor = context.cursor;
    let before = &whole.as_str()[..cursor.replace.start];
    let in_quotes = before.ends_with(['"', '\'']);
    let in_brackets = before.rsplit('\n').next().is_some_and(|line| line.contains(['{', '[']));
    let scalar = |kind, value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let insert = if in_quotes { text.clone() } else { default_text(value, in_brackets) };
        Item::new(kind, &text).insert(snippet::escaped(&insert))
    };
    for form in schema.forms(part) {
        for (word, about) in Schema::words(form) {
            found.push(Item::new(CompletionItemKind::EnumMember, word).documentation(about).rank(1));
        }
        for value in list(form, "enum") {
            found.push(scalar(CompletionItemKind::EnumMember, value).rank(1));
        }
        if is_type(form, "boolean") {
            found.extend(["true", "false"].map(|word| Item::new(CompletionItemKind::Value, word).rank(1)));
        }
    }
    let shown = part.get("default").into_iter().chain(list(part, "examples"));
    for value in shown.chain(schema.forms(part).into_iter().flat_map(|form| list(form, "examples"))) {
        if value.is_string() || value.is_number() || value.is_boolean() {
            let detail = if part.get("default") == Some(value) { "default" } else { "example" };
            found.push(scalar(CompletionItemKind::Value, value).detail(detail).rank(2));
        }
    }
    for block in schema.snippets(part).filter(|_| !context.json) {
        let Some(body) = block.get("body").filter(|body| body.is_object()) else { continue };
        let lines = snippet::yaml(body);
        let text = if cursor.on_own_line() {
            lines.join("\n")
        } else {
            let indent = " ".repeat(below(whole, cursor.replace.start));
            lines.iter().map(|line| format!("\n{indent}{line}")).collect()
        };
        found.push(block_item(block, &text));
    }
}

/// The indentation of the lines below a key, relative to its line: two more for `- key:`.
fn below(whole: &Text, offset: usize) -> usize {
    let line = &whole.as_str()[whole.line(whole.line_of(offset)).start..offset];
    let content = line.trim_start();
    let dashes = content.len() - content.trim_start_matches(['-', ' ']).len();
    dashes + 2
}

fn block_item(block: &Value, insert: &str) -> Item {
    let shown = snippet::plain(insert);
    Item::new(CompletionItemKind::Snippet, text(block, "label"))
        .insert(insert)
        .documentation(format!(
            "{}\n\n```yaml\n{}\n```",
            text(block, "description"),
            shown.trim_matches('\n')
        ))
        .rank(4)
}

/// A scalar in YAML, quoted if it would be read as something else.
pub(super) fn default_text(value: &Value, in_brackets: bool) -> String {
    match value {
        Value::String(text) if needs_quotes(text, in_brackets) => value.to_string(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn needs_quotes(text: &str, in_brackets: bool) -> bool {
    let is_other = text.parse::<f64>().is_ok() || matches!(text, "" | "true" | "false" | "null" | "~");
    let begins = |c: char| "!&*#|>@`%\"'?[]{}, ".contains(c);
    is_other
        || text.starts_with(begins)
        || text.starts_with("- ")
        || text.ends_with([':', ' '])
        || text.contains(": ")
        || text.contains(" #")
        || in_brackets && text.contains(['[', ']', '{', '}', ','])
}
