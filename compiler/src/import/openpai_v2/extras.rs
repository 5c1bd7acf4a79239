//! `extras`: hardware, storage, plugins, and fields without a setting of their own.

use serde_json::{Map, Value as Json};

use super::findings::{fix, note_kept};
use super::plugins::Plugin;
use super::role::{Job, TaskRole};
use super::template::{Scope, fill};
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Entry, Node, Value};
use crate::import::fields::{Fields, wrong};
use crate::openpai::PLUGINS;
use crate::suggest;

/// Reads `extras` into settings; returns the fields without a setting of their own.
pub(super) fn read(
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
                for plugin in others.iter().filter(|plugin| plugin.is_for_clusters()) {
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

/// Says what a plugin does on other targets.
fn note_plugin(plugin: &Plugin<'_>, job: &Job<'_, '_>, sink: &mut Sink) {
    let at = plugin.node.get("plugin").map_or(plugin.node.span, |name| name.span);
    if plugin.name != "ssh" {
        sink.push(note_kept(&format!("the plugin `{}`", plugin.name), at));
        return;
    }
    if !plugin.is_on("jobssh") {
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
            Diagnostic::info(codes::OPENPAI_PLACE, "on targets other than OpenPAI, ssh between tasks needs an image with sshd")
                .at_span(at, "")
                .note("the names `<role>-<index>` are known everywhere; if an image has no sshd, a task prints a message and continues without it"),
        ),
    }
}

/// `hivedScheduler`: hardware and priority.
fn hived(field: &Entry, roles: &[TaskRole<'_>], settings: &mut Map<String, Json>, sink: &mut Sink) {
    let fields =
        Fields { node: &field.value, place: field.key_span, within: " in `hivedScheduler`".to_owned() };
    fields.refuse_others(&["jobPriorityClass", "taskRoles"], sink);
    let mut reported = false;
    if let Some((field, class)) = fields.text("jobPriorityClass", sink) {
        if ["prod", "test", "oppo"].contains(&class) {
            settings.insert("priority".to_owned(), class.into());
            reported = true;
        } else {
            wrong(field, "`prod`, `test` or `oppo`", sink);
        }
    }
    let mut chosen = Map::new();
    let map = fields.map("taskRoles", "a map of task roles", sink);
    for entry in map.map_or(&[][..], |(_, map)| map.node.entries()) {
        let Some(role) = roles.iter().find(|role| role.raw == entry.key) else {
            let names = || roles.iter().map(|role| role.raw);
            let message = format!("unknown task role `{}` in `hivedScheduler`", entry.key);
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
            reported = true;
        }
    }
    if !chosen.is_empty() {
        settings.insert("roles".to_owned(), chosen.into());
    }
    if reported {
        sink.push(note_kept("`hivedScheduler`", field.key_span));
    }
}

/// Storage of the cluster, mounted by name.
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
