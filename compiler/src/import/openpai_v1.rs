//! OpenPAI protocol version 1, and the short template that is part of it.
//!
//! Semantics: `memoryMB` and `shmMB` are in MiB (OpenPAI passes them to `docker --memory=Nm`); `retryCount`
//! retries the whole job; `minFailedTaskCount` defaults to 1 and `minSucceededTaskCount` to "all tasks", which are
//! the defaults of `completion`; a role without `gpuNumber` sees no GPU, and
//! one without `cpuNumber` or `memoryMB` has 1 CPU or 100 MiB. Host directories are mounted at the same path in the
//! container; a location in the cluster's file system is passed in `PAI_DATA_DIR` and similar variables,
//! unchanged.

mod directories;
mod environment;
mod role;
mod ssh;

use serde_json::{Map, Value as Json, json};

use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Document, Entry, Node, Value};
use crate::openpai::{MAX_JOB_NAME, converted, short};

use super::fields::{Fields, wrong};
use super::nodes::{self, entry, map, number, sequence, string};

/// The fields of a job.
const KNOWN: &[&str] = &[
    "jobName",
    "image",
    "dataDir",
    "outputDir",
    "taskRoles",
    "virtualCluster",
    "retryCount",
    "authFile",
    "codeDir",
    "gpuType",
    "killAllOnCompletedTaskNumber",
    "jobEnvs",
    "extras",
];

/// Fields that have another name in protocol v1.
const MISPLACED_FIELDS: [(&str, &str); 4] = [
    ("name", "`jobName`"),
    ("jobRetryCount", "`retryCount`"),
    ("defaults", "`virtualCluster`"),
    ("secrets", "`\"protocolVersion\": 2`: protocol v1 has no secrets"),
];

/// Converts a job of protocol v1 to our document format.
pub(super) fn import(document: &Document, sink: &mut Sink) -> Option<Document> {
    let before = sink.error_count();
    let root = &document.root;
    let first = root.entries().first()?;
    let job = Fields { node: root, place: first.key_span, within: String::new() };
    job.refuse_others_but(KNOWN, &MISPLACED_FIELDS, sink);

    let directories = directories::read(&job, environment::variables(&job, sink), sink);
    let gpu_type = job.text("gpuType", sink);
    let mut entries = vec![entry("version", first.key_span, number(first.key_span, 1))];
    entries.extend(job.required("jobName", sink).and_then(|field| name(field, &job, sink)));
    entries.extend(job.required("image", sink).and_then(|_| image(&job, sink)));
    entries.extend(directories.volumes);
    entries.extend(retry(&job, sink));
    let roles = job
        .required("taskRoles", sink)
        .and_then(|field| roles(field, &role::JobSettings { gpu_type, setup: &directories.setup }, sink));
    let kept = openpai_fields(&job, roles.as_ref(), gpu_type.map(|(_, text)| text), sink);
    entries.extend(roles);
    let at = first.key_span;
    entries.push(entry("compat", at, sequence(at, vec![string(at, "openpai")])));
    if !kept.is_empty() {
        entries.push(entry("openpai", at, nodes::json(at, &kept.into())));
    }
    note_absent(&job, sink);
    (sink.error_count() == before).then(|| Document { root: map(root.span, entries) })
}

/// Settings that only OpenPAI supports.
fn openpai_fields(
    job: &Fields<'_>,
    roles: Option<&Entry>,
    gpu_type: Option<&str>,
    sink: &mut Sink,
) -> Map<String, Json> {
    let mut settings = Map::new();
    let mut protocol = Map::new();
    if let Some((field, cluster)) = job.text("virtualCluster", sink) {
        if cluster != "default" {
            let message =
                format!("the virtual cluster `{cluster}` is kept for OpenPAI; other targets ignore it");
            sink.push(Diagnostic::info(codes::OPENPAI_PLACE, message).at_span(field.value.span, ""));
        }
        settings.insert("virtual_cluster".to_owned(), cluster.into());
    }
    // A kind of GPU is a model for other targets and HiveD's SKU for OpenPAI.
    if let (Some(kind), Some(roles)) = (gpu_type, roles) {
        let sku = |role: &Entry| (role.key.clone(), json!({ "sku_type": kind }));
        let with_gpu = roles.value.entries().iter().filter(|role| role::has_gpu(role));
        settings.insert("roles".to_owned(), Json::Object(with_gpu.map(sku).collect()));
    }
    let named = |name: &str, letters: &str| {
        !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || letters.contains(c))
    };
    let name = job.node.get("jobName").and_then(|name| name.as_str());
    let changed = |name: &&str| converted(name, MAX_JOB_NAME, false).as_deref() != Some(*name);
    if let Some(name) = name.filter(|name| named(name, "_-")).filter(changed) {
        protocol.insert("name".to_owned(), name.into());
    }
    let raw = job.node.get("taskRoles").map_or(&[][..], |roles| roles.items());
    let task_roles: Map<String, Json> = raw
        .iter()
        .filter_map(|role| {
            let name = role.get("name")?.as_str().filter(|name| named(name, "_"))?;
            let labels = role::labels(role);
            // A name that can be derived again need not be kept.
            if labels.is_empty() && short(name) == name {
                return None;
            }
            let kept =
                if labels.is_empty() { json!({}) } else { json!({"resourcePerInstance": {"ports": labels}}) };
            Some((name.to_owned(), kept))
        })
        .collect();
    if !task_roles.is_empty() {
        protocol.insert("taskRoles".to_owned(), task_roles.into());
    }
    if let Some(plugin) = ssh::plugin(job, sink) {
        settings.insert("plugins".to_owned(), json!([plugin]));
    }
    if let Some(extras) = job.entry("extras").filter(|entry| !entry.value.entries().is_empty()) {
        let message = "`extras` is kept for OpenPAI; other targets ignore it";
        sink.push(Diagnostic::info(codes::OPENPAI_PLACE, message).at_span(extras.key_span, ""));
        protocol.insert("extras".to_owned(), extras.value.to_json());
    }
    if !protocol.is_empty() {
        settings.insert("protocol".to_owned(), protocol.into());
    }
    settings
}

