//! Runtime plugins: some run commands around the role's, others are supported only by an OpenPAI cluster.

use super::parameters::{self, EVENTS};
use super::script::{PluginCommands, ScriptPart};
use crate::diagnostic::{Diagnostic, Location, Safety, Sink, codes, unquoted};
use crate::document::{Entry, Node, Value};
use crate::import::fields::{Fields, wrong};
use crate::openpai::{KNOWN_PLUGINS, PLUGIN_PREFIX, PLUGINS, is_on};
use crate::source::{SourceId, Span};
use crate::suggest;

/// The default directory of a repository of the plugin `git`.
const CLONE_DIR: &str = "/usr/local/pai/code";

/// The parameters of a plugin without any.
static NULL_NODE: Node = Node { span: Span { source: SourceId(0), start: 0, end: 0 }, value: Value::Null };

/// A runtime plugin.
pub(super) struct Plugin<'a> {
    pub(super) name: &'a str,
    pub(super) node: &'a Node,
    /// The parameters.
    parameters: Option<&'a Node>,
    /// The task roles it applies to; all if `None`.
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
        if let Some(entry) = fields.entry("plugin") {
            known(name, entry, "", sink);
        }
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
                        let place = Location::Span(unquoted(node.span, role));
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
        let parameters = item.get("parameters").filter(|node| matches!(node.value, Value::Mapping(_)));
        let plugin = Plugin { name, node: item, parameters, roles: chosen, may_fail };
        parameters::check(&plugin, &[], sink);
        plugins.push(plugin);
    }
    plugins
}

/// Reports a plugin that the runtime lacks: it would raise an error, and the task would fail before its command.
///
/// A cluster may have plugins of its own, so only a likely typo is an error.
fn known(name: &str, field: &Entry, prefix: &str, sink: &mut Sink) {
    if KNOWN_PLUGINS.contains(&name) {
        return;
    }
    let at = field.value.span;
    let Some(near) = suggest::nearest(name, KNOWN_PLUGINS) else {
        let message = format!(
            "unknown runtime plugin `{name}`: where a cluster lacks it, the task fails before its command"
        );
        sink.push(
            Diagnostic::warning(codes::OPENPAI_REFERENCE, message)
                .at_span(at, "")
                .note(format!("OpenPAI itself has {}", suggest::list(KNOWN_PLUGINS))),
        );
        return;
    };
    let message = format!("unknown runtime plugin `{name}`: OpenPAI fails the task before its command");
    let text = format!("{prefix}{near}");
    sink.push(Diagnostic::error(codes::OPENPAI_REFERENCE, message).at_span(at, "").fix(
        format!("write `{text}`"),
        Location::Span(at),
        text,
        Safety::Safe,
    ));
}

impl<'a> Plugin<'a> {
    /// The plugin that a prerequisite is; the keys next to its name are its parameters.
    pub(super) fn of_prerequisite(fields: &Fields<'a>, common: &[&str], sink: &mut Sink) -> Option<Self> {
        let (field, written) = fields.text("plugin", sink)?;
        let Some(name) = written.strip_prefix(PLUGIN_PREFIX) else {
            let message = format!("`{written}` is not the name of a plugin: OpenPAI ignores it");
            let found = Diagnostic::error(codes::OPENPAI_VALUE, message).at_span(field.value.span, "");
            let exact = KNOWN_PLUGINS.into_iter().find(|known| *known == written);
            sink.push(match exact.or_else(|| suggest::nearest(written, KNOWN_PLUGINS)) {
                Some(near) => {
                    let text = format!("{PLUGIN_PREFIX}{near}");
                    found.fix(format!("write `{text}`"), Location::Span(field.value.span), text, Safety::Safe)
                }
                None => found.note(format!("write it as `{PLUGIN_PREFIX}NAME`")),
            });
            return None;
        };
        known(name, field, PLUGIN_PREFIX, sink);
        let policy = fields.text("failurePolicy", sink);
        if let Some((field, _)) = policy.filter(|(_, policy)| !["ignore", "fail"].contains(policy)) {
            wrong(field, "`ignore` or `fail`", sink);
        }
        let may_fail = policy.is_some_and(|(_, policy)| policy == "ignore");
        let plugin = Self { name, node: fields.node, parameters: Some(fields.node), roles: None, may_fail };
        let besides: Vec<&str> =
            common.iter().chain(&["plugin", "require", "failurePolicy", "uri"]).copied().collect();
        parameters::check(&plugin, &besides, sink);
        Some(plugin)
    }

