//! `extras` and its runtime plugins: what runs around the commands, and what only a cluster of OpenPAI's understands.

use super::script::{Around, Text};
use crate::diagnostic::{Diagnostic, Place, Sink, codes, unquoted};
use crate::document::{Node, Value};
use crate::import::fields::{Fields, wrong};
use crate::openpai::PLUGINS;
use crate::suggest;

/// Default directory of a repository of the plugin `git`.
const CLONE_DIR: &str = "/usr/local/pai/code";

/// A runtime plugin.
pub(super) struct Plugin<'a> {
    pub(super) name: &'a str,
    pub(super) node: &'a Node,
    /// The task roles it is for; all if there is no list.
    roles: Option<Vec<&'a str>>,
    may_fail: bool,
}

/// Reads the plugins of `extras`.
pub(super) fn read<'a>(extras: &Fields<'a>, roles: &[&str], sink: &mut Sink) -> Vec<Plugin<'a>> {
    let mut plugins = Vec::new();
    for item in extras.list(PLUGINS, "a list of plugins", sink) {
        let Some(mut fields) = Fields::of_item(item, PLUGINS, sink) else { continue };
        let Some((_, name)) = fields.required("plugin", sink).and_then(|_| fields.text("plugin", sink))
        else {
            continue;
        };
        fields.within = format!(" in the plugin `{name}`");
        fields.refuse_others(&["plugin", "taskroles", "parameters", "failurePolicy"], sink);
        let chosen = fields.entry("taskroles").map(|_| {
            let named = fields.texts("taskroles", sink);
            for (node, role) in &named {
                if !roles.contains(role) {
                    let mut diagnostic = Diagnostic::error(
                        codes::OPENPAI_REFERENCE,
                        format!("unknown task role `{role}` in the plugin `{name}`"),
                    )
                    .at_span(node.span, "");
                    if let Some(near) = suggest::nearest(role, roles.iter().copied()) {
                        let place = Place::Span(unquoted(node.span, role));
                        diagnostic = diagnostic.note(format!("did you mean `{near}`?")).write(place, near);
                    }
                    sink.push(diagnostic);
                }
            }
            named.into_iter().map(|(_, role)| role).collect()
        });
        let policy = fields.text("failurePolicy", sink);
        if let Some((field, _)) = policy.filter(|(_, policy)| !["ignore", "fail"].contains(policy)) {
            wrong(field, "`ignore` or `fail`", sink);
        }
        if fields.entry("parameters").is_some_and(|entry| entry.value.value != Value::Null) {
            fields.map("parameters", "a map of the plugin's parameters", sink);
        }
        let may_fail = policy.is_some_and(|(_, policy)| policy == "ignore");
        plugins.push(Plugin { name, node: item, roles: chosen, may_fail });
    }
    plugins
}

impl<'a> Plugin<'a> {
    /// Whether it acts on a task role.
    pub(super) fn is_for(&self, role: &str) -> bool {
        self.roles.as_ref().is_none_or(|roles| roles.contains(&role))
    }

    /// A parameter of the plugin.
    pub(super) fn parameter(&self, name: &str) -> Option<&'a Node> {
        self.node.get("parameters")?.get(name)
    }

    /// Whether other targets can do what it does: its commands run around those of the role.
    pub(super) fn is_commands(&self) -> bool {
        match self.name {
            "git" => self.parameter("repo_uri").and_then(Node::as_str).is_some(),
            "cmd" => true,
            _ => false,
        }
    }

    /// What it runs around the commands of its roles.
    pub(super) fn around(&self, sink: &mut Sink) -> Vec<Around<'a>> {
        match self.name {
            "cmd" => self.cmd(sink),
            "git" => self.git().into_iter().collect(),
            _ => vec![],
        }
    }

    fn cmd(&self, sink: &mut Sink) -> Vec<Around<'a>> {
        let Some(parameters) = self.node.get("parameters") else { return vec![] };
        let fields =
            Fields { node: parameters, place: parameters.span, within: " in the plugin `cmd`".to_owned() };
        let mut around = Vec::new();
        let mut add = |before: bool, commands: Vec<(&'a Node, &'a str)>| {
            if !commands.is_empty() {
                let commands = commands.into_iter().map(|(node, text)| Text::Written(node, text)).collect();
                around.push(Around { before, commands, may_fail: self.may_fail });
            }
        };
        add(true, fields.texts("preCommands", sink));
        add(false, fields.texts("postCommands", sink));
        for item in fields.list("callbacks", "a list of callbacks", sink) {
            let Some(callback) = Fields::of_item(item, "callbacks", sink) else { continue };
            let event = callback.text("event", sink).map(|(_, event)| event);
            add(event == Some("taskStarts"), callback.texts("commands", sink));
        }
        around
    }

    fn git(&self) -> Option<Around<'a>> {
        let repository = self.parameter("repo_uri")?.as_str()?;
        let directory = self.parameter("clone_dir").and_then(Node::as_str).unwrap_or(CLONE_DIR);
        let options = self.parameter("options").map(Node::items).unwrap_or_default();
        let options: String =
            options.iter().filter_map(Node::as_str).map(|option| format!("{option} ")).collect();
        let command = format!("git clone {options}{repository} {directory}");
        Some(Around { before: true, commands: vec![Text::Made(command)], may_fail: self.may_fail })
    }
}
