//! Files of a Git template: `files: {PATH: {from: "${{ template.directory }}/NAME"}}` is replaced with their content.
//!
//! Such a template has no directory on the host that builds a job, so its files become part of the plan. No other
//! field can refer to them.

use super::read::Kind;
use super::tree::Tree;
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Node, Value};

/// Inserts the contents of a template's files into its body, and reports missing files.
pub(super) fn inline(body: &mut Node, kind: Kind, tree: &Tree, sink: &mut Sink) {
    match kind {
        Kind::Role => of_role(body, tree, sink),
        Kind::Job => {
            let Some(roles) = value(body, "roles") else { return };
            if let Value::Mapping(roles) = &mut roles.value {
                for role in roles {
                    of_role(&mut role.value, tree, sink);
                }
            }
        }
    }
}

fn of_role(role: &mut Node, tree: &Tree, sink: &mut Sink) {
    let Some(files) = value(role, "files") else { return };
    let Value::Mapping(files) = &mut files.value else { return };
    for file in files {
        let Value::Mapping(entries) = &mut file.value.value else { continue };
        let Some(from) = entries.iter_mut().find(|entry| entry.key == "from") else { continue };
        let Some(path) = from.value.as_str().and_then(own_path) else { continue };
        let content = match tree.get(path).map(|bytes| std::str::from_utf8(bytes)) {
            Some(Ok(text)) if text.contains("${{") => {
                Err(format!("`{path}` of the template contains `${{{{`, which would be evaluated"))
            }
            Some(Ok(text)) => Ok(text.to_owned()),
            Some(Err(_)) => Err(format!("`{path}` of the template is not text in UTF-8")),
            None => Err(format!("the template has no file `{path}`")),
        };
        match content {
            Ok(text) => {
                "content".clone_into(&mut from.key);
                from.value.value = Value::String(text);
            }
            Err(message) => {
                sink.push(Diagnostic::error(codes::TEMPLATE_ABSENT, message).at_span(from.value.span, ""));
                // Report it only once.
                from.value.value = Value::String(String::new());
            }
        }
    }
}

/// The path after `${{ template.directory }}/`.
fn own_path(text: &str) -> Option<&str> {
    let (expression, path) = text.strip_prefix("${{")?.split_once("}}/")?;
    (expression.trim() == "template.directory").then(|| path.trim_start_matches("./"))
}

fn value<'a>(node: &'a mut Node, key: &str) -> Option<&'a mut Node> {
    let Value::Mapping(entries) = &mut node.value else { return None };
    entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.value)
}
