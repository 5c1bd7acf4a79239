//! Whether what the schema offers goes with what is there.

use jobc_compiler::document::{Node, Value};
use jobc_compiler::validate;
use lsp_types::CompletionItemKind;

use super::context::Context;
use super::cursor::MARK;
use super::item::Item;
use super::snippet;
use crate::kind::Kind;

/// Removes fields that exclude one of their map, and values of another type than their parameter.
pub(super) fn retain(context: &Context<'_>, found: &mut Vec<Item>) {
    if context.kind != Kind::Job {
        return;
    }
    let path: Vec<&str> = context.cursor.path.iter().map(String::as_str).collect();
    let here = path.iter().try_fold(&context.cursor.document.root, |node, step| node.get(step));
    if context.cursor.is_key {
        let conflicts = |key: &str| {
            let mut document = context.cursor.document.clone();
            write(&mut document.root, key);
            validate::conflicts(&document)
        };
        // A name that no rule knows.
        let before = conflicts("x-");
        let fits = |key: &str| goes_with(here, &path, key) && conflicts(key) <= before;
        found.retain(|item| match item.kind {
            CompletionItemKind::Property => fits(&item.label),
            CompletionItemKind::Snippet => keys_of_block(&item.insert).iter().all(|key| fits(key)),
            _ => true,
        });
    } else if let ["params", name, field @ ("default" | "min" | "max")] = path[..] {
        let param = context.cursor.document.root.get("params").and_then(|params| params.get(name));
        of_type(param, field, found);
    }
}

/// The fields at the top of a block.
fn keys_of_block(insert: &str) -> Vec<String> {
    let text = snippet::plain(insert);
    let is_key = |line: &&str| !line.starts_with([' ', '-']);
    text.lines().filter(is_key).filter_map(|line| Some(line.split_once(':')?.0.to_owned())).collect()
}

/// Replaces the key at the cursor; for `x-`, which is not a field, removes it.
fn write(node: &mut Node, key: &str) {
    match &mut node.value {
        Value::Mapping(entries) => {
            if key == "x-" {
                entries.retain(|entry| !entry.key.contains(MARK));
            }
            for entry in entries {
                if entry.key.contains(MARK) {
                    key.clone_into(&mut entry.key);
                }
                write(&mut entry.value, key);
            }
        }
        Value::Sequence(items) => items.iter_mut().for_each(|item| write(item, key)),
        _ => {}
    }
}

/// Whether a field has an effect beside those of its map.
fn goes_with(here: Option<&Node>, path: &[&str], key: &str) -> bool {
    let field = |key: &str| here.and_then(|map| map.get(key));
    let begins =
        |start: &str| field("source").and_then(Node::as_str).is_none_or(|source| source.starts_with(start));
    match (path, key) {
        (_, "with") => field("uses").is_some(),
        (["roles", _], "setup") => field("args").is_none(),
        (["roles", _], "shell") => {
            field("args").is_none() && field("run").is_none_or(|run| run.items().is_empty())
        }
        (["image"] | ["images", _] | ["roles", _, "image"], "context" | "target") => {
            field("dockerfile").is_some()
        }
        (["data", _], "ref") => begins("git+https://"),
        (["data", _], "unpack") => begins("https://"),
        (["params", _], "min" | "max") => {
            let example =
                field("default").or_else(|| field("choices").and_then(|choices| choices.items().first()));
            match field("type").and_then(Node::as_str) {
                Some(name) => matches!(name, "int" | "float"),
                None => !example.is_some_and(|node| matches!(node.value, Value::String(_) | Value::Bool(_))),
            }
        }
        _ => true,
    }
}

/// Keeps the values that a parameter can have: its choices, or those of its type.
fn of_type(param: Option<&Node>, field: &str, found: &mut Vec<Item>) {
    let Some(param) = param else { return };
    let choices = param.get("choices").map(Node::items).unwrap_or_default();
    if field == "default" && !choices.is_empty() {
        let words = choices.iter().filter_map(Node::to_scalar);
        *found = words.map(|word| Item::new(CompletionItemKind::EnumMember, &word.text)).collect();
        return;
    }
    let is_number = |label: &str| label.parse::<f64>().is_ok();
    let Some(name) = param.get("type").and_then(Node::as_str) else { return };
    found.retain(|item| match name {
        "int" => item.label.parse::<i64>().is_ok(),
        "float" => is_number(&item.label),
        "bool" => matches!(item.label.as_str(), "true" | "false"),
        _ => !is_number(&item.label) && !matches!(item.label.as_str(), "true" | "false"),
    });
}
