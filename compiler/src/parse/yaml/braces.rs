//! `{{ lr }}` of Jinja and Helm where a value is: YAML reads its braces as two maps.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::diagnostic::{Diagnostic, Location, Safety, codes};
use crate::document::{Entry, Node, Value};
use crate::suggest;

use super::super::report::Report;
use super::flow::quote;

/// What expressions begin with besides parameters.
const SCOPES: [&str; 10] =
    ["matrix", "job", "role", "roles", "instance", "hosts", "ports", "secrets", "data", "distributed"];

/// A value that begins with two braces.
#[derive(Clone, Debug)]
pub(super) struct Braces {
    pub range: Range<usize>,
    /// Whether it is in a flow list or map, where our own expressions need quotes.
    pub in_flow: bool,
}

/// The expression between braces as it is written here, whatever it names.
pub(super) fn as_written(text: &str) -> String {
    format!("${{{{ {} }}}}", inside(text))
}

/// What is between the braces, without the marks that trim blanks.
fn inside(text: &str) -> &str {
    let code = text.trim_start_matches('{').trim_end_matches('}');
    code.trim_start_matches('-').trim_end_matches('-').trim()
}

/// Reports values in double braces; `entries` are those of the top of the file. Returns what is meant, by the first byte
/// of each.
pub(super) fn report(
    text: &str,
    found: &[Braces],
    entries: &[Entry],
    report: &mut Report<'_>,
) -> BTreeMap<usize, String> {
    let mut all = BTreeMap::new();
    for braces in found {
        let span = report.span(braces.range.start, braces.range.end);
        if !report.wants(codes::KEY, span) {
            continue;
        }
        let written = &text[braces.range.clone()];
        let (meant, is_whole) = replaced(written, entries);
        all.extend(meant.clone().map(|meant| (braces.range.start, meant)));
        let diagnostic = match &meant {
            Some(meant) => {
                let message = format!("`{written}` is a map to YAML: write `{meant}`");
                let is_plain = !braces.in_flow && !meant.contains(": ") && !meant.contains(" #");
                let replacement = if is_plain { meant.clone() } else { quote(meant) };
                let safety = if is_whole { Safety::Safe } else { Safety::Unsafe };
                Diagnostic::error(codes::KEY, message)
                    .at_span(span, "")
                    .note("an expression begins with `${{`, and names an entry of `params` or another scope")
                    .fix(format!("write `{replacement}`"), Location::Span(span), replacement, safety)
            }
            None if is_template(written) => {
                let message = format!("`{written}` is for a program that fills in the file, such as Helm");
                Diagnostic::error(codes::KEY, message).at_span(span, "").note(
                    "write the values, or the output of the program: `helm template CHART | jobc import -`",
                )
            }
            None => unknown(written, entries).into_iter().fold(
                Diagnostic::error(
                    codes::KEY,
                    format!(
                        "`{written}` is a map to YAML; an expression is written `${{{{ params.NAME }}}}`"
                    ),
                )
                .at_span(span, ""),
                Diagnostic::note,
            ),
        };
        report.push(diagnostic);
    }
    all
}

/// Whether braces are an action of Go's templates: `{{ .Values.x }}`, `{{- if … }}`, `{{ include "x" . }}`.
fn is_template(written: &str) -> bool {
    let Some((_, inside)) = written.split_once("{{") else { return false };
    let inside = inside.trim_start_matches('-').trim_start();
    let words = ["if ", "range ", "include ", "template ", "with ", "toYaml ", "end", "else", "$"];
    inside.starts_with('.') || words.iter().any(|word| inside.starts_with(word))
}

/// Puts what is meant into the tree, so that later passes find it.
pub(super) fn fill(node: &mut Node, meant: &BTreeMap<usize, String>) {
    match &mut node.value {
        Value::String(text) => {
            if let Some(meant) = meant.get(&(node.span.start as usize)) {
                meant.clone_into(text);
            }
        }
        Value::Sequence(items) => items.iter_mut().for_each(|item| fill(item, meant)),
        Value::Mapping(entries) => entries.iter_mut().for_each(|entry| fill(&mut entry.value, meant)),
        _ => {}
    }
}

