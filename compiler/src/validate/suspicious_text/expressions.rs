//! J0151: an expression in the syntax of another tool.

use std::ops::Range;

use jobc_schema::Pointer;

use super::text_node::TextNode;
use crate::diagnostic::{Diagnostic, Location, Safety, Sink, codes};
use crate::document::{Document, Node};
use crate::suggest;

/// Other syntaxes for expressions.
const MARKS: [(&str, &str); 4] = [("${", "}"), ("{{", "}}"), ("$(", ")"), ("<%", "%>")];

pub(super) fn check(written: &TextNode<'_>, document: &Document, sink: &mut Sink) {
    let expressions = find_expressions(written.text);
    if expressions.is_empty() {
        return;
    }
    let values = Values::of(&written.at, document);
    for (range, name) in expressions {
        let path = values.path_of(&name);
        let Some(path) = path.filter(|path| is_known(path, &values, document)) else {
            let is_mistake = match name.strip_prefix("params.") {
                Some(_) => written.is_command(),
                None => {
                    !name.contains('.')
                        && written.text[range.clone()].contains(' ')
                        && is_words(written, &range)
                }
            };
            if is_mistake {
                sink.push(unknown(written, &values, &name, &range));
            }
            continue;
        };
        let shown = &written.text[range.clone()];
        let instead = format!("${{{{ {path} }}}}");
        let message = format!("`{shown}` stays as it is: write `{instead}`");
        let parts = std::slice::from_ref(&range);
        let mut diagnostic =
            Diagnostic::warning(codes::OTHER_EXPRESSION, message).at_place(place(written, &range), "");
        let fix = written.fix(format!("write `{instead}`"), parts, Safety::Safe, |_| instead.clone());
        diagnostic.fixes.extend(fix);
        sink.push(diagnostic);
    }
}

fn place(written: &TextNode<'_>, range: &Range<usize>) -> Location {
    let places = written.places(std::slice::from_ref(range));
    places
        .and_then(|places| places.first().copied())
        .map_or_else(|| Location::value(&written.at), Location::Span)
}

/// Reports an undeclared parameter in another tool's syntax.
fn unknown(written: &TextNode<'_>, values: &Values<'_>, name: &str, range: &Range<usize>) -> Diagnostic {
    let shown = &written.text[range.clone()];
    let (name, what) = match name.strip_prefix("params.") {
        Some(name) => (name, "parameter"),
        None => (name, "parameter or matrix value"),
    };
    let message = format!("`{shown}` stays as it is, and the job has no {what} `{name}`");
    let found = Diagnostic::warning(codes::OTHER_EXPRESSION, message)
        .at_place(place(written, range), "")
        .note("an expression has two braces, `${{ params.NAME }}`, and the name of an entry of `params`");
    let near = suggest::nearest(name, values.0.iter().map(|(_, name)| *name)).unwrap_or(name);
    let Some(near) = values.path_of(near) else { return found };
    let instead = format!("${{{{ {near} }}}}");
    let parts = std::slice::from_ref(range);
    let fix = written.fix(format!("write `{instead}`"), parts, Safety::Unsafe, |_| instead.clone());
    let mut found = found.note(format!("did you mean `{instead}`?"));
    found.fixes.extend(fix);
    found
}

/// Whether a part of a shell script is words of a command: templates for other programs are in quotes, or in a text
/// after `<<`.
fn is_words(written: &TextNode<'_>, range: &Range<usize>) -> bool {
    let is_script = written.at.last().is_some_and(|key| key == "run" || key == "setup");
    let before = &written.text[..range.start];
    let mut quote = None;
    let mut chars = before.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None | Some('"'), '\\') => drop(chars.next()),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
    }
    is_script && written.is_command() && quote.is_none() && !before.contains("<<") && !before.contains("{%")
}

/// The parameters and matrix values that a text of the job can use: their scopes and names.
struct Values<'a>(Vec<(&'static str, &'a str)>);

impl<'a> Values<'a> {
    fn of(at: &Pointer, document: &'a Document) -> Self {
        let root = &document.root;
        let axes = |matrix: Option<&'a Node>| matrix.map(|matrix| matrix.get("axes").unwrap_or(matrix));
        let mut above = at.segments();
        let role = above.next().filter(|key| key == "roles").and_then(|_| above.next());
        let role = role.and_then(|role| root.get("roles")?.get(&role));
        let maps = [
            ("params", root.get("params")),
            ("matrix", axes(root.get("matrix"))),
            ("matrix", axes(role.and_then(|role| role.get("matrix")))),
        ];
        let names = maps.into_iter().flat_map(|(scope, map)| {
            map.map_or(&[][..], Node::entries).iter().map(move |entry| (scope, entry.key.as_str()))
        });
        Self(names.collect())
    }

    /// The path of an expression; a word alone means the parameter or axis with that name.
    fn path_of(&self, name: &str) -> Option<String> {
        if name.contains('.') {
            return Some(name.to_owned());
        }
        let (scope, name) = self.0.iter().find(|(_, known)| *known == name)?;
        Some(format!("{scope}.{name}"))
    }
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

/// Whether the job declares what a path names.
fn is_known(path: &str, values: &Values<'_>, document: &Document) -> bool {
    let Some((scope, rest)) = path.split_once('.') else { return false };
    let name = rest.split(['.', '[']).next().unwrap_or_default();
    let root = &document.root;
    let in_map = |key: &str| root.get(key).is_some_and(|map| map.get(name).is_some());
    let roles = || root.get("roles").map_or(&[][..], Node::entries).iter();
    match scope {
        "params" | "matrix" => values.0.contains(&(scope, name)),
        "secrets" | "data" | "outputs" => in_map(scope),
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
