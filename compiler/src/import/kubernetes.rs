//! Manifests of Kubernetes: each group of pods of an object becomes a role.
//!
//! A file may hold several objects. The kinds that run pods are rows of one [table](kinds); the other objects are read where
//! the job refers to them.

mod beside;
mod container;
mod containers;
mod context;
mod distributed;
mod env;
mod facts;
mod gpus;
mod group;
mod groups;
mod initial;
mod kinds;
mod layout;
mod metadata;
mod objects;
mod pod;
mod policies;
mod probes;
mod ray;
mod reader;
mod resources;
mod rows;
mod security;
mod settings;
mod tables;
mod train;
mod volumes;

use std::collections::BTreeSet;

use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Document, Entry, Node, Value};
use crate::openpai::{MAX_JOB_NAME, converted};
use crate::source::{Sources, Span};
use crate::suggest;

use super::container::select_mounts;
use super::draft::Draft;
use super::nodes::{map, string};
use super::read::{Read, comment_lines};
use super::selection::Selection;
use super::values::{text_at, text_in};
use containers::Handed;
use context::{Context, Named};
use facts::{Fact, Facts};
use group::Group;
use groups::elsewhere;
use initial::Earlier;
use kinds::{KINDS, Kind};
use metadata::Of;
use objects::Objects;
use rows::{Fields, Row, To};
use settings::Settings;

pub(super) use tables::table;

/// Findings of the parser about what Kubernetes allows, or about jobs.
const ALLOWED: [crate::diagnostic::Code; 3] =
    [codes::MISREAD, codes::LEADING_ZERO, codes::EXPRESSION_IN_FLOW];

/// Whether a document is a manifest.
pub(super) fn is_manifest(root: &Node) -> bool {
    let has_text = |key: &str| root.get(key).is_some_and(|node| node.as_str().is_some());
    has_text("apiVersion") && has_text("kind") && root.get("roles").is_none()
}

/// The objects of a manifest: those of a list, and of lists in it.
fn objects_of(root: &Node) -> Vec<&Node> {
    let is_list = text_at(root, "kind").is_some_and(|kind| kind.ends_with("List"));
    match root.get("items") {
        Some(items) if is_list => items.items().iter().flat_map(objects_of).collect(),
        _ => vec![root],
    }
}

/// Reads a manifest.
pub(super) fn read(document: &Document, sources: &Sources, selection: &Selection, sink: &mut Sink) -> Read {
    read_kinds(KINDS, document, sources, selection, sink)
}

