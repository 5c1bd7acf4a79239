//! Between pass 1 and pass 2: `uses` and `with` put templates in, document over document.
//!
//! A template is a YAML file `{template: 1, kind: job | role, description, params, body}`;
//! `docs/guides/sweeps-and-templates.md` describes its content. Its body is laid under the user's own keys, so that
//! what the user writes wins. Every use is a [`Source`] of its own that knows the `uses` line which brought it, so that
//! a finding inside a template can show both places ([`show_uses`]).

mod built_in;
mod describe;
mod fill;
mod merge;
mod read;
mod show;
mod values;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

use crate::diagnostic::{Diagnostic, Place, Sink, codes, unquoted};
use crate::document::{Document, Entry, Node, Value};
use crate::files::Files;
use crate::parse::parse;
use crate::source::{Source, Sources};
use crate::suggest;

pub use built_in::built_in;
pub use describe::{Description, ParameterDescription, describe};
pub use show::show_uses;

use read::{Kind, Template};

/// How deep templates may use each other.
pub const MAX_DEPTH: usize = 16;

/// Puts the templates of a job and of its roles in; a document without `uses` comes back as it is.
///
/// Nothing comes back where a template cannot be put in: what is missing then would only be reported again.
pub fn expand_templates(
    document: Document,
    sources: &mut Sources,
    files: &dyn Files,
    sink: &mut Sink,
) -> Option<Document> {
    let mut pass = Pass { sources, files, sink };
    let errors = pass.sink.error_count();
    let mut root = pass.apply(document.root, Kind::Job, &mut Vec::new());
    if let Value::Mapping(entries) = &mut root.value
        && let Some(roles) = entries.iter_mut().find(|entry| entry.key == "roles")
        && let Value::Mapping(roles) = &mut roles.value.value
    {
        for role in roles {
            let empty = Node { span: role.value.span, value: Value::Null };
            let node = std::mem::replace(&mut role.value, empty);
            role.value = pass.apply(node, Kind::Role, &mut Vec::new());
        }
    }
    (pass.sink.error_count() == errors).then_some(Document { root })
}

struct Pass<'a> {
    sources: &'a mut Sources,
    files: &'a dyn Files,
    sink: &'a mut Sink,
}

