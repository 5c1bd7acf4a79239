//! Templates in `uses`, and their parameters in `with`.

use camino::Utf8Path;
use jobc_compiler::document::{Document, Node};
use jobc_compiler::template::built_in;
use lsp_types::CompletionItemKind;

use super::context::Context;
use super::item::Item;
use super::snippet;
use crate::analysis::parse_alone;

/// The built-in templates of a kind: `job` or `role`.
pub(super) fn names(kind: &str) -> Vec<Item> {
    let item = |(name, text): (&str, &str)| {
        let root = parse_alone(Some(Utf8Path::new("template.yaml")), text)?.root;
        let about = root.get("description").and_then(Node::as_str).unwrap_or_default().to_owned();
        (root.get("kind").and_then(Node::as_str) == Some(kind))
            .then(|| Item::new(CompletionItemKind::Module, &format!("std/{name}")).detail(about))
    };
    built_in().filter_map(item).collect()
}

/// The parameters of the template that a map uses, except those that are already set.
pub(super) fn parameters(context: &Context<'_>, user: Option<&Node>) -> Vec<Item> {
    let Some(name) = user.and_then(|user| user.get("uses")).and_then(Node::as_str) else { return vec![] };
    let Some(template) = read(context, name) else { return vec![] };
    let cursor = context.cursor;
    let mut found = vec![];
    for entry in template.root.get("params").map(Node::entries).unwrap_or_default() {
        if cursor.taken.contains(&entry.key) {
            continue;
        }
        let about = entry.value.get("description").and_then(Node::as_str).unwrap_or_default();
        let rules = matches!(entry.value.value, jobc_compiler::document::Value::Mapping(_));
        let default = if rules { entry.value.get("default") } else { Some(&entry.value) };
        let default = default.and_then(Node::to_scalar).map(|scalar| scalar.text);
        let first = default.as_deref().map(|text| format!("${{1:{}}}", snippet::escaped(text)));
        let insert = if cursor.has_colon {
            entry.key.clone()
        } else {
            format!("{}: {}", entry.key, first.unwrap_or_else(|| "$0".to_owned()))
        };
        let detail = default.map_or_else(|| "required".to_owned(), |text| format!("default {text}"));
        found.push(
            Item::new(CompletionItemKind::Property, &entry.key)
                .insert(insert)
                .detail(detail)
                .documentation(about),
        );
    }
    found
}

fn read(context: &Context<'_>, name: &str) -> Option<Document> {
    let built_in = |name: &str| built_in().find(|(known, _)| *known == name).map(|(_, text)| text.to_owned());
    let beside = || {
        let directory = context.session.documents.get(context.uri)?.path.as_deref()?.parent()?;
        context.session.text_of(&crate::uri::normal(&directory.join(name)))
    };
    let text = name.strip_prefix("std/").map_or_else(beside, built_in)?;
    parse_alone(Some(Utf8Path::new("template.yaml")), &text)
}
