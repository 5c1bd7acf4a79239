//! Fields that are kept so that the job can be converted back: the document's `openpai`.

use serde_json::{Map, Value as Json, json};

use super::deployment::Deployment;
use super::findings::note_kept;
use super::role::{Job, TaskRole};
use super::template::{Scope, fill};
use super::{extras, script};
use crate::diagnostic::Sink;
use crate::document::{Entry, Node, Value};
use crate::import::fields::{Fields, wrong};
use crate::import::nodes::{entry, json as node};
use crate::openpai::{MAX_JOB_NAME, converted, short};
use crate::source::Span;

/// The settings of a job that only OpenPAI understands.
pub(super) struct OpenpaiFields(Map<String, Json>);

impl OpenpaiFields {
    /// Collects them, with a note for each that other targets ignore.
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
                        || converted(name.as_str().unwrap_or_default(), MAX_JOB_NAME, false).as_deref()
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
            let rest = extras::read(extras, roles, job, &mut settings, sink);
            if !rest.is_empty() {
                protocol.insert("extras".to_owned(), rest.into());
            }
        }
        if !protocol.is_empty() {
            settings.insert("protocol".to_owned(), protocol.into());
        }
        Self(settings)
    }

    /// Keeps another field of the protocol.
    pub(super) fn keep(&mut self, key: &str, value: Json) {
        if let Some(Json::Object(protocol)) = self.0.get_mut("protocol") {
            protocol.insert(key.to_owned(), value);
        }
    }

    /// The settings as a document entry.
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

/// `version` as text, which the published schema requires, unlike rest-servers.
fn version(node: &Node) -> Option<Json> {
    match &node.get("version")?.value {
        Value::Number { text, .. } | Value::String(text) => Some(text.as_str().into()),
        _ => None,
    }
}

/// A prerequisite; templates in its commands are substituted if they have the same value in every role that uses it.
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