impl Pass<'_> {
    /// Lays the template that a job or role uses under its own keys, and that one's template under it.
    fn apply(&mut self, mut node: Node, kind: Kind, chain: &mut Vec<String>) -> Node {
        let Value::Mapping(entries) = &mut node.value else { return node };
        let place = entries.iter().position(|entry| entry.key == "uses");
        let Some(place) = place.filter(|&place| entries[place].value.as_str().is_some()) else {
            // A `uses` of another type stays, for validation to speak of.
            if place.is_none()
                && let Some(with) = entries.iter().position(|entry| entry.key == "with")
            {
                let with = entries.remove(with);
                self.sink.push(
                    Diagnostic::error(codes::WITHOUT_USES, "`with` needs `uses`")
                        .at_span(with.key_span, "")
                        .note("write `uses: std/NAME`, or a path, next to it; or leave `with` out"),
                );
            }
            return node;
        };
        let uses = entries.remove(place);
        let with = entries.iter().position(|entry| entry.key == "with").map(|at| entries.remove(at));
        match self.body(&uses, with.as_ref(), kind, chain) {
            Some(body) => merge::merge(body, node),
            None => node,
        }
    }

    /// The filled-in body of the template that `uses` names.
    fn body(
        &mut self,
        uses: &Entry,
        with: Option<&Entry>,
        kind: Kind,
        chain: &mut Vec<String>,
    ) -> Option<Node> {
        let name = uses.value.as_str().unwrap_or_default();
        let key = locate(name, chain.last().map(String::as_str));
        if let Some(diagnostic) = circle(&key, uses, chain) {
            self.sink.push(diagnostic);
            return None;
        }
        let text = self.text(&key, uses)?;
        let id = self.sources.add(Source::new(&*key, text).used_at(uses.value.span));
        let document = parse(self.sources, id, self.sink)?;
        let template = Template::read(&document.root, self.sink)?;
        if template.kind != kind {
            let message = format!("`{name}` is a template for a {}, but is used on a {kind}", template.kind);
            let advice = match template.kind {
                Kind::Job => "move `uses` and `with` to the top level of the job",
                Kind::Role => "move `uses` and `with` into one of `roles`",
            };
            self.sink.push(
                Diagnostic::error(codes::TEMPLATE_KIND, message).at_span(uses.value.span, "").note(advice),
            );
            return None;
        }
        let values = values::read(&template, with, uses, self.sink)?;
        let body = fill::fill(template.body, &values, self.sink);
        chain.push(key);
        let body = self.apply(body, kind, chain);
        chain.pop();
        Some(body)
    }

    /// The text of a template: built in, or a file.
    fn text(&mut self, key: &str, uses: &Entry) -> Option<String> {
        let span = uses.value.span;
        let diagnostic = if let Some(name) = key.strip_prefix("std/") {
            if let Some(text) = built_in::text(name) {
                return Some(text.to_owned());
            }
            let names = || built_in().map(|(name, _)| name);
            let message = format!("unknown built-in template `{key}`");
            let known = format!("known: {}", suggest::list(names()));
            let mut diagnostic = Diagnostic::error(codes::TEMPLATE_ABSENT, message);
            if let Some(near) = suggest::nearest(name, names()).map(|near| format!("std/{near}")) {
                diagnostic = diagnostic
                    .note(format!("did you mean `{near}`?"))
                    .write(Place::Span(unquoted(span, key)), &near);
            }
            diagnostic.note(known)
        } else if key.contains("${{") {
            Diagnostic::error(
                codes::TEMPLATE_ABSENT,
                "`uses` cannot contain an expression: templates are expanded first",
            )
            .note("write the template's name or path as it is")
        } else {
            match self.files.read(Utf8Path::new(key)) {
                Ok(bytes) => match String::from_utf8(bytes) {
                    Ok(text) => return Some(text),
                    Err(_) => {
                        Diagnostic::error(codes::TEMPLATE_FORM, format!("`{key}` is not text in UTF-8"))
                    }
                },
                Err(error) => {
                    let diagnostic = Diagnostic::error(
                        codes::TEMPLATE_ABSENT,
                        format!("the template `{key}` cannot be read: {error}"),
                    );
                    if key.contains('/') || key.contains('.') {
                        diagnostic.note("a path is relative to the file that contains `uses`")
                    } else {
                        diagnostic.note(format!("a built-in template is written `std/{key}`, a file as a path such as `./{key}.yaml`"))
                    }
                }
            }
        };
        self.sink.push(diagnostic.at_span(span, ""));
        None
    }
}

/// The name or path of a template, a path relative to the directory of the file that uses it.
fn locate(name: &str, from: Option<&str>) -> String {
    if name.starts_with("std/") || name.contains("${{") {
        return name.to_owned();
    }
    let directory =
        from.filter(|from| !from.starts_with("std/")).and_then(|from| Utf8Path::new(from).parent());
    let mut path = Utf8PathBuf::new();
    for part in directory.unwrap_or(Utf8Path::new("")).join(name).components() {
        match part {
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir if path.file_name().is_some() => _ = path.pop(),
            part => path.push(part),
        }
    }
    path.into_string()
}

/// What is wrong with using a template within those of the chain.
fn circle(key: &str, uses: &Entry, chain: &[String]) -> Option<Diagnostic> {
    if let Some(start) = chain.iter().position(|known| known == key) {
        let round: Vec<&str> = chain[start..].iter().map(String::as_str).chain([key]).collect();
        let message = format!("template cycle: {}", round.join(" -> "));
        return Some(
            Diagnostic::error(codes::TEMPLATE_CYCLE, message)
                .at_span(uses.value.span, "the cycle closes here"),
        );
    }
    (chain.len() >= MAX_DEPTH).then(|| {
        let message = format!("templates use each other more than {MAX_DEPTH} deep");
        Diagnostic::error(codes::TEMPLATE_CYCLE, message).at_span(uses.value.span, "")
    })
}

#[cfg(test)]
mod tests;
