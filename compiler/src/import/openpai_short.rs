//! The short OpenPAI template, and the optional fields of protocol v1 that have an equal here.
//!
//! Rules of meaning: `memoryMB` and `shmMB` count in 1024 (OpenPAI hands them to `docker --memory=Nm`); `retryCount`
//! retries the whole job; `minFailedTaskCount` defaults to 1 and `minSucceededTaskCount` to "all must end", which are
//! the defaults of `completion`; a role without `gpuNumber` sees no GPU. What OpenPAI mounts, it mounts at the path it
//! has outside.

mod build;
mod role;

use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Document, Entry};

use super::fields::{Fields, wrong};
use super::names::converted;
use build::{entry, map, number, sequence, string};

/// What is read, for messages.
pub(super) const TEMPLATE: &str = "the template is `{jobName, image, dataDir, outputDir, taskRoles: [{taskNumber, cpuNumber, memoryMB, gpuNumber, command}]}`, with `virtualCluster` and `retryCount` for a job, and `name`, `shmMB`, `portList`, `minFailedTaskCount` and `minSucceededTaskCount` for a role";

/// The fields of a job that are understood.
const KNOWN: &[&str] =
    &["jobName", "image", "dataDir", "outputDir", "taskRoles", "virtualCluster", "retryCount"];

/// The fields of a job that only the full form of protocol v1 has.
const FULL: &[&str] =
    &["authFile", "codeDir", "gpuType", "killAllOnCompletedTaskNumber", "jobEnvs", "extras"];

/// The longest job name of ours.
const LONGEST_NAME: usize = 40;

/// Turns a template into a document of ours.
pub(super) fn import(document: &Document, sink: &mut Sink) -> Option<Document> {
    let before = sink.error_count();
    let root = &document.root;
    let first = root.entries().first()?;
    let job = Fields { node: root, place: first.key_span, within: String::new() };
    let known: Vec<&str> = KNOWN.iter().chain(FULL).copied().collect();
    job.refuse_others(&known, sink);
    refuse_full_form(&job, sink);

    let mut entries = vec![entry("version", first.key_span, number(first.key_span, 1))];
    entries.extend(job.required("jobName", sink).and_then(|field| name(field, &job, sink)));
    entries.extend(job.required("image", sink).and_then(|_| image(&job, sink)));
    entries.extend(folder(&job, "dataDir", "data", "data", sink));
    entries.extend(folder(&job, "outputDir", "outputs", "output", sink));
    entries.extend(retry(&job, sink));
    entries.extend(job.required("taskRoles", sink).and_then(|field| roles(field, sink)));
    entries.push(entry(
        "compat",
        first.key_span,
        sequence(first.key_span, vec![string(first.key_span, "openpai")]),
    ));
    note_cluster(&job, sink);
    (sink.error_count() == before).then(|| Document { root: map(root.span, entries) })
}

/// Fields that are OpenPAI's, but come with the full form.
fn refuse_full_form(job: &Fields<'_>, sink: &mut Sink) {
    for field in FULL.iter().filter_map(|name| job.entry(name)) {
        // OpenPAI reads an empty text as nothing, and so it says nothing here.
        if field.value.as_str().is_some_and(str::is_empty) {
            continue;
        }
        let message = format!("`{}` is of OpenPAI's full job form, which is not read yet", field.key);
        sink.push(
            Diagnostic::error(codes::OPENPAI_LATER, message)
                .at_span(field.key_span, "")
                .note("a later version reads it; take the field out, or write a job file of jobc's own")
                .note(TEMPLATE),
        );
    }
}

fn name(field: &Entry, job: &Fields<'_>, sink: &mut Sink) -> Option<Entry> {
    let Some((_, text)) = job.text("jobName", sink) else {
        if field.value.as_str().is_some() {
            wrong(field, "a name", sink);
        }
        return None;
    };
    let Some(ours) = converted(text, LONGEST_NAME, false) else {
        wrong(field, "a name with at least one letter or digit of ASCII", sink);
        return None;
    };
    if ours != text {
        sink.push(
            Diagnostic::info(codes::OPENPAI_RENAMED, format!("the job's name becomes `{ours}`"))
                .at_span(field.value.span, "")
                .note("names of jobs have at most 40 lower-case letters, digits and `-` here, so that every target takes them"),
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

/// `dataDir` or `outputDir`, mounted at the path it has outside.
fn folder(job: &Fields<'_>, field: &str, ours: &str, name: &str, sink: &mut Sink) -> Option<Entry> {
    let (field, path) = job.text(field, sink)?;
    if path.contains("$PAI_") || path.contains("$HDFS") {
        let message = format!("`{}` holds a variable that only an OpenPAI server fills in", field.key);
        sink.push(
            Diagnostic::error(codes::OPENPAI_VALUE, message)
                .at_span(field.value.span, "")
                .note("write the path itself, such as `/tmp/data`"),
        );
        return None;
    }
    if !path.starts_with('/') {
        wrong(field, "an absolute path, since it is mounted at the same path", sink);
        return None;
    }
    let (key, at) = (field.key_span, field.value.span);
    let folder = map(at, vec![entry("source", key, string(at, path)), entry("mount", key, string(at, path))]);
    Some(entry(ours, key, map(at, vec![entry(name, key, folder)])))
}

/// `retryCount` retries the whole job; OpenPAI's -1 and -2 are policies of its own.
fn retry(job: &Fields<'_>, sink: &mut Sink) -> Option<Entry> {
    let (field, count) = job.number("retryCount", 0, sink)?;
    if count == 0 {
        return None;
    }
    let (key, at) = (field.key_span, field.value.span);
    let rules = vec![entry("max", key, field.value.clone()), entry("scope", key, string(at, "job"))];
    Some(entry("retry", key, map(at, rules)))
}

fn roles(field: &Entry, sink: &mut Sink) -> Option<Entry> {
    let items = field.value.items();
    if items.is_empty() {
        wrong(field, "a list of at least one task role", sink);
        return None;
    }
    let mut roles: Vec<Entry> = Vec::with_capacity(items.len());
    let mut taken: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let Some(role) = role::import(index, item, sink) else { continue };
        if let Some(&other) = taken.get(&role.key) {
            let message = format!("two task roles get the name `{}`", role.key);
            let other: &Entry = &roles[other];
            sink.push(
                Diagnostic::error(codes::OPENPAI_VALUE, message)
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

/// The virtual cluster is where a job runs, which is the target's to say.
fn note_cluster(job: &Fields<'_>, sink: &mut Sink) {
    if let Some((field, cluster)) = job.text("virtualCluster", sink) {
        sink.push(
            Diagnostic::info(codes::OPENPAI_PLACE, format!("the virtual cluster `{cluster}` is not part of the job"))
                .at_span(field.value.span, "")
                .note(format!("a target says where a job runs: write `openpai: {{virtual_cluster: {cluster}}}` under a target of `targets.yaml`")),
        );
    }
}
