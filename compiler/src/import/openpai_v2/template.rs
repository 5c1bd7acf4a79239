//! `<% $parameters.x %>` and other templates, substituted as in OpenPAI's server.
//!
//! The server writes an unknown name back into the command, where it fails in the shell; here that is an
//! error at the name. Parameters become `${{ params.x }}`; values of prerequisites become text; secrets are kept,
//! since their values are unknown.

use std::fmt::Write as _;

use serde_json::Value as Json;

use crate::diagnostic::{Diagnostic, Location, Safety, Sink, codes};
use crate::document::{Entry, Node, Value};
use crate::source::{Sources, Span};
use crate::suggest;

/// The scopes of templates in the texts of one role.
#[derive(Clone)]
pub(super) struct Scope<'a> {
    pub(super) sources: &'a Sources,
    pub(super) parameters: &'a [Entry],
    /// The names of secrets; `None` if they are in another document.
    pub(super) secrets: Option<&'a [Entry]>,
    /// The role's prerequisites by kind.
    pub(super) chosen: [(&'static str, Option<&'a Node>); 3],
}

/// A text with its templates substituted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RenderedText {
    /// With expressions for parameters.
    pub(super) expression: String,
    /// With the values of parameters.
    pub(super) value: String,
}

/// A piece of a text.
enum Piece<'t> {
    Text(&'t str),
    /// The text between `<%` and `%>`, and the whole template.
    Template(&'t str, &'t str),
    Unclosed(&'t str),
}

impl Scope<'_> {
    /// Substitutes the templates in a text; reports those that cannot be substituted, and leaves them unchanged.
    pub(super) fn fill(&self, text: &str, span: Span, sink: &mut Sink) -> RenderedText {
        let mut filled = RenderedText::default();
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => filled.push(&text.replace("${{", "${{ '${{' }}"), text),
                Piece::Unclosed(text) => {
                    sink.push(
                        Diagnostic::error(codes::OPENPAI_TEMPLATE, "unclosed template")
                            .at_span(self.find_last(span, "<%"), "without a `%>`")
                            .note("text that contains `<%` itself cannot be in a command of OpenPAI; split the two characters: `'<''%'`"),
                    );
                    filled.push(text, text);
                }
                Piece::Template(inner, whole) => match self.value(inner.trim()) {
                    Ok((expression, value)) => filled.push(&expression, &value),
                    Err(why) => {
                        let at = self.find(span, whole);
                        sink.push(Self::undefined(inner, at, &why));
                        filled.push(whole, whole);
                    }
                },
            }
        }
        filled
    }

    /// The value of a name, as an expression and as text.
    fn value(&self, name: &str) -> Result<(String, String), UnknownName> {
        if name.starts_with(['#', '^', '/', '>', '{', '&', '=', '!']) {
            return Err(UnknownName::new("a template can only contain names"));
        }
        let path = name.replace('[', ".").replace(']', "");
        let mut path = path.split('.');
        let scope = path.next().unwrap_or_default();
        let path: Vec<&str> = path.collect();
        match scope {
            "$parameters" => self.parameter(&path),
            "$secrets" => match (&path[..], self.secrets) {
                ([name], None) => Ok(same(format!("<% $secrets.{name} %>"))),
                ([name], Some(known)) if known.iter().any(|entry| entry.key == *name) => {
                    Ok(same(format!("<% $secrets.{name} %>")))
                }
                ([name], Some(known)) => Err(UnknownName::with_candidates("secrets", name, known)),
                _ => Err(UnknownName::new("a secret is named as `$secrets.NAME`")),
            },
            _ => {
                let Some((kind, chosen)) =
                    self.chosen.iter().find(|(kind, _)| scope.strip_prefix('$') == Some(*kind))
                else {
                    let scopes = ["$parameters", "$secrets", "$data", "$output", "$script"];
                    let mut unknown = UnknownName::new(
                        "names begin with `$parameters`, `$secrets`, `$data`, `$output` or `$script`",
                    );
                    unknown.near = suggest::nearest(scope, scopes).map(|near| name.replacen(scope, near, 1));
                    return Err(unknown);
                };
                let Some(item) = chosen else {
                    return Err(UnknownName::new(format!(
                        "the role names no {kind}: write `{kind}: NAME` next to its `commands`, with the name of a prerequisite"
                    )));
                };
                descend(item, &path, scope).map(same)
            }
        }
    }

    fn parameter(&self, path: &[&str]) -> Result<(String, String), UnknownName> {
        let Some((name, rest)) = path.split_first() else {
            return Err(UnknownName::new("a parameter is named as `$parameters.NAME`"));
        };
        let Some(entry) = self.parameters.iter().find(|entry| entry.key == *name) else {
            return Err(UnknownName::with_candidates("parameters", name, self.parameters));
        };
        let value = descend(&entry.value, rest, "$parameters")?;
        let expression = if is_param(entry) {
            format!("${{{{ params.{name} }}}}")
        } else {
            value.replace("${{", "${{ '${{' }}")
        };
        Ok((expression, value))
    }

    fn undefined(name: &str, at: Span, why: &UnknownName) -> Diagnostic {
        let message = format!("unknown name `{}`", name.trim());
        let mut diagnostic = Diagnostic::error(codes::OPENPAI_TEMPLATE, message)
            .at_span(at, "")
            .note(why.note.clone())
            .note("OpenPAI leaves such a name in the command without an error");
        if let Some(near) = &why.near {
            let whole = format!("<% {near} %>");
            diagnostic =
                diagnostic.fix(format!("write `{whole}`"), Location::Span(at), whole, Safety::Unsafe);
        }
        diagnostic
    }

    /// The span of the last of several equal parts of a value.
    fn find_last(&self, span: Span, part: &str) -> Span {
        let Some(at) = self.sources.slice(span).rfind(part) else { return span };
        let start = span.start as usize + at;
        Span::new(span.source, start, start + part.len())
    }

    /// The span of a part of a value: of the part itself if the source contains it verbatim, else of the whole value.
    fn find(&self, span: Span, part: &str) -> Span {
        let Some(at) = self.sources.slice(span).find(part) else { return span };
        let start = span.start as usize + at;
        Span::new(span.source, start, start + part.len())
    }
}

