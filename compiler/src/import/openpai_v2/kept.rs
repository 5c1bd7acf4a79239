//! What is kept of a job for the way back: `openpai` of the document.

use serde_json::{Map, Value as Json, json};

use super::deployment::Deployment;
use super::plugins::Plugin;
use super::role::{Job, TaskRole};
use super::template::Scope;
use super::{fix, note_kept, script};
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Entry, Node, Value};
use crate::import::fields::{Fields, wrong};
use crate::import::nodes::{entry, json as node};
use crate::openpai::{LONGEST_JOB, PLUGINS, converted, short};
use crate::source::Span;
use crate::suggest;

/// The settings of a job that only OpenPAI understands.
pub(super) struct Kept(Map<String, Json>);

impl Kept {
    /// Collects them, with a note for each that other targets do without.
    pub(super) fn new(
        root: &Fields<'_>,
        roles: &[TaskRole<'_>],
        job: &Job<'_, '_>,
        deployments: &[Deployment<'_>],
        sink: &mut Sink,
    ) -> Self {
        let mut settings = Map::new();
        let mut protocol = Map::new();
        let by_jobc = job.sections.is_some();
        protocol.extend(
            raw(root, "name")
                .filter(|name| {
                    !by_jobc
                        || converted(name.as_str().unwrap_or_default(), LONGEST_JOB, false).as_deref()
                            != name.as_str()
                })
                .map(|name| ("name".to_owned(), name)),
        );
        protocol.extend(version(root.node).map(|version| ("version".to_owned(), version)));
        protocol.extend(raw(root, "contributor").map(|text| ("contributor".to_owned(), text)));
        let own = |item: &&Node| {
            let starts = |name: &Node| name.as_str().is_some_and(|name| name.starts_with("image_"));
            by_jobc && item.get("name").is_some_and(starts)
        };
        let items: Vec<Json> = root
            .node
            .get("prerequisites")
            .map_or(&[][..], Node::items)
            .iter()
            .filter(|item| !own(item))
            .map(|item| prerequisite(item, roles))
            .collect();
        if !items.is_empty() {
            protocol.insert("prerequisites".to_owned(), items.into());
        }
        protocol
            .extend(raw(root, "parameters").filter(|_| !by_jobc).map(|map| ("parameters".to_owned(), map)));
        let task_roles: Map<String, Json> = roles
            .iter()
            .filter(|role| !by_jobc || !role.kept.is_empty() || short(&role.ours) != role.raw)
            .map(|role| (role.raw.to_owned(), role.kept.clone().into()))
            .collect();
        if !task_roles.is_empty() {
            protocol.insert("taskRoles".to_owned(), task_roles.into());
        }
        if !deployments.is_empty() {
            let all: Vec<Json> =
                deployments.iter().map(|deployment| self::deployment(deployment, roles)).collect();
            protocol.insert("deployments".to_owned(), all.into());
        }
        let defaults = root.node.get("defaults");
        if let Some(chosen) = defaults.and_then(|defaults| defaults.get("deployment")).and_then(Node::as_str)
        {
            protocol.insert("defaults".to_owned(), json!({ "deployment": chosen }));
        }
        if let Some(field) = defaults.and_then(|defaults| find(defaults, "virtualCluster")) {
            match field.value.as_str() {
                Some(cluster) => {
                    if cluster != "default" {
                        sink.push(note_kept(&format!("the virtual cluster `{cluster}`"), field.value.span));
                    }
                    settings.insert("virtual_cluster".to_owned(), cluster.into());
                }
                None => wrong(field, "the name of a virtual cluster", sink),
            }
        }
        if let Some(extras) = root.node.get("extras") {
            let rest = self::extras(extras, roles, job, &mut settings, sink);
            if !rest.is_empty() {
                protocol.insert("extras".to_owned(), rest.into());
            }
        }
        if !protocol.is_empty() {
            settings.insert("protocol".to_owned(), protocol.into());
        }
        Self(settings)
    }

    /// Keeps one more field of the protocol.
    pub(super) fn keep(&mut self, key: &str, value: Json) {
        if let Some(Json::Object(protocol)) = self.0.get_mut("protocol") {
            protocol.insert(key.to_owned(), value);
        }
    }

    /// The settings as an entry of ours.
    pub(super) fn entry(self, at: Span) -> Option<Entry> {
        (!self.0.is_empty()).then(|| entry("openpai", at, node(at, &self.0.into())))
    }
}

/// Whether jobc wrote the job.
pub(super) fn written_by_jobc(root: &Fields<'_>) -> bool {
    let from = root.node.get("extras").and_then(|extras| extras.get("submitFrom"));
    from.and_then(Node::as_str) == Some("jobc")
}

fn find<'a>(map: &'a Node, key: &str) -> Option<&'a Entry> {
    map.entries().iter().find(|entry| entry.key == key)
}

