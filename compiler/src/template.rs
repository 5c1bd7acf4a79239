//! Between pass 1 and pass 2: `uses` and `with` merge templates into a job's document.
//!
//! A template is a YAML file `{template: 1, kind: job | role, description, params, body}`;
//! `docs/guides/sweeps-and-templates.md` describes its content. Its body is merged below the user's own keys, so that
//! the user's values win. Every use is a [`Source`] of its own that knows the `uses` line that included it, so that a
//! finding inside a template can show both places ([`show_uses`]).

mod built_in;
mod describe;
mod fill;
mod git;
mod image;
mod inline;
mod load;
mod location;
mod merge;
mod read;
mod show;
pub mod tree;
mod values;

use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Document, Entry, Node, Value};
use crate::files::Files;
use crate::lock::{Lock, Locking};
use crate::parse::parse;
use crate::source::{Source, Sources, Span};

pub use built_in::built_in;
pub use describe::{Description, ParameterDescription, describe};
pub use git::GitReference;
pub use location::MAIN_FILE;
pub use show::show_uses;

use fill::Scope;
use image::{BareRole, RoleImages};
use load::Text;
use location::{Misplaced, TemplateLocation};
use read::{Kind, Template};

/// The maximum depth at which templates may use each other.
pub const MAX_DEPTH: usize = 16;

/// Merges the templates of a job and its roles; a document without `uses` is returned unchanged.
///
/// Returns `None` if a template cannot be inserted: missing parts would only be reported again.
pub fn expand_templates(
    document: Document,
    sources: &mut Sources,
    files: &dyn Files,
    lock: &Lock,
    sink: &mut Sink,
) -> Option<Document> {
    let mut pass = Pass { sources, files, lock, sink };
    let errors = pass.sink.error_count();
    let job = document.root.span.source;
    let mut root = pass.apply(document.root, Kind::Job, &mut Vec::new());
    let mut images = RoleImages::default();
    if let Value::Mapping(entries) = &mut root.value
        && let Some(roles) = entries.iter_mut().find(|entry| entry.key == "roles")
        && let Value::Mapping(roles) = &mut roles.value.value
    {
        for role in roles {
            let empty = Node { span: role.value.span, value: Value::Null };
            let node = std::mem::replace(&mut role.value, empty);
            let before = BareRole::of(&node);
            role.value = pass.apply(node, Kind::Role, &mut Vec::new());
            images.add(&role.key, before, &role.value);
        }
    }
    images.report(job, &root, pass.sink);
    (pass.sink.error_count() == errors).then_some(Document { root })
}

/// The text of the template that a job file's `uses` names, if available; for editors.
pub fn text_of(uses: &str, files: &dyn Files) -> Option<String> {
    let mut sources = Sources::new();
    let job = sources.add(Source::new("job.yaml", ""));
    let mut sink = Sink::new();
    let lock = Lock::read(Locking::Ignored, job, files, &mut sources, &mut sink).unwrap_or_default();
    let place = TemplateLocation::of(uses, None, |path| files.exists(path)).ok()?;
    load::load(&place, Span::new(job, 0, 0), files, &lock, &mut sink).map(|found| found.text)
}

struct Pass<'a> {
    sources: &'a mut Sources,
    files: &'a dyn Files,
    lock: &'a Lock,
    sink: &'a mut Sink,
}

impl Pass<'_> {
    /// Merges the template that a job or role uses below its own keys, and that template's template below it.
    fn apply(&mut self, mut node: Node, kind: Kind, chain: &mut Vec<TemplateLocation>) -> Node {
        let Value::Mapping(entries) = &mut node.value else { return node };
        let place = entries.iter().position(|entry| entry.key == "uses");
        let Some(place) = place.filter(|&place| entries[place].value.as_str().is_some()) else {
            // A `uses` of another type is left for validation to report.
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

    /// The body of the template that `uses` names, with values substituted.
    fn body(
        &mut self,
        uses: &Entry,
        with: Option<&Entry>,
        kind: Kind,
        chain: &mut Vec<TemplateLocation>,
    ) -> Option<Node> {
        let name = uses.value.as_str().unwrap_or_default();
        let span = uses.value.span;
        if name.contains("${{") {
            let message = "`uses` cannot contain an expression: templates are expanded first";
            self.sink.push(
                Diagnostic::error(codes::TEMPLATE_ABSENT, message)
                    .at_span(span, "")
                    .note("write the template's name or path as it is"),
            );
            return None;
        }
        let place = match TemplateLocation::of(name, chain.last(), |path| self.files.exists(path)) {
            Ok(place) => place,
            Err(Misplaced { message, note }) => {
                let diagnostic = Diagnostic::error(codes::TEMPLATE_REFERENCE, message);
                self.sink.push(diagnostic.at_span(span, "").note(note));
                return None;
            }
        };
        if let Some(diagnostic) = circle(&place, uses, chain) {
            self.sink.push(diagnostic);
            return None;
        }
        let Text { text, tree } = load::load(&place, span, self.files, self.lock, self.sink)?;
        let id = self.sources.add(Source::new(place.to_string(), text).used_at(span));
        let document = parse(self.sources, id, self.sink)?;
        let mut template = Template::read(&document.root, self.sink)?;
        if template.kind != kind {
            let message = format!("`{name}` is a template for a {}, but is used on a {kind}", template.kind);
            let advice = match template.kind {
                Kind::Job => "move `uses` and `with` to the top level of the job",
                Kind::Role => "move `uses` and `with` into one of `roles`",
            };
            self.sink.push(Diagnostic::error(codes::TEMPLATE_KIND, message).at_span(span, "").note(advice));
            return None;
        }
        let values = values::read(&template, with, uses, self.sink)?;
        if let Some(tree) = &tree {
            inline::inline(&mut template.body, kind, tree, self.sink);
        }
        let scope = Scope { values: &values, directory: place.directory() };
        let body = fill::fill(template.body, scope, self.sink);
        chain.push(place);
        let body = self.apply(body, kind, chain);
        chain.pop();
        Some(body)
    }
}

/// Why a template cannot be used by the templates of the chain.
fn circle(place: &TemplateLocation, uses: &Entry, chain: &[TemplateLocation]) -> Option<Diagnostic> {
    if let Some(start) = chain.iter().position(|known| known == place) {
        let round: Vec<String> =
            chain[start..].iter().chain([place]).map(TemplateLocation::to_string).collect();
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
