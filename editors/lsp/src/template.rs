//! The template that a job or a role uses.

use jobc_compiler::document::{Document, Node};
use jobc_compiler::template::{Description, ParameterDescription, describe, text_of};
use lsp_types::Uri;

use crate::session::Session;

/// The description of the template of a `uses`; `None` if it cannot be read.
pub(crate) fn description(session: &Session<'_>, uri: &Uri, uses: &str) -> Option<Description> {
    let overlay = session.overlay(session.documents.get(uri)?);
    describe(&text_of(uses, &overlay)?)
}

/// The part of a job that has `uses` and `with`: the job itself, or a role.
pub(crate) fn user<'d>(document: &'d Document, path: &[&str]) -> Option<&'d Node> {
    match path {
        ["uses" | "with", ..] => Some(&document.root),
        ["roles", role, "uses" | "with", ..] => document.root.get("roles")?.get(role),
        _ => None,
    }
}

/// Formats a parameter as Markdown.
pub(crate) fn of_parameter(param: &ParameterDescription) -> String {
    let default = match &param.default {
        Some(text) if text.is_empty() => "default: empty".to_owned(),
        Some(text) => format!("default: `{text}`"),
        None => "required".to_owned(),
    };
    let rule = Some(param.rule()).filter(|rule| !rule.is_empty());
    let rules: Vec<String> = rule.into_iter().chain([default]).map(|line| format!("* {line}")).collect();
    let about = Some(param.description.clone()).filter(|about| !about.is_empty());
    about.into_iter().chain([rules.join("\n")]).collect::<Vec<_>>().join("\n\n")
}

/// Formats a template as Markdown: its description, and its parameters.
pub(crate) fn of_template(uses: &str, description: &Description) -> String {
    let mut text = format!("template `{uses}` for a {}", description.kind);
    if !description.description.is_empty() {
        text += &format!(": {}", description.description);
    }
    let line = |param: &ParameterDescription| {
        let default =
            param.default.as_ref().map_or_else(|| "required".to_owned(), |text| format!("`{text}`"));
        format!("* `{}` ({default}): {}", param.name, param.description)
    };
    let params: Vec<String> = description.params.iter().map(line).collect();
    for part in [params.join("\n"), description.notes.clone()] {
        if !part.is_empty() {
            text += &format!("\n\n{part}");
        }
    }
    text
}