    /// Its parameters as fields; empty if it has none.
    pub(super) fn fields(&self) -> Fields<'a> {
        let node = self.parameters.unwrap_or(&NULL_NODE);
        let place = self.node.get("plugin").map_or(self.node.span, |name| name.span);
        Fields { node, place, within: format!(" in the plugin `{}`", self.name) }
    }

    /// Whether it applies to a task role.
    pub(super) fn is_for(&self, role: &str) -> bool {
        self.roles.as_ref().is_none_or(|roles| roles.contains(&role))
    }

    /// A parameter of the plugin.
    pub(super) fn parameter(&self, name: &str) -> Option<&'a Node> {
        self.parameters?.get(name)
    }

    /// Whether a parameter is enabled; OpenPAI also accepts `"True"`.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.parameter(name).is_some_and(|node| is_on(&node.to_json()))
    }

    /// Whether other targets support it: its commands run around those of the role.
    pub(super) fn is_commands(&self) -> bool {
        match self.name {
            "git" => self.parameter("repo_uri").and_then(Node::as_str).is_some(),
            "cmd" => true,
            _ => false,
        }
    }

    /// Whether it is a plugin of OpenPAI that only a cluster supports.
    pub(super) fn is_for_clusters(&self) -> bool {
        matches!(self.name, "ssh" | "teamwise_storage" | "tensorboard")
    }

    /// The commands that it runs around those of its roles.
    pub(super) fn plugin_commands(&self) -> Vec<PluginCommands<'a>> {
        match self.name {
            "cmd" => self.cmd(),
            "git" => self.git().into_iter().collect(),
            _ => vec![],
        }
    }

    fn cmd(&self) -> Vec<PluginCommands<'a>> {
        // Errors in it were reported when it was read.
        let mut quiet = Sink::new();
        let fields = self.fields();
        let mut around = Vec::new();
        let mut add = |before: bool, commands: Vec<(&'a Node, &'a str)>| {
            if !commands.is_empty() {
                let commands =
                    commands.into_iter().map(|(node, text)| ScriptPart::Written(node, text)).collect();
                around.push(PluginCommands { before, commands, may_fail: self.may_fail });
            }
        };
        add(true, fields.texts("preCommands", &mut quiet));
        add(false, fields.texts("postCommands", &mut quiet));
        for item in fields.list("callbacks", "a list of callbacks", &mut quiet) {
            let Some(callback) = Fields::of_item(item, "callbacks", &mut quiet) else { continue };
            let event = callback.text("event", &mut quiet).map(|(_, event)| event);
            add(event == Some(EVENTS[0]), callback.texts("commands", &mut quiet));
        }
        around
    }

    fn git(&self) -> Option<PluginCommands<'a>> {
        let repository = self.parameter("repo_uri")?.as_str()?;
        let directory = self.parameter("clone_dir").and_then(Node::as_str).unwrap_or(CLONE_DIR);
        let options = self.parameter("options").map(Node::items).unwrap_or_default();
        let options: String =
            options.iter().filter_map(Node::as_str).map(|option| format!("{option} ")).collect();
        let command = format!("git clone {options}{repository} {directory}");
        Some(PluginCommands {
            before: true,
            commands: vec![ScriptPart::Made(command)],
            may_fail: self.may_fail,
        })
    }
}