/// The text with each pair of braces as an expression of a job, and whether nothing else had to be left out.
fn replaced(text: &str, entries: &[Entry]) -> (Option<String>, bool) {
    let (mut out, mut rest, mut is_whole) = (String::new(), text, true);
    while let Some(start) = rest.find("{{") {
        let Some(length) = rest[start..].find("}}") else { return (None, false) };
        let Some((path, exact)) = path(&rest[start..start + length + 2], entries) else {
            return (None, false);
        };
        out += &rest[..start];
        out += &format!("${{{{ {path} }}}}");
        is_whole &= exact;
        rest = &rest[start + length + 2..];
    }
    (Some(out + rest), is_whole)
}

/// What an expression of another tool names here, and whether that is all it does.
fn path(text: &str, entries: &[Entry]) -> Option<(String, bool)> {
    let code = inside(text);
    let (name, filters) = code.split_once('|').unwrap_or((code, ""));
    let exact = filters.is_empty();
    let name = name.trim();
    let is_path = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '[' | ']'));
    if !is_path {
        return None;
    }
    if let Some((scope, _)) = name.split_once('.').filter(|(scope, _)| SCOPES.contains(scope)) {
        return known(entries, scope, name).then(|| (name.to_owned(), exact));
    }
    let word = word(name);
    if declares(entries, "params", word) {
        Some((format!("params.{word}"), exact))
    } else if in_matrix(entries, word) {
        Some((format!("matrix.{word}"), exact))
    } else {
        None
    }
}

/// The name of a parameter without the scope of another tool: `lr` of `.Values.lr`, `inputs.lr` and `params.lr`.
fn word(name: &str) -> &str {
    let name = name.trim_start_matches('.');
    let scopes = ["params", "Values", "values", "inputs", "vars", "env", "parameters"];
    match name.split_once('.') {
        Some((scope, rest)) if scopes.contains(&scope) => rest,
        _ => name,
    }
}

fn known(entries: &[Entry], scope: &str, path: &str) -> bool {
    let name = path.split('.').nth(1).unwrap_or_default();
    scope != "matrix" || in_matrix(entries, name)
}

fn get<'a>(entries: &'a [Entry], key: &str) -> Option<&'a Node> {
    entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
}

fn declares(entries: &[Entry], map: &str, name: &str) -> bool {
    get(entries, map).is_some_and(|map| map.get(name).is_some())
}

/// Whether the matrix of the job or of a role has the axis.
fn in_matrix(entries: &[Entry], name: &str) -> bool {
    let has = |matrix: &Node| {
        matrix.get(name).is_some() || matrix.get("axes").is_some_and(|axes| axes.get(name).is_some())
    };
    let roles = get(entries, "roles").map_or(&[][..], Node::entries);
    get(entries, "matrix").is_some_and(has)
        || roles.iter().any(|role| role.value.get("matrix").is_some_and(has))
}

/// What to do about a name that the job does not declare.
fn unknown(written: &str, entries: &[Entry]) -> Option<String> {
    let code = inside(written);
    let name = word(code.split('|').next().unwrap_or_default().trim());
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if !is_name {
        return None;
    }
    let params = get(entries, "params").map_or(&[][..], Node::entries);
    Some(match suggest::nearest(name, params.iter().map(|entry| entry.key.as_str())) {
        Some(near) => format!("the job has no parameter `{name}`; it has `{near}`"),
        None => format!("the job has no parameter `{name}`; declare it under `params`"),
    })
}

/// The value of the line of a syntax error, if it begins with two braces: `{{ a }}-x`, `{{- a -}}`.
pub(super) fn on_line(text: &str, at: usize) -> Option<Range<usize>> {
    let start = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let end = text[at..].find('\n').map_or(text.len(), |n| at + n);
    let line = text[start..end].split(" #").next()?.trim_end();
    let braces = line.find("{{").filter(|braces| line[*braces..].contains("}}"))?;
    let before = line[..braces].trim_start();
    let is_value = before.ends_with(": ")
        || before.trim_end_matches(' ').trim_start_matches("- ").is_empty()
        || before == "-";
    // In a flow list or map, more may follow.
    (is_value && !before.contains(['{', '['])).then(|| start + braces..start + line.len())
}