impl RenderedText {
    fn push(&mut self, expression: &str, value: &str) {
        self.expression.push_str(expression);
        self.value.push_str(value);
    }
}

/// Why a name is unknown, and the most similar name.
struct UnknownName {
    note: String,
    near: Option<String>,
}

impl UnknownName {
    fn new(note: impl Into<String>) -> Self {
        Self { note: note.into(), near: None }
    }

    fn with_candidates(scope: &str, name: &str, known: &[Entry]) -> Self {
        let names = || known.iter().map(|entry| entry.key.as_str());
        let mut note = format!("`{scope}` has no `{name}`");
        if !known.is_empty() {
            let _ = write!(note, "; it has {}", suggest::list(names()));
        }
        Self { note, near: suggest::nearest(name, names()).map(|near| format!("${scope}.{near}")) }
    }
}

fn same(text: String) -> (String, String) {
    (text.replace("${{", "${{ '${{' }}"), text)
}

/// Whether a parameter can be converted: its name is valid in expressions, and its value is a scalar.
pub(super) fn is_param(entry: &Entry) -> bool {
    let mut letters = entry.key.chars();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && entry.value.to_scalar().is_some_and(|scalar| !scalar.text.contains("${{"))
}

/// The text of the value at a path, formatted as in JavaScript.
fn descend(node: &Node, path: &[&str], scope: &str) -> Result<String, UnknownName> {
    let mut node = node;
    for step in path {
        let Some(next) = node.get(step) else {
            let mut unknown = match &node.value {
                Value::Sequence(items) => {
                    UnknownName::new(format!("there are {} items, from [0]", items.len()))
                }
                _ => UnknownName::with_candidates(&scope[1..], step, node.entries()),
            };
            if path.len() > 1 {
                unknown.near = None;
            }
            return Err(unknown);
        };
        node = next;
    }
    match &node.value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Number { number, .. } => Ok(number_text(number)),
        Value::Null => Err(UnknownName::new("it has no value")),
        Value::Sequence(_) => {
            Err(UnknownName::new("it is a list; name one of its items, as in `$data.uri[0]`"))
        }
        Value::Mapping(entries) => Err(UnknownName::new(format!(
            "it is a map; name one of {}",
            suggest::list(entries.iter().map(|entry| entry.key.as_str()))
        ))),
    }
}

/// A number formatted as in JavaScript: `1.0` is `1`.
pub(super) fn number_text(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => format!("{float:.0}"),
        Some(float) if number.is_f64() && float.abs() < 1e-6 => format!("{float:e}"),
        _ => Json::Number(number.clone()).to_string(),
    }
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("<%") {
        if start > 0 {
            pieces.push(Piece::Text(&rest[..start]));
        }
        let inner = &rest[start + 2..];
        let Some(length) = inner.find("%>") else {
            pieces.push(Piece::Unclosed(&rest[start..]));
            return pieces;
        };
        let end = start + 2 + length + 2;
        pieces.push(Piece::Template(&inner[..length], &rest[start..end]));
        rest = &rest[end..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

/// A value with the templates in its texts substituted, if all scopes agree on their values.
pub(super) fn fill(item: &Node, scopes: &[&Scope<'_>]) -> Json {
    match &item.value {
        Value::String(text) if text.contains("<%") => {
            let mut found = scopes.iter().map(|scope| {
                let mut sink = Sink::new();
                let filled = scope.fill(text, item.span, &mut sink);
                (!sink.has_errors()).then_some(filled.value)
            });
            let first = found.next().flatten();
            let agreed = first.filter(|first| found.all(|other| other.is_none_or(|other| other == *first)));
            agreed.unwrap_or_else(|| text.clone()).into()
        }
        Value::Sequence(items) => items.iter().map(|item| fill(item, scopes)).collect(),
        Value::Mapping(entries) => Json::Object(
            entries.iter().map(|entry| (entry.key.clone(), fill(&entry.value, scopes))).collect(),
        ),
        _ => item.to_json(),
    }
}

/// The name of a secret, converted to one of ours.
pub(super) fn secret_name(name: &str) -> String {
    let mut ours = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
    if !ours.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        ours.insert(0, '_');
    }
    ours.truncate(63);
    ours
}