/// Says of each field that no version of ours, nor protocol v2, has a word for.
fn note_absent(job: &Fields<'_>, sink: &mut Sink) {
    let absent = [
        ("authFile", "log in to the registry by `registries`, with the password as a secret"),
        ("killAllOnCompletedTaskNumber", "`minSucceededTaskCount` of a role ends the job"),
    ];
    for (name, instead) in absent {
        let Some(field) = job.entry(name) else { continue };
        // OpenPAI reads an empty text as nothing, and so it has no effect here.
        if !has_effect(&field.value) {
            continue;
        }
        sink.push(
            Diagnostic::warning(
                codes::OPENPAI_IGNORED,
                format!("`{name}` is left out: protocol v2 has no such field"),
            )
            .at_span(field.key_span, "")
            .note(instead),
        );
    }
}

/// Whether a value requests anything: null, an empty text, 0 and `false` do not.
fn has_effect(value: &Node) -> bool {
    match &value.value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Number { number, .. } => number.as_f64() != Some(0.0),
        _ => true,
    }
}

fn name(field: &Entry, job: &Fields<'_>, sink: &mut Sink) -> Option<Entry> {
    let Some((_, text)) = job.text("jobName", sink) else {
        if field.value.as_str().is_some() {
            wrong(field, "a name", sink);
        }
        return None;
    };
    let Some(ours) = converted(text, MAX_JOB_NAME, false) else {
        wrong(field, "a name with at least one letter or digit of ASCII", sink);
        return None;
    };
    if ours != text {
        sink.push(
            Diagnostic::info(codes::OPENPAI_RENAMED, format!("the job's name becomes `{ours}`"))
                .at_span(field.value.span, "")
                .note("names of jobs have at most 40 lower-case letters, digits and `-` here, so that every target takes them; OpenPAI gets the name as it was where protocol v2 takes it"),
        );
    }
    Some(entry("name", field.key_span, string(field.value.span, ours)))
}

fn image(job: &Fields<'_>, sink: &mut Sink) -> Option<Entry> {
    let field = job.entry("image")?;
    if job.text("image", sink).is_some() {
        return Some(entry("image", field.key_span, field.value.clone()));
    }
    if field.value.as_str().is_some() {
        wrong(field, "the name of an image", sink);
    }
    None
}

/// `retryCount` retries the whole job; -1 and -2 are OpenPAI's own policies.
fn retry(job: &Fields<'_>, sink: &mut Sink) -> Option<Entry> {
    let (field, count) = job.integer("retryCount", -2, sink)?;
    if count < 0 {
        let message =
            format!("`retryCount: {count}` depends on the kind of failure, which is not supported here");
        let note = "there are no retries; write a number, such as `\"retryCount\": 3`";
        sink.push(
            Diagnostic::warning(codes::OPENPAI_IGNORED, message).at_span(field.value.span, "").note(note),
        );
    }
    if count <= 0 {
        return None;
    }
    let (key, at) = (field.key_span, field.value.span);
    let rules = vec![entry("max", key, field.value.clone()), entry("scope", key, string(at, "job"))];
    Some(entry("retry", key, map(at, rules)))
}

fn roles(field: &Entry, shared: &role::JobSettings<'_>, sink: &mut Sink) -> Option<Entry> {
    let items = field.value.items();
    if items.is_empty() {
        wrong(field, "a list of at least one task role", sink);
        return None;
    }
    let mut roles: Vec<Entry> = Vec::with_capacity(items.len());
    let mut taken: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let Some(role) = role::import(index, item, shared, sink) else { continue };
        if let Some(&other) = taken.get(&role.key) {
            let message = format!("two task roles get the name `{}`", role.key);
            let other: &Entry = &roles[other];
            sink.push(
                Diagnostic::error(codes::OPENPAI_SAME_NAME, message)
                    .at_span(role.key_span, "")
                    .at_span(other.key_span, "the other")
                    .note("give each a `name` that stays different in lower-case letters, digits and `-`"),
            );
            continue;
        }
        taken.insert(role.key.clone(), roles.len());
        roles.push(role);
    }
    Some(entry("roles", field.key_span, map(field.value.span, roles)))
}
