//! The named prerequisites that task roles refer to: images, data, outputs, scripts.

use super::findings::note_kept;
use super::plugins::Plugin;
use crate::diagnostic::{Diagnostic, Location, Sink, codes, unquoted};
use crate::document::{Entry, Node};
use crate::import::fields::{Fields, wrong};
use crate::suggest;

/// The four kinds.
const KINDS: [&str; 4] = ["dockerimage", "data", "output", "script"];
/// Fields of every prerequisite.
const COMMON: [&str; 6] = ["protocolVersion", "name", "type", "version", "contributor", "description"];
/// One prerequisite.
pub(super) struct Prerequisite<'a> {
    pub(super) name: &'a str,
    pub(super) kind: &'static str,
    pub(super) node: &'a Node,
    /// Other prerequisites that it requires.
    pub(super) require: Vec<(&'a Node, &'a str)>,
    /// The runtime plugin, if it is one.
    pub(super) plugin: Option<Plugin<'a>>,
}

/// All prerequisites of a job.
pub(super) struct Pool<'a>(Vec<Prerequisite<'a>>);

impl<'a> Pool<'a> {
    /// Reads `prerequisites`.
    pub(super) fn read(root: &Fields<'a>, sink: &mut Sink) -> Self {
        let mut pool = Self(Vec::new());
        if let Some(entry) = root.entry("prerequisites").filter(|entry| entry.value.items().is_empty()) {
            wrong(entry, "a list of at least one prerequisite", sink);
        }
        for item in root.list("prerequisites", "a list of prerequisites", sink) {
            let Some(fields) = Fields::of_item(item, "prerequisites", sink) else { continue };
            let Some(found) = read_one(item, &fields, sink) else { continue };
            if let Some(first) = pool.0.iter().find(|p| p.kind == found.kind && p.name == found.name) {
                let at = |node: &Node| node.get("name").map_or(node.span, |name| name.span);
                let message =
                    format!("two prerequisites of type `{}` are named `{}`", found.kind, found.name);
                sink.push(
                    Diagnostic::error(codes::OPENPAI_SAME_NAME, message)
                        .at_span(at(item), "the second")
                        .at_span(at(first.node), "the first")
                        .note("OpenPAI rejects the job; rename one, or remove it"),
                );
                continue;
            }
            pool.0.push(found);
        }
        for prerequisite in &pool.0 {
            for (node, name) in &prerequisite.require {
                if !pool.0.iter().any(|p| p.name == *name) {
                    let message =
                        format!("`{}` requires the unknown prerequisite `{name}`", prerequisite.name);
                    sink.push(pool.unknown(message, node, name, |_| true));
                }
            }
        }
        pool
    }

