//! Hover: the declaration of a name, the resolved value, and the documentation from the schema.

mod facts;

use jobc_compiler::document::Node;
use lsp_types::{Contents, Hover, MarkupContent, MarkupKind, Position, Uri};
use serde_json::Value;

use crate::kind::Kind;
use crate::names::{self, Mention};
use crate::schema::{Schema, text};
use crate::selected::{self, Selected};
use crate::session::{Job, Session};
use crate::tree::Tree;
use crate::{amounts, goto, template};

/// The text for a position.
pub(crate) fn hover(session: &Session<'_>, uri: &Uri, position: Position) -> Option<Hover> {
    let tree = session.tree(uri)?;
    let kind = session.documents.get(uri)?.kind;
    let offset = tree.text.offset(position);
    let place = selected::at(&tree.document, offset)?;
    let mentions = goto::mentions(session, uri, tree);
    let mention = names::at(mentions, offset);
    let mut parts = vec![];
    if let Some(mention) = mention.filter(|mention| !mention.declares) {
        parts.extend(name(session, uri, tree, mention));
    }
    if kind == Kind::Job && mention.is_none_or(|mention| mention.declares) {
        parts.extend(of_template(session, uri, tree, &place));
        let plans = session.job(uri).map_or(&[][..], Job::plans);
        parts.extend(facts::of(session, uri, plans, &place));
    }
    if session.client.settings.schema_features && mention.is_none_or(|mention| mention.declares) {
        parts.extend(documentation(kind, &place));
    }
    if parts.is_empty() {
        return None;
    }
    let span = match mention {
        Some(mention) => mention.range.clone(),
        None => span(tree, &place),
    };
    let contents = MarkupContent { kind: MarkupKind::Markdown, value: parts.join("\n\n---\n\n") };
    Some(Hover { contents: Contents::MarkupContent(contents), range: Some(tree.text.range(span)) })
}

/// The template that is used here, or the parameter of one.
fn of_template(session: &Session<'_>, uri: &Uri, tree: &Tree, place: &Selected<'_>) -> Option<String> {
    let path: Vec<&str> = place.path.iter().map(String::as_str).collect();
    let uses = template::user(&tree.document, &path)?.get("uses")?.as_str()?;
    match path[..] {
        ["uses"] | ["roles", _, "uses"] if !place.is_key => {
            Some(template::of_template(uses, &template::description(session, uri, uses)?))
        }
        ["with", name] | ["roles", _, "with", name] => {
            let found = template::description(session, uri, uses)?;
            let param = found.params.iter().find(|param| param.name == name)?;
            Some(format!("parameter `{name}` of `{uses}`\n\n{}", template::of_parameter(param)))
        }
        _ => None,
    }
}

/// The range of a hover: a key, or a value.
fn span(tree: &Tree, place: &Selected<'_>) -> std::ops::Range<usize> {
    let above = &place.path[..place.path.len().saturating_sub(1)];
    let map = above.iter().try_fold(&tree.document.root, |node, step| node.get(step));
    let entry = map.and_then(|map| map.entries().iter().find(|entry| Some(&entry.key) == place.path.last()));
    match entry {
        Some(entry) if place.is_key => entry.key_span.range(),
        _ => place.node.span.range(),
    }
}

/// The declaration of a name that is used here.
fn name(session: &Session<'_>, uri: &Uri, tree: &Tree, mention: &Mention) -> Option<String> {
    let name = &mention.name;
    let head = format!("{} `{}`", name.kind.word(), name.text);
    let root = &tree.document.root;
    let plans = session.job(uri).map_or(&[][..], Job::plans);
    let text = match name.kind {
        names::Kind::Param => param(root.get("params")?.get(&name.text)?, plans, &name.text),
        names::Kind::Role => {
            let role = root.get("roles").and_then(|roles| roles.get(&name.text));
            let known = plans.first().and_then(|job| job.declared_role(&name.text));
            known.map(amounts::of_role).or_else(|| Some(role?.describe())).unwrap_or_default()
        }
        names::Kind::Port => {
            let port = plans.first().and_then(|job| job.declared_role(&name.owner)?.port(&name.text));
            port.map(facts::port).unwrap_or_default()
        }
        names::Kind::Data | names::Kind::Output => {
            let map = if name.kind == names::Kind::Data { "data" } else { "outputs" };
            keys(root.get(map)?.get(&name.text)?, &["source", "mount", "writable"])
        }
        names::Kind::Secret => keys(root.get("secrets")?.get(&name.text)?, &["env", "file", "store"]),
        names::Kind::Image => {
            let image = plans.first().and_then(|job| job.images.get(&name.text));
            image.map(facts::image).unwrap_or_default()
        }
        names::Kind::Axis | names::Kind::Argument | names::Kind::Target => String::new(),
    };
    Some(if text.is_empty() { head } else { format!("{head}\n\n{text}") })
}

fn param(node: &Node, plans: &[jobc_schema::plan::JobPlan], name: &str) -> String {
    let value = plans.first().and_then(|job| job.params.get(name)).map(|value| format!("is `{value}`"));
    let rules = keys(node, &["description", "default", "type", "choices", "min", "max"]);
    let written = value.or_else(|| node.to_scalar().map(|scalar| format!("is `{scalar}`")));
    [written, Some(rules).filter(|text| !text.is_empty())]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// Some keys of a map, one per line.
fn keys(node: &Node, keys: &[&str]) -> String {
    let line = |key: &&str| {
        let value = node.get(key)?;
        let text = value.to_scalar().map_or_else(|| value.to_json().to_string(), |scalar| scalar.text);
        Some(format!("* {key}: `{text}`"))
    };
    keys.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

/// The schema's documentation of the key, or of the word, at a place.
fn documentation(kind: Kind, place: &Selected<'_>) -> Option<String> {
    let schema = Schema::of(kind);
    let parts = schema.at(&place.path);
    let page = |part: &&Value| {
        let own = text(part, "markdownDescription");
        if own.is_empty() {
            text(schema.resolve(part), "markdownDescription").to_owned()
        } else {
            own.to_owned()
        }
    };
    if !place.is_key
        && let Some(word) = place.node.as_str()
    {
        let words = parts.iter().flat_map(|part| schema.forms(part)).flat_map(|form| Schema::words(form));
        if let Some((_, about)) = words.into_iter().find(|(known, _)| *known == word) {
            return Some(format!("`{word}`: {about}"));
        }
    }
    parts.iter().map(page).find(|page| !page.is_empty())
}

#[cfg(test)]
mod tests;
