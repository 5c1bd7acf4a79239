//! Templates in `uses`, and their parameters in `with`.

use jobc_compiler::template::{ParameterDescription, built_in, describe};
use lsp_types::CompletionItemKind;

use super::context::Context;
use super::item::Item;
use super::snippet;
use crate::template::{description, of_parameter, of_template, user};

/// The built-in templates of a kind, `job` or `role`, those beside the job, and the syntax of one in Git.
pub(super) fn names(context: &Context<'_>, kind: &str) -> Vec<Item> {
    let item = |(name, text): (&str, &str)| {
        let uses = format!("std/{name}");
        let found = describe(text).filter(|found| found.kind == kind)?;
        let page = of_template(&uses, &found);
        Some(Item::new(CompletionItemKind::Module, &uses).detail(found.description).documentation(page))
    };
    let git = Item::new(CompletionItemKind::Snippet, "git+https://")
        .insert("git+https://${1:HOST}/${2:REPO}//${3:PATH}@${4:COMMIT}")
        .detail("a template in a Git repository")
        .documentation("`jobc lock` fetches it, and records its commit and digest in `jobc.lock`")
        .order(1);
    let beside = context.session.templates(context.uri).into_iter().filter_map(|(uses, text)| {
        let found = describe(&text).filter(|found| found.kind == kind)?;
        let page = of_template(&uses, &found);
        Some(Item::new(CompletionItemKind::File, &uses).detail(found.description).documentation(page))
    });
    built_in().filter_map(item).chain(beside).chain([git]).collect()
}

/// The parameters of the template that a map uses, except those that are already set.
pub(super) fn parameters(context: &Context<'_>, path: &[&str]) -> Vec<Item> {
    let mut found = vec![];
    let cursor = context.cursor;
    for (order, param) in (0..).zip(params(context, path)) {
        if cursor.taken.contains(&param.name) {
            continue;
        }
        let first = param.default.as_deref().map(|text| format!("${{1:{}}}", snippet::escaped(text)));
        let insert = if cursor.has_colon {
            param.name.clone()
        } else {
            format!("{}: {}", param.name, first.unwrap_or_else(|| "$0".to_owned()))
        };
        let detail =
            param.default.as_ref().map_or_else(|| "required".to_owned(), |text| format!("default {text}"));
        // Required ones come first.
        let order = if param.default.is_none() { order } else { order + 100 };
        found.push(
            Item::new(CompletionItemKind::Property, &param.name)
                .insert(insert)
                .detail(detail)
                .documentation(of_parameter(&param))
                .order(order),
        );
    }
    found
}

/// The values of a parameter: the allowed ones, or its default; for a secret, those of the job.
pub(super) fn values(context: &Context<'_>, path: &[&str]) -> Vec<Item> {
    let Some(name) = path.last() else { return vec![] };
    let Some(param) = params(context, path).into_iter().find(|param| param.name == *name) else {
        return vec![];
    };
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let default = param.default.as_deref();
    let mut words: Vec<String> = if param.choices.is_empty() && param.type_name() == "bool" {
        vec!["true".to_owned(), "false".to_owned()]
    } else {
        param.choices.iter().map(text).collect()
    };
    if words.is_empty() {
        words.extend(default.filter(|text| !text.is_empty()).map(str::to_owned));
    }
    if param.description.contains("secret") {
        let secrets = context.names.root.get("secrets");
        let names = secrets.map(jobc_compiler::document::Node::entries).unwrap_or_default().iter();
        words.extend(names.map(|entry| format!("\"${{{{ secrets.{} }}}}\"", entry.key)));
    }
    let item = |(order, word): (u16, String)| {
        let is_default = default == Some(&*word);
        let detail = if is_default { "default" } else { "" };
        Item::new(CompletionItemKind::EnumMember, &word)
            .detail(detail)
            .documentation(&param.description)
            .order(order)
    };
    (0..).zip(words).map(item).collect()
}

/// The parameters of the template that is used at a path.
fn params(context: &Context<'_>, path: &[&str]) -> Vec<ParameterDescription> {
    let uses = user(&context.cursor.document, path).and_then(|user| user.get("uses"));
    let Some(uses) = uses.and_then(jobc_compiler::document::Node::as_str) else { return vec![] };
    description(context.session, context.uri, uses).map(|found| found.params).unwrap_or_default()
}
