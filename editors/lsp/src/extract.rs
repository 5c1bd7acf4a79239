//! Refactorings: the image of a role becomes an entry of `images`, a value a parameter with that default.

use std::ops::Range;

use jobc_compiler::diagnostic::{Diagnostic, DocumentId, Edit, Fix, Location, Safety, Sink, codes};
use jobc_compiler::document::{Document, Node, Part, Value};
use jobc_compiler::source::{Source, SourceId, Sources};
use jobc_schema::Pointer;
use lsp_types::{TextEdit, Uri};
use serde_json::Value as Json;

use crate::kind::Kind;
use crate::session::Session;
use crate::tree::{Tree, is_json};
use crate::{names, selected};

/// The kind of these actions.
pub(crate) const EXTRACT: &str = "refactor.extract";

/// Sections whose values cannot be parameters, or cannot have expressions.
const FIXED: [&str; 6] = ["version", "params", "matrix", "openpai", "uses", "with"];

/// Stands for the text of a number, which JSON would write another way.
const NUMBER: &str = "JOBC_NUMBER";

/// The refactorings for a range of a job, each with its title.
pub(crate) fn extractions(
    session: &Session<'_>,
    uri: &Uri,
    range: Range<usize>,
) -> Vec<(String, Vec<TextEdit>)> {
    let open = session.documents.get(uri).filter(|open| open.kind == Kind::Job);
    let Some((open, tree)) = open.zip(session.tree(uri).filter(|tree| tree.parses)) else { return vec![] };
    let json = is_json(open.path.as_deref(), tree.text.as_str());
    let Some(found) = selected::at(&tree.document, range.start) else { return vec![] };
    if range.end > found.node.span.end as usize {
        return vec![];
    }
    let path: Vec<&str> = found.path.iter().map(String::as_str).collect();
    let mentions = tree.mentions.get_or_init(|| names::names_of_job(&tree.document, tree.text.as_str()));
    let image = image(tree, &path);
    let is_name = names::at(mentions, range.start).is_some();
    let parameter = if found.is_key || is_name { None } else { parameter(tree, &path, found.node, json) };
    image.into_iter().chain(parameter).filter_map(|(title, fix)| Some((title, located(tree, fix)?))).collect()
}

/// The image at a path or around it, as an entry of `images`.
fn image(tree: &Tree, path: &[&str]) -> Option<(String, Vec<Edit>)> {
    let length = match path {
        ["image", ..] => 1,
        ["roles", _, "image", ..] => 3,
        _ => return None,
    };
    let pointer = Pointer::ROOT.keys(path[..length].iter().copied());
    let node = tree.document.at(&pointer)?;
    let reference = match &node.value {
        Value::String(text) if text != "host" && !text.contains("${{") => text.as_str(),
        Value::Mapping(_) if node.get("use").is_none() => {
            node.get("from").and_then(Node::as_str).unwrap_or("image")
        }
        _ => return None,
    };
    let last = reference.rsplit('/').next()?.split([':', '@']).next()?;
    let name = free(
        &tree.document,
        "images",
        &last.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-"),
    );
    let used = format!("{{\"use\": \"{name}\"}}");
    let used = if is_json(None, tree.text.as_str()) { used } else { used.replace('"', "") };
    let place = Location::Path { document: DocumentId::Job, pointer, part: Part::Value };
    let edits = vec![added("images", &name, node.to_json().to_string()), Edit { place, text: used }];
    Some((format!("extract to `images.{name}`"), edits))
}

/// A scalar as a parameter.
fn parameter(tree: &Tree, path: &[&str], node: &Node, json: bool) -> Option<(String, Vec<Edit>)> {
    let section = path.first()?;
    if FIXED.contains(section) || section.starts_with("x-") || path.contains(&"use") {
        return None;
    }
    let raw = &tree.text.as_str()[node.span.range()];
    let value = match &node.value {
        Value::String(text) if !text.contains("${{") && !raw.contains('\n') && !text.is_empty() => {
            Json::from(text.as_str())
        }
        Value::Number { .. } => Json::from(NUMBER),
        Value::Bool(value) => Json::from(*value),
        _ => return None,
    };
    let key = path.iter().rev().find(|key| key.parse::<usize>().is_err())?;
    let name = key.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let name = free(&tree.document, "params", &name);
    let expression = format!("${{{{ params.{name} }}}}");
    let expression = if json || in_flow(tree, path) { format!("\"{expression}\"") } else { expression };
    let replaced = Edit { place: Location::Span(node.span), text: expression };
    let edits = vec![added("params", &name, value.to_string()), replaced];
    Some((format!("extract to `params.{name}`"), edits))
}

fn added(section: &str, name: &str, text: String) -> Edit {
    Edit {
        place: Location::Entry { document: DocumentId::Job, pointer: Pointer::ROOT.keys([section, name]) },
        text,
    }
}

/// The name, or the first one like it that a section does not have yet.
fn free(document: &Document, section: &str, name: &str) -> String {
    let name = if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.to_owned()
    } else {
        format!("x{name}")
    };
    let taken = |name: &str| document.root.get(section).is_some_and(|node| node.get(name).is_some());
    let numbered = (2..).map(|number| format!("{name}{number}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or_default()
}

/// Whether a value stands in braces or brackets.
fn in_flow(tree: &Tree, path: &[&str]) -> bool {
    let mut node = &tree.document.root;
    path.iter().any(|key| {
        let in_flow = tree.text.as_str()[node.span.range()].starts_with(['{', '[']);
        node = node.get(key).unwrap_or(node);
        in_flow
    })
}

/// The edits in the text; `None` if it has no place for one of them.
fn located(tree: &Tree, edits: Vec<Edit>) -> Option<Vec<TextEdit>> {
    let mut sources = Sources::new();
    let id = sources.add(Source::new("job.yaml", tree.text.as_str()));
    debug_assert_eq!(id, SourceId::default(), "the tree's positions are in the first source");
    let mut sink = Sink::new();
    let mut diagnostic = Diagnostic::info(codes::EXPRESSION_NAME, "");
    let number = edits.iter().find_map(|edit| match edit.place {
        Location::Span(span) => Some(tree.text.as_str()[span.range()].to_owned()),
        _ => None,
    });
    diagnostic.fixes.push(Fix { message: String::new(), edits, safety: Safety::Unsafe });
    sink.push(diagnostic);
    sink.locate(DocumentId::Job, &tree.document, &sources);
    let fix = sink.into_diagnostics().pop()?.fixes.pop()?;
    let edits = fix.edits.into_iter().map(|Edit { place, text }| {
        let new_text = match &number {
            Some(number) => text.replace(&format!("\"{NUMBER}\""), number).replace(NUMBER, number),
            None => text,
        };
        Some(TextEdit { range: tree.text.range(place.span()?.range()), new_text })
    });
    edits.collect()
}

#[cfg(test)]
mod tests;