fn raw(root: &Fields<'_>, key: &str) -> Option<Json> {
    root.node.get(key).map(Node::to_json)
}

/// `version` as text, which the published schema asks for, and rest-servers do not.
fn version(node: &Node) -> Option<Json> {
    match &node.get("version")?.value {
        Value::Number { text, .. } | Value::String(text) => Some(text.as_str().into()),
        _ => None,
    }
}

/// A prerequisite; templates in its commands are filled in where every role that it serves gives them one meaning.
fn prerequisite(item: &Node, roles: &[TaskRole<'_>]) -> Json {
    let scopes: Vec<&Scope<'_>> = roles.iter().map(|role| &role.scope).collect();
    let mut kept = fill(item, &scopes);
    if let (Some(version), Some(fields)) = (version(item), kept.as_object_mut()) {
        fields.insert("version".to_owned(), version);
    }
    if let Some(fields) = kept.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    kept
}

fn deployment(deployment: &Deployment<'_>, roles: &[TaskRole<'_>]) -> Json {
    let mut of_roles = Map::new();
    for (name, before, after) in &deployment.roles {
        let Some(role) = roles.iter().find(|role| role.raw == *name) else { continue };
        let mut commands = Map::new();
        for (key, list) in [("preCommands", before), ("postCommands", after)] {
            if !list.is_empty() {
                commands.insert(key.to_owned(), json!(script::filled(list, &role.scope)));
            }
        }
        of_roles.insert((*name).to_owned(), commands.into());
    }
    let mut kept = Map::new();
    kept.extend(
        deployment.node.get("protocolVersion").map(|node| ("protocolVersion".to_owned(), node.to_json())),
    );
    kept.insert("name".to_owned(), deployment.name.into());
    kept.insert("taskRoles".to_owned(), of_roles.into());
    kept.into()
}