    /// The prerequisite that a field of a role names; reports an undefined name.
    pub(super) fn named(&self, field: &Entry, kind: &str, sink: &mut Sink) -> Option<&Prerequisite<'a>> {
        let Some(name) = field.value.as_str() else {
            wrong(field, format!("the name of a prerequisite of type `{kind}`"), sink);
            return None;
        };
        let found = self.find(kind, name);
        if found.is_none() {
            let message = format!("unknown prerequisite `{name}` of type `{kind}`");
            sink.push(self.unknown(message, &field.value, name, |p| p.kind == kind));
        }
        found
    }

    /// The prerequisite with that kind and name.
    pub(super) fn find(&self, kind: &str, name: &str) -> Option<&Prerequisite<'a>> {
        self.0.iter().find(|p| p.kind == kind && p.name == name)
    }

    /// The prerequisites that a role's list requires, each once and after those that it requires itself.
    pub(super) fn resolve(&self, names: &[(&'a Node, &'a str)], sink: &mut Sink) -> Vec<&Prerequisite<'a>> {
        let mut brought = Vec::new();
        let mut seen = Vec::new();
        for (node, name) in names {
            if self.0.iter().any(|p| p.name == *name) {
                self.resolve_one(name, &mut seen, &mut brought);
            } else {
                let message = format!("unknown prerequisite `{name}`");
                sink.push(self.unknown(message, node, name, |_| true));
            }
        }
        brought
    }

    fn resolve_one<'p>(
        &'p self,
        name: &str,
        seen: &mut Vec<String>,
        brought: &mut Vec<&'p Prerequisite<'a>>,
    ) {
        if seen.iter().any(|known| known == name) {
            return;
        }
        seen.push(name.to_owned());
        for prerequisite in self.0.iter().filter(|p| p.name == name) {
            for (_, required) in &prerequisite.require {
                self.resolve_one(required, seen, brought);
            }
            brought.push(prerequisite);
        }
    }

    fn unknown(
        &self,
        message: String,
        node: &Node,
        name: &str,
        fits: impl Fn(&Prerequisite<'a>) -> bool,
    ) -> Diagnostic {
        let names = || self.0.iter().filter(|p| fits(p)).map(|p| p.name);
        let mut diagnostic = Diagnostic::error(codes::OPENPAI_REFERENCE, message).at_span(node.span, "");
        if let Some(near) = suggest::nearest(name, names()) {
            diagnostic = diagnostic.write(Location::Span(unquoted(node.span, name)), near);
        }
        if names().next().is_some() {
            diagnostic = diagnostic.note(format!("known: {}", suggest::list(names())));
        }
        diagnostic
    }
}

fn read_one<'a>(node: &'a Node, fields: &Fields<'a>, sink: &mut Sink) -> Option<Prerequisite<'a>> {
    let (field, kind) = fields.required("type", sink).and_then(|_| fields.text("type", sink))?;
    let Some(kind) = KINDS.into_iter().find(|known| *known == kind) else {
        let near = suggest::nearest(kind, KINDS);
        let hint = near.map(|near| format!("; did you mean `{near}`?"));
        let message = format!("unknown prerequisite type `{kind}`{}", hint.unwrap_or_default());
        let diagnostic = Diagnostic::error(codes::OPENPAI_VALUE, message)
            .at_span(field.value.span, "")
            .note("the types are `dockerimage`, `data`, `output` and `script`");
        let place = Location::Span(unquoted(field.value.span, kind));
        sink.push(
            near.into_iter().fold(diagnostic, |diagnostic, near| diagnostic.write(place.clone(), near)),
        );
        return None;
    };
    let (_, name) = fields.required("name", sink).and_then(|_| fields.text("name", sink))?;
    for key in ["contributor", "description"] {
        if let Some(entry) = fields.entry(key).filter(|entry| entry.value.as_str().is_none()) {
            wrong(entry, "a string", sink);
        }
    }
    let is_plugin = kind != "dockerimage" && fields.entry("plugin").is_some();
    let plugin = if is_plugin { Plugin::of_prerequisite(fields, &COMMON, sink) } else { None };
    if let Some(plugin) = plugin.as_ref().filter(|plugin| plugin.is_for_clusters()) {
        sink.push(note_kept(&format!("the plugin `{}`", plugin.name), node.span));
    }
    match kind {
        "dockerimage" => {
            let known: Vec<&str> = COMMON.iter().chain(&["auth", "uri"]).copied().collect();
            fields.refuse_others(&known, sink);
            fields.required("uri", sink);
            if fields.entry("uri").is_some() && fields.text("uri", sink).is_none() {
                fields
                    .entry("uri")
                    .filter(|e| e.value.as_str().is_some())
                    .inspect(|e| wrong(e, "the name of an image", sink));
            }
        }
        "data" => {
            if fields.entry("uri").is_some() || !is_plugin {
                fields.required("uri", sink);
                fields.texts("uri", sink);
            }
        }
        _ => {
            if fields.entry("uri").is_some() || !is_plugin {
                fields.required("uri", sink);
                fields.text("uri", sink);
            }
        }
    }
    let require = if fields.entry("require").is_some() { fields.texts("require", sink) } else { vec![] };
    Some(Prerequisite { name, kind, node, require, plugin })
}
