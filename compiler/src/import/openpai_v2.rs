//! OpenPAI protocol version 2, as a rest-server reads it.
//!
//! Settings that jobc supports become our fields; the rest is kept under `openpai`, typed if a target has a setting
//! for it, else verbatim under `protocol`, so that the backend can write it again.
//! `docs/reference/openpai.md` has the table. Settings that OpenPAI silently ignores are reported here.

mod deployment;
mod extras;
mod findings;
mod images;
mod openpai_fields;
mod parameters;
mod plugins;
mod prerequisites;
mod resources;
mod role;
mod script;
mod secret;
mod template;

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Document, Entry, Node, Value};
use crate::openpai::{MAX_JOB_NAME, PLUGINS, Sections, converted, read_sections, short};
use crate::source::{Sources, Span};

use super::fields::{Fields, wrong};
use super::nodes::{entry, map, number, sequence, string};
use prerequisites::Pool;
use role::{Job, TaskRole};
use template::{Scope, is_param, number_text};

/// Fields that belong elsewhere, most of them since protocol v1, with what to write.
const MISPLACED_FIELDS: [(&str, &str); 13] = [
    ("jobName", "`name`"),
    ("image", "a prerequisite of type `dockerimage`, and its name as `dockerImage` of each task role"),
    ("retryCount", "`jobRetryCount`"),
    ("virtualCluster", "it in `defaults`"),
    ("deployment", "it in `defaults`"),
    ("gangAllocation", "it in `extras`"),
    ("hivedScheduler", "it in `extras`"),
    ("storages", "it in `extras`"),
    ("jobStatusChangeNotification", "it in `extras`"),
    (PLUGINS, "it in `extras`"),
    ("gpuType", "`skuType` in `hivedScheduler` of `extras`"),
    ("codeDir", "a plugin `git`, which clones the code, or put the code into the image"),
    ("jobEnvs", "`export NAME=VALUE` in `commands`"),
];

