//! `deployments`: commands before and after those of the roles; `defaults.deployment` selects one set.

use crate::diagnostic::{Diagnostic, Location, Safety, Sink, codes};
use crate::document::{Entry, Node};
use crate::import::fields::{Fields, wrong};
use crate::suggest;

/// Commands with their spans.
pub(super) type Commands<'a> = Vec<(&'a Node, &'a str)>;

/// One deployment.
pub(super) struct Deployment<'a> {
    pub(super) name: &'a str,
    pub(super) node: &'a Node,
    /// The commands before and after, by role name.
    pub(super) roles: Vec<(&'a str, Commands<'a>, Commands<'a>)>,
}

impl<'a> Deployment<'a> {
    /// The commands that run before and after those of a role.
    pub(super) fn of(&self, role: &str) -> (Commands<'a>, Commands<'a>) {
        let found = self.roles.iter().find(|(name, ..)| *name == role);
        found.map(|(_, before, after)| (before.clone(), after.clone())).unwrap_or_default()
    }
}

/// Reads `deployments`.
pub(super) fn read<'a>(root: &Fields<'a>, roles: &[&str], sink: &mut Sink) -> Vec<Deployment<'a>> {
    let mut deployments: Vec<Deployment<'a>> = Vec::new();
    for item in root.list("deployments", "a list of deployments", sink) {
        let Some(fields) = Fields::of_item(item, "deployments", sink) else { continue };
        fields.refuse_others(&["protocolVersion", "name", "taskRoles"], sink);
        let Some((field, name)) = fields.required("name", sink).and_then(|_| fields.text("name", sink))
        else {
            continue;
        };
        if let Some(first) = deployments.iter().find(|known| known.name == name) {
            let at = first.node.get("name").map_or(first.node.span, |name| name.span);
            sink.push(
                Diagnostic::error(codes::OPENPAI_SAME_NAME, format!("two deployments are named `{name}`"))
                    .at_span(field.value.span, "the second")
                    .at_span(at, "the first")
                    .note("OpenPAI rejects the job; rename one, or remove it"),
            );
            continue;
        }
        fields.required("taskRoles", sink);
        let of_roles = fields.map("taskRoles", "a map of task roles", sink);
        let entries = of_roles.as_ref().map_or(&[][..], |(_, map)| map.node.entries());
        let of_roles = entries.iter().filter_map(|entry| one(entry, roles, sink)).collect();
        deployments.push(Deployment { name, node: item, roles: of_roles });
    }
    deployments
}

fn one<'a>(
    entry: &'a Entry,
    roles: &[&str],
    sink: &mut Sink,
) -> Option<(&'a str, Commands<'a>, Commands<'a>)> {
    let name = entry.key.as_str();
    if !roles.contains(&name) {
        sink.push(unknown(format!("unknown task role `{name}`"), entry.key_span, name, roles));
        return None;
    }
    if entry.value.entries().is_empty() {
        wrong(entry, "a map of `preCommands` and `postCommands`", sink);
        return None;
    }
    let within = format!(" in task role `{name}` of the deployment");
    let fields = Fields { node: &entry.value, place: entry.key_span, within };
    fields.refuse_others(&["preCommands", "postCommands"], sink);
    Some((name, fields.texts("preCommands", sink), fields.texts("postCommands", sink)))
}

/// The deployment that `defaults` selects.
pub(super) fn chosen<'p, 'a>(
    defaults: Option<&Fields<'a>>,
    deployments: &'p [Deployment<'a>],
    sink: &mut Sink,
) -> Option<&'p Deployment<'a>> {
    let (field, name) = defaults?.text("deployment", sink)?;
    let found = deployments.iter().find(|deployment| deployment.name == name);
    if found.is_none() {
        let names: Vec<&str> = deployments.iter().map(|deployment| deployment.name).collect();
        sink.push(unknown(format!("unknown deployment `{name}`"), field.value.span, name, &names));
    }
    found
}

fn unknown(message: String, at: crate::source::Span, name: &str, known: &[&str]) -> Diagnostic {
    let mut diagnostic = Diagnostic::error(codes::OPENPAI_REFERENCE, message).at_span(at, "");
    if let Some(near) = suggest::nearest(name, known.iter().copied()) {
        diagnostic = diagnostic.fix(format!("write `{near}`"), Location::Span(at), near, Safety::Unsafe);
    }
    if known.is_empty() {
        diagnostic
    } else {
        diagnostic.note(format!("known: {}", suggest::list(known.iter().copied())))
    }
}
