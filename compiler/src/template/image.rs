//! Roles whose template brings an image although the job has one: the template's, as a part of the role, replaces it.

use crate::diagnostic::{Diagnostic, Severity, Sink, codes};
use crate::document::Node;
use crate::source::{SourceId, Span};

/// The roles whose image is that of their template.
#[derive(Default)]
pub(super) struct RoleImages(Vec<RoleImage>);

struct RoleImage {
    role: String,
    template: String,
    uses: Span,
    image: Span,
}

/// What a role has before its template is put in.
pub(super) struct BareRole {
    /// The template's name and its place; nothing if the role has an image of its own.
    uses: Option<(String, Span)>,
    source: SourceId,
}

impl BareRole {
    /// Looks at a role before its template is put in.
    pub(super) fn of(role: &Node) -> Self {
        let uses = role.get("uses").filter(|_| role.get("image").is_none());
        let uses = uses.and_then(|node| Some((node.as_str()?.to_owned(), node.span)));
        Self { uses, source: role.span.source }
    }
}

impl RoleImages {
    /// Looks at a role with its template. An image that the role passes to the template by `with` is its own.
    pub(super) fn add(&mut self, name: &str, before: BareRole, role: &Node) {
        let Some((template, uses)) = before.uses else { return };
        let Some(image) = role.get("image").filter(|image| image.span.source != before.source) else {
            return;
        };
        self.0.push(RoleImage { role: name.to_owned(), template, uses, image: image.span });
    }

    /// Reports them if the job file itself has an image for all roles.
    pub(super) fn report(self, job: SourceId, root: &Node, sink: &mut Sink) {
        let Some(image) = root.get("image").filter(|image| image.span.source == job) else { return };
        let uses_main = |role: &Node| match role.get("image") {
            None => true,
            Some(own) => own.get("use").is_some_and(|name| name.as_str() == Some("main")),
        };
        let roles = root.get("roles").map(Node::entries).unwrap_or_default();
        let is_used = roles.iter().any(|role| uses_main(&role.value));
        // An image that no role runs in is a mistake; next to roles that run in it, the template's may be meant.
        let severity = if is_used { Severity::Note } else { Severity::Warning };
        for RoleImage { role, template, uses, image: brought } in self.0 {
            let message = format!(
                "role `{role}` runs in the image of its template `{template}`, not in that of the job"
            );
            sink.push(
                Diagnostic::new(codes::TEMPLATE_IMAGE, severity, message)
                    .at_span(uses, "")
                    .at_span(
                        image.span,
                        if is_used { "not used by this role" } else { "no role uses this image" },
                    )
                    .at_span(brought, "the template's image")
                    .note("write `image: {use: main}` in the role for the image of the job"),
            );
        }
    }
}
