//! J0151: an expression in the syntax of another tool.

use std::ops::Range;

use super::text_node::TextNode;
use crate::diagnostic::{Diagnostic, Place, Safety, Sink, codes};
use crate::document::{Document, Node};
use crate::suggest;

/// Other syntaxes for expressions.
const MARKS: [(&str, &str); 4] = [("${", "}"), ("{{", "}}"), ("$(", ")"), ("<%", "%>")];

pub(super) fn check(written: &TextNode<'_>, document: &Document, sink: &mut Sink) {
    for (range, path) in find_expressions(written.text) {
        let Some(path) = with_scope(path, document) else { continue };
        let shown = &written.text[range.clone()];
        if !is_known(&path, document) {
            if let Some(name) = path.strip_prefix("params.").filter(|_| written.is_command()) {
                sink.push(unknown(written, document, shown, name, &range));
            }
            continue;
        }
        let instead = format!("${{{{ {path} }}}}");
        let message = format!("`{shown}` stays as it is: write `{instead}`");
        let parts = std::slice::from_ref(&range);
        let place = written.places(parts).and_then(|places| places.first().copied());
        let place = place.map_or_else(|| Place::value(&written.at), Place::Span);
        let mut diagnostic = Diagnostic::warning(codes::OTHER_EXPRESSION, message).at_place(place, "");
        let fix = written.fix(format!("write `{instead}`"), parts, Safety::Safe, |_| instead.clone());
        diagnostic.fixes.extend(fix);
        sink.push(diagnostic);
    }
}

/// Reports an undeclared parameter in another tool's syntax.
fn unknown(
    written: &TextNode<'_>,
    document: &Document,
    shown: &str,
    name: &str,
    range: &Range<usize>,
) -> Diagnostic {
    let parts = std::slice::from_ref(range);
    let place = written.places(parts).and_then(|places| places.first().copied());
    let place = place.map_or_else(|| Place::value(&written.at), Place::Span);
    let message = format!("`{shown}` stays as it is, and the job has no parameter `{name}`");
    let found = Diagnostic::warning(codes::OTHER_EXPRESSION, message)
        .at_place(place, "")
        .note("an expression has two braces, `${{ params.NAME }}`, and the name of an entry of `params`");
    let params = document.root.get("params").map_or(&[][..], Node::entries);
    let Some(near) = suggest::nearest(name, params.iter().map(|entry| entry.key.as_str())) else {
        return found;
    };
    let instead = format!("${{{{ params.{near} }}}}");
    let fix = written.fix(format!("write `{instead}`"), parts, Safety::Unsafe, |_| instead.clone());
    let mut found = found.note(format!("did you mean `{instead}`?"));
    found.fixes.extend(fix);
    found
}

/// The expressions of a text in other syntaxes, each with the path in it.
fn find_expressions(text: &str) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    for (open, close) in MARKS {
        for (at, _) in text.match_indices(open) {
            let rest = &text[at + open.len()..];
            // `${{` is ours.
            if rest.starts_with('{') || text[..at].ends_with(['$', '{', '\\']) {
                continue;
            }
            let Some(end) = rest.find(close) else { continue };
            let path = rest[..end].trim();
            // OpenPAI's `<% $parameters.n %>`.
            let openpai = path.strip_prefix("$parameters.").map(|name| format!("params.{name}"));
            let path = openpai.as_deref().unwrap_or(path);
            // `{{ lr }}` of Jinja and Helm; in other syntaxes, a word alone is a variable or a command of a shell.
            let is_path = (path.contains('.') || open == "{{")
                && path.starts_with(|c: char| c.is_ascii_alphabetic())
                && path
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'[' | b']'));
            if is_path {
                found.push((at..at + open.len() + end + close.len(), path.to_owned()));
            }
        }
    }
    found.sort_by_key(|(range, _)| range.start);
    found
}

/// The path of an expression; a word alone means the parameter or axis with that name.
fn with_scope(path: String, document: &Document) -> Option<String> {
    if path.contains('.') {
        return Some(path);
    }
    let in_map = |map: Option<&Node>| map.is_some_and(|map| map.get(&path).is_some());
    let root = &document.root;
    let matrix = root.get("matrix");
    if in_map(root.get("params")) {
        Some(format!("params.{path}"))
    } else if in_map(matrix) || in_map(matrix.and_then(|matrix| matrix.get("axes"))) {
        Some(format!("matrix.{path}"))
    } else {
        None
    }
}

/// Whether the job declares what a path names.
fn is_known(path: &str, document: &Document) -> bool {
    let Some((scope, rest)) = path.split_once('.') else { return false };
    let name = rest.split(['.', '[']).next().unwrap_or_default();
    let root = &document.root;
    let in_map = |key: &str| root.get(key).is_some_and(|map| map.get(name).is_some());
    let roles = || root.get("roles").map_or(&[][..], Node::entries).iter();
    match scope {
        "matrix" if root.get("matrix").is_some_and(|matrix| matrix.get("axes").is_some()) => root
            .get("matrix")
            .and_then(|matrix| matrix.get("axes"))
            .is_some_and(|axes| axes.get(name).is_some()),
        "params" | "matrix" | "secrets" | "data" | "outputs" => in_map(scope),
        "hosts" | "roles" => in_map("roles"),
        "ports" => roles().any(|role| {
            let ports = role.value.get("resources").and_then(|resources| resources.get("ports"));
            ports.is_some_and(|ports| ports.get(name).is_some())
        }),
        "role" => matches!(name, "name" | "instances" | "gpu"),
        "job" => name == "name",
        "instance" => name == "index",
        "distributed" => name == "world_size",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_other_tools_are_found_and_ours_are_not() {
        let check = |text: &str, expected: &[&str]| {
            let paths: Vec<String> = find_expressions(text).into_iter().map(|(_, path)| path).collect();
            assert_eq!(paths, expected, "{text}");
        };
        check("a ${params.n} {{ params.m }} $(job.name)", &["params.n", "params.m", "job.name"]);
        check("<% $parameters.n %> <%params.m%>", &["params.n", "params.m"]);
        check("${{ params.n }} \\${params.n} $${params.n}", &[]);
        check("{{ lr }} ${lr} $(lr) {{lr | upper}}", &["lr"]);
        check("${HOME} ${x:-a.b} {{ a b }} ${#a[@]}", &[]);
    }
}