/// Converts a job of protocol v2 to our document format; `apart` is set if its secrets are in another document.
pub(super) fn import(
    document: &Document,
    sources: &Sources,
    apart: bool,
    sink: &mut Sink,
) -> Option<Document> {
    let before = sink.error_count();
    let root = &document.root;
    let first = root.entries().first()?;
    let fields = Fields { node: root, place: first.key_span, within: String::new() };
    fields.refuse_others_but(&crate::openpai::FIELDS, &MISPLACED_FIELDS, sink);
    fixed(&fields, sink);
    let name = name(&fields, sink);
    let roles: Vec<&str> =
        root.get("taskRoles").map_or(&[][..], Node::entries).iter().map(|entry| entry.key.as_str()).collect();
    let pool = Pool::read(&fields, sink);
    let parameters = fields.map("parameters", "a map of names to values", sink);
    let secrets = fields.map("secrets", "a map of names to values", sink);
    let secrets = secrets.as_ref().map_or(&[][..], |(_, map)| map.node.entries());
    let deployments = deployment::read(&fields, &roles, sink);
    let defaults = fields.map("defaults", "a map of `virtualCluster` and `deployment`", sink);
    if let Some((_, defaults)) = &defaults {
        defaults.refuse_others(&["virtualCluster", "deployment"], sink);
    }
    let chosen = deployment::chosen(defaults.as_ref().map(|(_, map)| map), &deployments, sink);
    let extras = fields.map("extras", "a map", sink);
    let plugins = extras.as_ref().map(|(_, extras)| plugins::read(extras, &roles, sink)).unwrap_or_default();
    let gang = extras.as_ref().and_then(|(_, extras)| extras.flag("gangAllocation", sink));
    let job = Job {
        pool: &pool,
        scope: Scope {
            sources,
            parameters: parameters.as_ref().map_or(&[][..], |(_, map)| map.node.entries()),
            secrets: (!apart).then_some(secrets),
            chosen: [("data", None), ("output", None), ("script", None)],
        },
        plugins: &plugins,
        deployment: chosen,
        sections: sections(&fields),
        no_gang: gang.filter(|(_, gang)| !gang).map(|(field, _)| field.value.span),
    };
    let task_roles = task_roles(&fields, &job, sink);
    let retries = fields.number("jobRetryCount", 0, sink);
    let mut registries = secret::Registries::default();
    for role in &task_roles {
        registries.read(role, &pool, &job.scope, sink);
    }
    let mut kept = openpai_fields::OpenpaiFields::new(&fields, &task_roles, &job, &deployments, sink);
    if let Some((field, count)) = retries.filter(|(_, count)| *count > 0 && retries_tasks(&task_roles)) {
        let message = "on targets other than OpenPAI, task roles with a `taskRetryCount` do not also retry the whole job";
        sink.push(Diagnostic::info(codes::OPENPAI_PLACE, message).at_span(field.key_span, ""));
        kept.keep("jobRetryCount", count.into());
    }

    let mut entries = vec![entry("version", first.key_span, number(first.key_span, 1))];
    entries.extend(name);
    entries.extend(description(&fields, &task_roles, sink));
    if let Some((field, _)) = &parameters {
        entries.extend(params(field));
    }
    entries.extend(secret::declared(secrets, &task_roles, &registries, first.key_span, sink));
    let compat = job.sections.as_ref().is_none_or(|all| all.values().any(|sections| sections.compat));
    let (images, task_roles) = images::images(task_roles, &pool, job.sections.is_some());
    entries.extend(images);
    entries.extend(registries.entry());
    if let Some(field) = fields.entry("taskRoles") {
        entries.push(entry("roles", field.key_span, map(field.value.span, task_roles)));
    }
    if let Some((field, false)) = gang {
        entries.push(entry("gang", field.key_span, string(field.value.span, "none")));
    }
    if let Some((field, count)) = retries.filter(|(_, count)| *count > 0) {
        let (key, at) = (field.key_span, field.value.span);
        let retry = vec![entry("max", key, number(at, count)), entry("scope", key, string(at, "job"))];
        entries.push(entry("retry", key, map(at, retry)));
    }
    let at = first.key_span;
    if compat {
        entries.push(entry("compat", at, sequence(at, vec![string(at, "openpai")])));
    }
    entries.extend(kept.entry(at));
    if openpai_fields::written_by_jobc(&fields) {
        // Its templates are already substituted, so its parameters are only a record.
        entries.push(entry("x-jobc-allow", at, sequence(at, vec![string(at, codes::UNUSED_PARAM.as_str())])));
    }
    (sink.error_count() == before).then(|| Document { root: map(root.span, entries) })
}

/// The scripts of all task roles, if jobc wrote every one of them and each can be read back.
fn sections<'a>(fields: &Fields<'a>) -> Option<BTreeMap<&'a str, Sections>> {
    let roles = fields.node.get("taskRoles")?;
    let read = |role: &'a Entry| match role.value.get("commands").map(Node::items) {
        Some([only]) => Some((role.key.as_str(), read_sections(only.as_str()?)?)),
        _ => None,
    };
    roles.entries().iter().map(read).collect()
}

/// The fields whose value is fixed.
fn fixed(fields: &Fields<'_>, sink: &mut Sink) {
    if let Some(field) = fields.required("protocolVersion", sink) {
        let is_two = match &field.value.value {
            Value::Number { number, .. } => number.as_f64() == Some(2.0),
            Value::String(text) => text == "2",
            _ => false,
        };
        if !is_two {
            wrong(field, "2", sink);
        }
    }
    if let Some(field) = fields.required("type", sink).filter(|field| field.value.as_str() != Some("job")) {
        wrong(field, "`job`", sink);
    }
    let texts = ["contributor", "description"].into_iter().filter_map(|key| fields.entry(key));
    for field in texts.filter(|field| field.value.as_str().is_none()) {
        wrong(field, "a string", sink);
    }
    let version = fields.entry("version");
    if let Some(field) = version.filter(|v| !matches!(v.value.value, Value::String(_) | Value::Number { .. }))
    {
        wrong(field, "a string", sink);
    }
}