fn read_kinds(
    known: &[&'static Kind],
    document: &Document,
    sources: &Sources,
    selection: &Selection,
    sink: &mut Sink,
) -> Read {
    // The job to read, where the file has several.
    let only = selection.name.as_deref();
    sink.retain(|found| !ALLOWED.contains(&found.code));
    let errors = sink.error_count();
    let all = objects_of(&document.root);
    let kind_of = |object: &Node| {
        Kind::of(
            known,
            &text_at(object, "apiVersion").unwrap_or_default(),
            &text_at(object, "kind").unwrap_or_default(),
        )
    };
    let jobs: Vec<(&Node, &'static Kind)> =
        all.iter().filter_map(|object| Some((*object, kind_of(object)?))).collect();
    let chosen: Vec<(&Node, &'static Kind)> =
        jobs.iter().copied().filter(|(object, _)| only.is_none_or(|only| name_of(object) == only)).collect();
    let source = sources.get(document.root.span.source);
    let mut comments = comment_lines(document, source);
    let Some((object, kind)) = chosen.first().copied().filter(|_| chosen.len() == 1) else {
        sink.push(not_one(known, &all, &jobs, only));
        return Read {
            document: None,
            targets: None,
            account: super::account::Account::default(),
            comments: vec![],
        };
    };
    let others = all.into_iter().filter(|other| !std::ptr::eq(*other, object)).collect();
    let objects = Objects::new(others);
    let mut draft = Draft::new(object.span, sink);
    draft.is_sketch = selection.is_sketch;
    if let Some(merged) = convert(kind, object, &objects, &mut draft) {
        let line = |byte: u32| source.line_column(byte).line as usize;
        comments.retain(|at, _| !(line(merged.start)..line(merged.end) + 1).contains(&(at + 1)));
    }
    objects.finish(&mut draft);
    if draft.sink.error_count() == errors {
        let rows: BTreeSet<Span> = draft.account.rows().iter().map(|row| row.span).collect();
        unread(object, &rows, &mut draft);
    }
    let has_errors = draft.sink.error_count() > errors;
    let comments = vec![(document.root.span.source, comments)];
    let (document, targets, account) = draft.finish();
    Read { document: (!has_errors).then_some(document), targets, account, comments }
}

/// Reports the fields that no reader has taken: those of maps whose fields no table has.
fn unread(node: &Node, rows: &BTreeSet<Span>, draft: &mut Draft<'_>) {
    for item in node.items().iter().filter(|item| !rows.contains(&item.span)) {
        unread(item, rows, draft);
    }
    for entry in node.entries() {
        let (part, value) = (entry.key_span, &entry.value);
        if rows.contains(&part) || rows.contains(&value.span) {
            continue;
        }
        if value.entries().is_empty() && value.items().is_empty() {
            draft.invalid(part, format!("unknown field `{}`", entry.key), "");
        }
        unread(value, rows, draft);
    }
}

/// The names of the jobs of a manifest, if it has several.
pub(super) fn job_names(root: &Node) -> Vec<String> {
    let is_job = |object: &&Node| {
        let of = |key: &str| text_at(object, key).unwrap_or_default();
        Kind::of(KINDS, &of("apiVersion"), &of("kind")).is_some()
    };
    let names: Vec<String> = objects_of(root).into_iter().filter(is_job).map(name_of).collect();
    if names.len() > 1 { names } else { vec![] }
}

/// The name of an object.
fn name_of(object: &Node) -> String {
    let of = |key: &str| text_in(object, &["metadata", key]);
    of("name")
        .or_else(|| of("generateName").map(|name| name.trim_end_matches('-').to_owned()))
        .unwrap_or_default()
}

/// The finding for a file without a job, or with several.
fn not_one(
    known: &[&'static Kind],
    all: &[&Node],
    jobs: &[(&Node, &'static Kind)],
    only: Option<&str>,
) -> Diagnostic {
    let place = |object: &Node| object.get("kind").map_or(object.span, |kind| kind.span);
    let titles: Vec<String> = known.iter().map(|kind| kind.title()).collect();
    let list = format!("the kinds that are read are {}", titles.join(", "));
    let Some((first, _)) = jobs.first() else {
        let object = all.first().copied();
        let kind = object.and_then(|object| text_at(object, "kind")).unwrap_or_default();
        let at = object.map(place).unwrap_or_default();
        let near = suggest::nearest(&kind, known.iter().map(|kind| kind.name)).filter(|near| *near != kind);
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let version = object.and_then(|object| text_at(object, "apiVersion")).unwrap_or_default();
        let message = format!("no object of the file runs pods of a job: `{kind}` of `{version}`{hint}");
        return Diagnostic::error(codes::FOREIGN_FILE, message).at_span(at, "").note(list);
    };
    let names: Vec<String> = jobs.iter().map(|(object, _)| format!("`{}`", name_of(object))).collect();
    if let Some(only) = only {
        let message = format!("the file has no job `{only}`, or several");
        let found = Diagnostic::error(codes::IMPORT_SEVERAL, message).at_span(place(first), "");
        return found.note(format!("it has {}", names.join(", ")));
    }
    let second = jobs.get(1).map_or(*first, |(second, _)| second);
    let message = format!("the file has {} jobs: {}", jobs.len(), names.join(", "));
    Diagnostic::error(codes::IMPORT_SEVERAL, message).at_span(place(second), "").note(format!(
        "`jobc import --name {} FILE` reads one of them, and `jobc import DIRECTORY` all",
        name_of(first)
    ))
}

/// Converts one object; returns the place of pods that became the role of others.
fn convert(kind: &'static Kind, object: &Node, objects: &Objects<'_>, draft: &mut Draft<'_>) -> Option<Span> {
    let replaced = (kind.name == "TrainJob").then(|| train::expanded(object, objects, draft));
    let object = replaced.as_ref().unwrap_or(object);
    let at = object.get("metadata").map_or(object.span, |metadata| metadata.span);
    let name = name_of(object);
    let ours = converted(&name, MAX_JOB_NAME, false).unwrap_or("job".to_owned());
    let named = object.get("metadata").and_then(|metadata| metadata.get("name"));
    draft.set(&["name"], at, string(named.map_or(at, |node| node.span), ours));

    let mut settings = Settings::default();
    let mut facts = Facts::default();
    let mut groups = groups::groups(kind, object, draft);
    let is_pod = kind.places.iter().all(|place| place.at.is_empty());
    if let Some(metadata) = object.get("metadata") {
        let of = groups.first().filter(|_| is_pod).map_or(Of::Object, |group| Of::Both(&group.role));
        metadata::read(metadata, of, &mut settings, draft);
    }
    let is_alone = !groups.iter().any(|group| initial::has_role(kind, group) || beside::has_role(group));
    header(kind, object, is_alone, draft);
    fields(kind, object, &mut facts, &mut settings, draft);
    for group in &groups {
        if draft.get(&["roles", &group.role]).is_none() {
            draft.set(&["roles", &group.role], group.at, map(group.at, vec![]));
        }
    }
    layout::count(kind, &mut groups, &mut facts, draft);
    let merged =
        if kind.framework == kinds::Stands::Pytorch { layout::merge(&mut groups, draft) } else { None };
    let mut handed = Handed::default();
    let (beside, sidecars) = beside::take(kind, &mut groups, &mut handed, draft);
    let earlier = initial::take(kind, &mut groups, &beside, &mut handed, draft);
    before(&earlier, draft);
    let all: Vec<&Group> =
        earlier.iter().map(|earlier| &earlier.group).chain(&groups).chain(&beside).collect();
    for group in &all {
        draft.account.field(group.at, format!("roles.{}", group.role));
    }
    let named: Vec<Named<'_>> = groups
        .iter()
        .map(|group| Named { source: &group.source, role: &group.role, instances: group.instances })
        .collect();
    let mut context = Context::new(kind, &name, objects, &named);
    context.claims = claims(object);
    context.is_single = all.len() < 2;
    context.handed = all.iter().map(|group| (group.role.clone(), group.handed(&handed))).collect();
    let mut mounts = Vec::new();
    for group in &all {
        if let Some(metadata) = group.template.get("metadata").filter(|_| !is_pod) {
            metadata::read(metadata, Of::Pods(&group.role), &mut settings, draft);
        }
        match group.spec() {
            Some(spec) => {
                let mounted = pod::read(spec, &group.role, &context, &mut settings, draft);
                mounts.push((group.role.clone(), group.at, mounted));
            }
            None => draft.invalid(group.at, "the pods have no `spec`", ""),
        }
    }
    let roles: Vec<String> = all.iter().map(|group| group.role.clone()).collect();
    select_mounts(&mounts, draft);
    settings.finish(&roles.iter().map(String::as_str).collect::<Vec<_>>(), draft);
    if kind.name == "RayJob" {
        ray::write(&groups, &mut facts, draft);
    }
    distributed::write(kind, &groups, &mut facts, at, draft);
    runtime(&mut facts, objects, draft);
    layout::finish(kind, &mut groups, facts, draft);
    beside::write(kind, (&beside, &sidecars), &groups, draft);
    share_image(&roles, draft);
    merged
}

/// Writes the roles that run before others, and what waits for them.
fn before(earlier: &[Earlier], draft: &mut Draft<'_>) {
    let Some(known) = draft.get(&["roles"]).cloned().filter(|_| !earlier.is_empty()) else { return };
    draft.remove(&["roles"]);
    for Earlier { group, .. } in earlier {
        draft.set(&["roles", &group.role], group.at, map(group.at, vec![]));
    }
    for role in known.entries() {
        draft.set(&["roles", &role.key], role.key_span, role.value.clone());
    }
    for Earlier { group, before } in earlier {
        draft.set(&["roles", before, "needs", &group.role], group.at, string(group.at, "succeeded"));
    }
}

/// Writes the image of all roles once.
fn share_image(roles: &[String], draft: &mut Draft<'_>) {
    let of = |role: &String| draft.get(&["roles", role, "image"]).cloned();
    let Some(first) = roles.first().and_then(of) else { return };
    if roles.len() < 2
        || !roles.iter().all(|role| of(role).is_some_and(|image| image.to_json() == first.to_json()))
    {
        return;
    }
    for role in roles {
        draft.remove(&["roles", role, "image"]);
    }
    draft.set(&["image"], first.span, first);
}

/// The claims that an object makes for its pods: their names, and the sizes of those that each pod has for itself.
fn claims(object: &Node) -> Vec<(String, Option<String>)> {
    let spec = object.get("spec");
    let of = |spec: Option<&Node>, key: &str| -> Vec<Node> {
        spec.and_then(|spec| spec.get(key)).map_or(vec![], |list| list.items().to_vec())
    };
    let policies = of(spec, "volumeClaimPolicies");
    let shared = policies.iter().filter_map(|policy| policy.get("templates")).flat_map(Node::items);
    let group = spec.and_then(|spec| spec.get("leaderWorkerTemplate"));
    let own = [of(spec, "volumeClaimTemplates"), of(group, "volumeClaimTemplates")].concat();
    let name = |claim: &Node| text_in(claim, &["metadata", "name"]);
    let size = |claim: &Node| text_in(claim, &["spec", "resources", "requests", "storage"]);
    let shared = shared.filter_map(|claim| Some((name(claim)?, None)));
    let own = own.iter().filter_map(|claim| Some((name(claim)?, Some(size(claim).unwrap_or_default()))));
    shared.chain(own).collect()
}

/// Whether a group of a LeaderWorkerSet has a leader with other pods than its workers, of which there are several.
fn is_large(object: &Node) -> bool {
    let of =
        |key: &str| ["spec", "leaderWorkerTemplate", key].iter().try_fold(object, |node, key| node.get(key));
    let size = of("size").and_then(facts::number_of).unwrap_or(1);
    size > 2 && of("leaderTemplate").is_some()
}

/// Whether an object is in a queue of Kueue.
fn is_queued(object: &Node) -> bool {
    text_in(object, &["metadata", "labels", "kueue.x-k8s.io/queue-name"]).is_some()
}

/// Accounts for `apiVersion` and `kind`.
fn header(kind: &Kind, object: &Node, is_alone: bool, draft: &mut Draft<'_>) {
    for entry in object.entries() {
        match entry.key.as_str() {
            "apiVersion" => draft.note(entry.key_span, "jobc writes the version that the target has"),
            "kind" if kind.becomes.is_empty() => match kind.builds {
                Some("leaderworkerset") if is_large(object) => draft.changed(
                    entry.value.span,
                    "a leader and several workers become a JobSet, of one group that ends",
                    "`kubernetes: {kind: leaderworkerset}` of a target has one worker, or one role of equal instances",
                ),
                Some(builds) if !is_alone && !["jobset", "volcano"].contains(&builds) => {
                    draft.note(entry.key_span, "jobc builds a JobSet of the roles");
                }
                Some("pod") if is_queued(object) => {
                    draft.note(entry.key_span, "Kueue manages the Job that jobc builds");
                }
                Some(builds) => {
                    draft.target(&["kubernetes", "kind"], entry.key_span, string(entry.value.span, builds));
                }
                None if kind.name == "Job" && text_in(object, &["spec", "backoffLimit"]).is_none() => draft.note(
                    entry.key_span,
                    "jobc chooses the kind; without `backoffLimit` a Job is retried 6 times, a job of jobc is not: `retry: {max: 6}`",
                ),
                None => draft.note(entry.key_span, "jobc chooses the kind that can express the job"),
            },
            "kind" if kind.groups == ["apps"] => {
                draft.changed(entry.value.span, kind.becomes, "`jobc submit` starts it; write `retry: {max: unlimited}` to repeat failures");
            }
            "kind" => draft.note(entry.key_span, format!("jobc builds {}", kind.becomes)),
            _ => {}
        }
    }
}

/// Reads the fields of the object besides its pods.
fn fields(
    kind: &'static Kind,
    object: &Node,
    facts: &mut Facts,
    settings: &mut Settings,
    draft: &mut Draft<'_>,
) {
    let heads: Vec<String> = kind.places.iter().flat_map(elsewhere).collect();
    let own = ["apiVersion", "kind", "metadata", "status"];
    if let Some(status) = object.entries().iter().find(|entry| entry.key == "status") {
        draft.note(status.key_span, metadata::WRITTEN);
    }
    let elsewhere: Vec<&str> = heads.iter().map(String::as_str).chain(own).collect();
    let title = kind.title();
    let reader = Fields { of: &format!("a {title}"), tables: kind.fields, elsewhere: &elsewhere };
    reader.read(object, draft, &mut |draft, row, entry| match row.to {
        To::Fact(fact) => facts.put(fact, entry),
        _ => own_field(row, entry, settings, draft),
    });
    for place in kind.places {
        for path in place.metadata.iter().filter(|_| place.fields.is_empty()) {
            let below = format!("{}.{path}", place.at);
            let parts: Vec<&str> = below.split('.').collect();
            if let Some(node) = parts.iter().try_fold(object, |node, key| node.get(key)) {
                metadata::read(node, Of::Object, settings, draft);
            }
        }
    }
}

/// Fields that one kind alone has.
fn own_field(row: &Row, entry: &Entry, settings: &mut Settings, draft: &mut Draft<'_>) {
    let part = entry.key_span;
    match row.path {
        "schedulerName" if entry.value.as_str() == Some("volcano") => {
            draft.note(part, "it comes with `kubernetes.kind: volcano`");
        }
        "schedulerName" => settings.job(&["scheduler"], part, entry.value.clone()),
        "plugins" => {
            for plugin in entry.value.entries() {
                if plugin.key == "svc" {
                    draft.note(plugin.key_span, "jobc always uses it");
                } else {
                    settings.job(&["volcano_plugins", &plugin.key], plugin.key_span, plugin.value.clone());
                }
            }
        }
        _ => draft.note(part, "the default"),
    }
}

/// The runtime of a TrainJob that is not in the file.
fn runtime(facts: &mut Facts, objects: &Objects<'_>, draft: &mut Draft<'_>) {
    let Some((value, part)) = facts.take(Fact::Runtime) else { return };
    let name = text_at(&value, "name").unwrap_or_default();
    let kind = text_at(&value, "kind").unwrap_or("ClusterTrainingRuntime".to_owned());
    if objects.get(&kind, &name, "roles").is_some() {
        return draft.account.field(part, "roles");
    }
    draft.target(&["kubernetes", "runtime", "name"], part, string(part, name));
    if kind == "TrainingRuntime" {
        let on = Node { span: part, value: Value::Bool(true) };
        draft.need_of_target(&["kubernetes", "runtime", "namespaced"], part, on);
    }
}

#[cfg(test)]
mod tests;