/// A value with the templates in its texts filled in, where all scopes agree on what they stand for.
fn fill(item: &Node, scopes: &[&Scope<'_>]) -> Json {
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

/// Reads `extras` into settings; what has no setting of its own comes back.
fn extras(
    extras: &Node,
    roles: &[TaskRole<'_>],
    job: &Job<'_, '_>,
    settings: &mut Map<String, Json>,
    sink: &mut Sink,
) -> Map<String, Json> {
    let mut rest = Map::new();
    for field in extras.entries() {
        match field.key.as_str() {
            "gangAllocation" => {}
            "submitFrom" => {
                if let Some(from) = field.value.as_str().filter(|from| *from != "jobc") {
                    rest.insert(field.key.clone(), from.into());
                }
            }
            "hivedScheduler" => hived(field, roles, settings, sink),
            "storages" => storages(field, settings, sink),
            PLUGINS => {
                let (commands, others): (Vec<_>, Vec<_>) = job.plugins.iter().partition(|p| p.is_commands());
                let kept = |plugins: Vec<&Plugin<'_>>| -> Vec<Json> {
                    plugins.into_iter().map(|plugin| self::plugin(plugin, roles)).collect()
                };
                for plugin in &others {
                    note_plugin(plugin, job, sink);
                }
                if !others.is_empty() {
                    settings.insert("plugins".to_owned(), kept(others).into());
                }
                if !commands.is_empty() {
                    rest.insert(PLUGINS.to_owned(), kept(commands).into());
                }
            }
            _ => {
                sink.push(note_kept(&format!("`{}`", field.key), field.key_span));
                rest.insert(field.key.clone(), field.value.to_json());
            }
        }
    }
    rest
}

fn plugin(plugin: &Plugin<'_>, roles: &[TaskRole<'_>]) -> Json {
    let scopes: Vec<&Scope<'_>> =
        roles.iter().filter(|role| plugin.is_for(role.raw)).map(|role| &role.scope).collect();
    let mut kept = fill(plugin.node, &scopes);
    if let Some(fields) = kept.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    kept
}

/// Says what a plugin does elsewhere.
fn note_plugin(plugin: &Plugin<'_>, job: &Job<'_, '_>, sink: &mut Sink) {
    let at = plugin.node.get("plugin").map_or(plugin.node.span, |name| name.span);
    let is_on = |name: &str| plugin.parameter(name).is_some_and(|node| node.value == Value::Bool(true));
    if plugin.name != "ssh" {
        sink.push(note_kept(&format!("the plugin `{}`", plugin.name), at));
        return;
    }
    if !is_on("jobssh") {
        return;
    }
    match job.no_gang {
        Some(gang) => sink.push(
            Diagnostic::warning(codes::OPENPAI_IGNORED, "OpenPAI sets up no ssh between these tasks: they do not start together")
                .at_span(at, "asks for it")
                .at_span(gang, "switches it off")
                .note("leave `gangAllocation` out, or `jobssh`"),
        ),
        None => sink.push(
            Diagnostic::info(codes::OPENPAI_PLACE, "elsewhere than on OpenPAI, ssh between tasks takes an image with sshd")
                .at_span(at, "")
                .note("the names `<role>-<index>` are known everywhere; where an image lacks sshd, a task says so and goes on without"),
        ),
    }
}

/// `hivedScheduler`: hardware and priority.
fn hived(field: &Entry, roles: &[TaskRole<'_>], settings: &mut Map<String, Json>, sink: &mut Sink) {
    let fields =
        Fields { node: &field.value, place: field.key_span, within: " in `hivedScheduler`".to_owned() };
    fields.refuse_others(&["jobPriorityClass", "taskRoles"], sink);
    let mut said = false;
    if let Some((field, class)) = fields.text("jobPriorityClass", sink) {
        if ["prod", "test", "oppo"].contains(&class) {
            settings.insert("priority".to_owned(), class.into());
            said = true;
        } else {
            wrong(field, "`prod`, `test` or `oppo`", sink);
        }
    }
    let mut chosen = Map::new();
    let map = fields.map("taskRoles", "a map of task roles", sink);
    for entry in map.map_or(&[][..], |(_, map)| map.node.entries()) {
        let Some(role) = roles.iter().find(|role| role.raw == entry.key) else {
            let names = || roles.iter().map(|role| role.raw);
            let message = format!("`hivedScheduler` has the task role `{}`, which is not there", entry.key);
            let diagnostic = Diagnostic::error(codes::OPENPAI_REFERENCE, message).at_span(entry.key_span, "");
            sink.push(match suggest::nearest(&entry.key, names()) {
                Some(near) => fix(diagnostic, entry.key_span, near),
                None => diagnostic,
            });
            continue;
        };
        let within = format!(" in `hivedScheduler` of `{}`", entry.key);
        let fields = Fields { node: &entry.value, place: entry.key_span, within };
        fields.refuse_others(&["skuType", "skuNum", "pinnedCellId", "affinityGroupName"], sink);
        let mut cell = Map::new();
        for (theirs, ours) in [
            ("skuType", "sku_type"),
            ("pinnedCellId", "pinned_cell"),
            ("affinityGroupName", "affinity_group"),
        ] {
            let written = fields.entry(theirs).is_some_and(|entry| entry.value.value != Value::Null);
            if let Some((_, text)) = written.then(|| fields.text(theirs, sink)).flatten() {
                cell.insert(ours.to_owned(), text.into());
            }
        }
        if let Some((_, count)) = fields.integer("skuNum", 1, sink) {
            cell.insert("sku_num".to_owned(), count.into());
        }
        if cell.contains_key("sku_type") && cell.contains_key("pinned_cell") {
            let message = format!("`{}` has both `skuType` and `pinnedCellId`", entry.key);
            sink.push(
                Diagnostic::error(codes::OPENPAI_VALUE, message)
                    .at_span(entry.key_span, "")
                    .note("a pinned cell has its own kind of SKU; leave one out"),
            );
        }
        if !cell.is_empty() {
            chosen.insert(role.ours.clone(), cell.into());
            said = true;
        }
    }
    if !chosen.is_empty() {
        settings.insert("roles".to_owned(), chosen.into());
    }
    if said {
        sink.push(note_kept("`hivedScheduler`", field.key_span));
    }
}

/// Storages of the cluster, mounted by name.
fn storages(field: &Entry, settings: &mut Map<String, Json>, sink: &mut Sink) {
    if !matches!(field.value.value, Value::Sequence(_)) {
        wrong(field, "a list of storages", sink);
    }
    let mut storages = Vec::new();
    for item in field.value.items() {
        let Some(fields) = Fields::of_item(item, "storages", sink) else { continue };
        fields.refuse_others(&["name", "mountPath", "readOnly", "share"], sink);
        let Some((_, name)) = fields.required("name", sink).and_then(|_| fields.text("name", sink)) else {
            continue;
        };
        let mut storage = Map::new();
        storage.insert("name".to_owned(), name.into());
        storage.extend(fields.text("mountPath", sink).map(|(_, path)| ("mount".to_owned(), path.into())));
        storage.extend(
            fields
                .flag("readOnly", sink)
                .filter(|(_, on)| *on)
                .map(|(_, on)| ("read_only".to_owned(), on.into())),
        );
        storage.extend(fields.flag("share", sink).map(|(_, on)| ("share".to_owned(), on.into())));
        storages.push(Json::Object(storage));
    }
    if !storages.is_empty() {
        sink.push(note_kept("what `storages` mounts", field.key_span));
        settings.insert("storages".to_owned(), storages.into());
    }
}