fn name(fields: &Fields<'_>, sink: &mut Sink) -> Option<Entry> {
    let field = fields.required("name", sink)?;
    let Some((_, text)) = fields.text("name", sink) else {
        field.value.as_str().inspect(|_| wrong(field, "a name", sink));
        return None;
    };
    let fits = text.len() <= 255 && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let Some(ours) = converted(text, MAX_JOB_NAME, false).filter(|_| fits) else {
        let message = format!("`{text}` is not the name of a job");
        sink.push(
            Diagnostic::error(codes::OPENPAI_VALUE, message)
                .at_span(field.value.span, "")
                .note("OpenPAI takes at most 255 letters, digits, `_` and `-`"),
        );
        return None;
    };
    if ours != text {
        sink.push(
            Diagnostic::info(codes::OPENPAI_RENAMED, format!("the job's name becomes `{ours}`"))
                .at_span(field.value.span, "")
                .note("names of jobs have at most 40 lower-case letters, digits and `-` here, so that every target takes them; OpenPAI gets the name as it was"),
        );
    }
    Some(entry("name", field.key_span, string(field.value.span, ours)))
}

/// The task roles, whose names must still differ after OpenPAI converts them to names of objects.
fn task_roles<'a>(fields: &Fields<'a>, job: &Job<'_, 'a>, sink: &mut Sink) -> Vec<TaskRole<'a>> {
    let Some((field, roles)) =
        fields.required("taskRoles", sink).and_then(|_| fields.map("taskRoles", "a map of task roles", sink))
    else {
        return vec![];
    };
    if roles.node.entries().is_empty() {
        wrong(field, "a map of at least one task role", sink);
    }
    let mut read: Vec<TaskRole<'a>> = Vec::new();
    let mut taken: BTreeMap<String, Span> = BTreeMap::new();
    for field in roles.node.entries() {
        let Some(role) = role::read(field, job, sink) else { continue };
        if let Some(first) = taken.insert(short(role.raw), role.key) {
            let message = format!("two task roles have the same name on OpenPAI: `{}`", short(role.raw));
            sink.push(
                Diagnostic::error(codes::OPENPAI_SAME_NAME, message)
                    .at_span(role.key, "the second")
                    .at_span(first, "the first")
                    .note("OpenPAI keeps only letters and digits of a task role's name, in lower case; rename one of the two"),
            );
            continue;
        }
        if let Some(first) = read.iter().find(|first| first.ours == role.ours) {
            let message = format!("two task roles get the name `{}`", role.ours);
            sink.push(
                Diagnostic::error(codes::OPENPAI_SAME_NAME, message)
                    .at_span(role.key, "the second")
                    .at_span(first.key, "the first")
                    .note("names of roles have at most 32 letters here; make the two differ in the first 32"),
            );
            continue;
        }
        read.push(role);
    }
    read
}

/// Whether a converted task role retries its tasks.
fn retries_tasks(roles: &[TaskRole<'_>]) -> bool {
    roles.iter().flat_map(|role| &role.entries).any(|entry| entry.key == "retry")
}

fn description(fields: &Fields<'_>, roles: &[TaskRole<'_>], sink: &mut Sink) -> Option<Entry> {
    let (field, text) = fields.text("description", sink)?;
    // It describes templates to people; OpenPAI shows it unchanged.
    let scope = roles.first().map(|role| &role.scope);
    let text = scope
        .map_or_else(|| text.to_owned(), |scope| scope.fill(text, field.value.span, &mut Sink::new()).value);
    let text = text.replace("${{", "${{ '${{' }}");
    Some(entry("description", field.key_span, string(field.value.span, text)))
}

/// The parameters that can be converted, with numbers as OpenPAI writes them in commands.
fn params(field: &Entry) -> Option<Entry> {
    let params: Vec<Entry> = field
        .value
        .entries()
        .iter()
        .filter(|entry| is_param(entry))
        .map(|param| {
            let mut param = param.clone();
            if let Value::Number { number, text } = &mut param.value.value {
                *text = number_text(number);
                if let Ok(Json::Number(read)) = serde_json::from_str(text) {
                    *number = read;
                }
            }
            param
        })
        .collect();
    (!params.is_empty()).then(|| entry("params", field.key_span, map(field.value.span, params)))
}
