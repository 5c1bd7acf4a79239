//! One task role: its resources, thresholds, retries and commands.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::deployment::Deployment;
use super::plugins::Plugin;
use super::prerequisites::{Pool, Prerequisite};
use super::resources;
use super::script::{self, PluginCommands};
use super::template::{Scope, secret_name};
use crate::diagnostic::{Diagnostic, Location, Safety, Sink, codes};
use crate::document::{Entry, Node, Value};
use crate::import::fields::{Fields, wrong};
use crate::import::nodes::{entry, map, number, string};
use crate::openpai::{MAX_ROLE_NAME, SectionValue, Sections, converted};
use crate::source::Span;

/// Fields that belong elsewhere, most of them since protocol v1, with what to write.
const MISPLACED_FIELDS: [(&str, &str); 17] = [
    ("taskNumber", "`instances`"),
    ("cpuNumber", "`cpu` in `resourcePerInstance`"),
    ("cpu", "it in `resourcePerInstance`"),
    ("memoryMB", "it in `resourcePerInstance`"),
    ("gpuNumber", "`gpu` in `resourcePerInstance`"),
    ("gpu", "it in `resourcePerInstance`"),
    ("portList", "`ports` in `resourcePerInstance`, as in `ports: {http: 1}`"),
    ("ports", "it in `resourcePerInstance`"),
    ("shmMB", "it in `extraContainerOptions`"),
    ("infiniband", "it in `extraContainerOptions`"),
    ("command", "`commands`, a list of strings"),
    ("minFailedTaskCount", "`minFailedInstances` in `completion`"),
    ("minSucceededTaskCount", "`minSucceededInstances` in `completion`"),
    ("minFailedInstances", "it in `completion`"),
    ("minSucceededInstances", "it in `completion`"),
    ("retryCount", "`taskRetryCount`, or `jobRetryCount` at the top level"),
    ("image", "`dockerImage`, the name of a prerequisite of type `dockerimage`"),
];

/// The context for reading a role.
pub(super) struct Job<'p, 'a> {
    pub(super) pool: &'p Pool<'a>,
    pub(super) scope: Scope<'a>,
    pub(super) plugins: &'p [Plugin<'a>],
    pub(super) deployment: Option<&'p Deployment<'a>>,
    /// The scripts of all roles by name, if jobc wrote them.
    pub(super) sections: Option<BTreeMap<&'a str, Sections>>,
    /// The span that disables gang allocation.
    pub(super) no_gang: Option<Span>,
}

/// A task role that was read.
pub(super) struct TaskRole<'a> {
    pub(super) raw: &'a str,
    pub(super) ours: String,
    pub(super) key: Span,
    pub(super) span: Span,
    /// The converted role, without its image.
    pub(super) entries: Vec<Entry>,
    /// The span that names the image, and the prerequisite.
    pub(super) image: Option<(&'a Entry, &'a str)>,
    /// The fields kept for converting it back.
    pub(super) kept: Map<String, Json>,
    /// The scopes of its templates.
    pub(super) scope: Scope<'a>,
}

/// Reads a task role.
pub(super) fn read<'a>(field: &'a Entry, job: &Job<'_, 'a>, sink: &mut Sink) -> Option<TaskRole<'a>> {
    let raw = field.key.as_str();
    let sections = job.sections.as_ref().and_then(|all| all.get(raw));
    let ours = match sections.and_then(|sections| sections.role.clone()) {
        Some(ours) => ours,
        None => name(field, sink)?,
    };
    let role = Fields { node: &field.value, place: field.key_span, within: format!(" in task role `{raw}`") };
    if !matches!(field.value.value, Value::Mapping(_)) {
        wrong(field, "a map of fields", sink);
        return None;
    }
    role.refuse_others_but(&crate::openpai::ROLE_FIELDS, &MISPLACED_FIELDS, sink);
    let mut kept = Map::new();
    let mut scope = job.scope.clone();
    for (kind, chosen) in &mut scope.chosen {
        let Some(named) = role.entry(kind) else { continue };
        if let Some(found) = job.pool.named(named, kind, sink) {
            *chosen = Some(found.node);
            kept.insert((*kind).to_owned(), found.name.into());
        }
    }
    // It has no effect, but is kept so that nothing is lost.
    kept.extend(role.entry("protocolVersion").map(|field| (field.key.clone(), field.value.to_json())));
    let key = field.key_span;
    let mut entries = vec![];
    let instances = role.number("instances", 1, sink);
    if let Some((field, _)) = instances {
        entries.push(entry("instances", field.key_span, field.value.clone()));
    }
    let count = instances.map_or(1, |(_, count)| count);
    let image = role.required("dockerImage", sink).and_then(|named| {
        let found = job.pool.named(named, "dockerimage", sink)?;
        Some((named, found.node.get("uri")?.as_str()?))
    });
    let unasked = sections.is_none();
    entries.extend(resources::read(&role, unasked, &mut kept, sink));
    match (sections, role.entry("commands")) {
        (Some(sections), Some(field)) => entries.extend(read_back(field, sections)),
        _ => entries.extend(commands(&role, raw, &scope, job, &mut kept, sink)),
    }
    entries.push(completion(&role, count, key, sink));
    entries.extend(retry(&role, job.no_gang, &mut kept, sink));
    Some(TaskRole { raw, ours, key, span: field.value.span, entries, image, kept, scope })
}

fn name(field: &Entry, sink: &mut Sink) -> Option<String> {
    let text = field.key.as_str();
    let mut letters = text.chars();
    let fits = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '_');
    let ours = converted(text, MAX_ROLE_NAME, true).filter(|_| fits);
    let Some(ours) = ours else {
        let message = format!("`{text}` is not the name of a task role");
        let mut diagnostic = Diagnostic::error(codes::OPENPAI_VALUE, message)
            .at_span(field.key_span, "")
            .note("OpenPAI takes letters, digits and `_`, and no digit first");
        let mended = text.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        if mended.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let at = Location::Span(field.key_span);
            diagnostic = diagnostic.fix(format!("write `{mended}`"), at, mended, Safety::Unsafe);
        }
        sink.push(diagnostic);
        return None;
    };
    if ours != text {
        sink.push(
            Diagnostic::info(codes::OPENPAI_RENAMED, format!("the task role `{text}` becomes the role `{ours}`"))
                .at_span(field.key_span, "")
                .note("names of roles have at most 32 lower-case letters, digits and `-` here, so that every target takes them; OpenPAI gets the name as it was"),
        );
    }
    Some(ours)
}

/// The commands with everything that runs around them, as `setup`, `run` and the secrets that they use.
fn commands<'a>(
    role: &Fields<'a>,
    raw: &str,
    scope: &Scope<'a>,
    job: &Job<'_, 'a>,
    kept: &mut Map<String, Json>,
    sink: &mut Sink,
) -> Vec<Entry> {
    let Some(field) = role.required("commands", sink) else { return vec![] };
    let own = role.texts("commands", sink);
    let names =
        if role.entry("prerequisites").is_some() { role.texts("prerequisites", sink) } else { vec![] };
    let brought: Vec<&Prerequisite<'a>> = job.pool.resolve(&names, sink);
    let mut around: Vec<PluginCommands<'a>> = Vec::new();
    for plugin in brought.into_iter().filter_map(|prerequisite| prerequisite.plugin.as_ref()) {
        around.extend(plugin.plugin_commands());
    }
    for plugin in job.plugins.iter().filter(|plugin| plugin.is_for(raw)) {
        around.extend(plugin.plugin_commands());
    }
    let (before, after) = job.deployment.map(|deployment| deployment.of(raw)).unwrap_or_default();
    let all: Vec<_> = before.iter().chain(&own).chain(&after).copied().collect();
    let script = script::assemble(&all, &around, scope, sink);
    if !names.is_empty() {
        let names: Vec<&str> = names.iter().map(|(_, name)| *name).collect();
        kept.insert("prerequisites".to_owned(), json!(names));
    }
    kept.insert("commands".to_owned(), json!(script::filled(&own, scope)));
    let (key, at) = (field.key_span, field.value.span);
    let mut entries = vec![];
    if !script.secrets.is_empty() {
        let variables = script.secrets.iter().map(|(variable, secret)| {
            entry(variable, key, string(at, format!("${{{{ secrets.{} }}}}", secret_name(secret))))
        });
        entries.push(entry("env", key, map(at, variables.collect())));
    }
    if let Some(setup) = script.setup {
        entries.push(entry("setup", key, string(at, setup)));
    }
    entries.push(entry("run", key, string(at, script.run)));
    entries
}

/// The fields that a script written by jobc was generated from.
fn read_back(field: &Entry, sections: &Sections) -> Vec<Entry> {
    let (key, at) = (field.key_span, field.value.span);
    let text = |text: &str| string(at, text.replace("${{", "${{ '${{' }}"));
    let mut entries = vec![];
    let env = sections.env.iter().map(|(name, value)| {
        let value = match value {
            SectionValue::Text(value) => text(value),
            SectionValue::Secret(secret) => string(at, format!("${{{{ secrets.{secret} }}}}")),
        };
        entry(name.as_str(), key, value)
    });
    let files = sections.files.iter().map(|(path, (value, mode))| {
        let content = match value {
            SectionValue::Text(value) => entry("content", key, text(value)),
            SectionValue::Secret(secret) => entry("secret", key, string(at, secret.as_str())),
        };
        entry(path.as_str(), key, map(at, vec![content, entry("mode", key, string(at, mode.as_str()))]))
    });
    for (name, map_of) in [("env", env.collect::<Vec<_>>()), ("files", files.collect())] {
        if !map_of.is_empty() {
            entries.push(entry(name, key, map(at, map_of)));
        }
    }
    entries.extend(sections.workdir.as_ref().map(|directory| entry("workdir", key, text(directory))));
    entries.extend(sections.setup.as_ref().map(|setup| entry("setup", key, text(setup))));
    entries.push(entry("run", key, text(&sections.run)));
    entries
}

/// The thresholds. OpenPAI's default for success is every instance, so that a role that is done ends the job.
fn completion(role: &Fields<'_>, instances: u64, key: Span, sink: &mut Sink) -> Entry {
    let mut entries = vec![];
    let found = role.map("completion", "a map of thresholds", sink);
    if let Some((_, fields)) = &found {
        let old = [
            ("minFailedTaskCount", "`minFailedInstances`"),
            ("minSucceededTaskCount", "`minSucceededInstances`"),
        ];
        fields.refuse_others_but(&["minFailedInstances", "minSucceededInstances"], &old, sink);
    }
    let mut read = |name: &str, end: &str| {
        let (_, fields) = found.as_ref()?;
        let (field, count) = fields.integer(name, -1, sink)?;
        let never = u64::try_from(count).is_ok_and(|count| count > instances);
        if never {
            // OpenPAI accepts it, and its portal writes it for TensorBoard; it is never reached there either.
            let message = format!("`{name}` is {count}, but the role has {instances} instances: {end}");
            sink.push(
                Diagnostic::warning(codes::OPENPAI_THRESHOLD, message)
                    .at_span(field.value.span, "")
                    .fix(
                        format!("write `{instances}`"),
                        Location::Span(field.value.span),
                        instances.to_string(),
                        Safety::Unsafe,
                    )
                    .note("-1 switches a threshold off"),
            );
        }
        Some((field, if never { -1 } else { count }))
    };
    let failed = read("minFailedInstances", "it can never fail the job");
    let succeeded = read("minSucceededInstances", "it can never end the job");
    // 0 and null mean the default.
    let threshold = |found: Option<(&Entry, i64)>| match found {
        Some((field, -1)) => Some((field.key_span, string(field.value.span, "none"))),
        Some((field, count @ 1..)) => Some((field.key_span, number(field.value.span, count.unsigned_abs()))),
        _ => None,
    };
    entries.extend(threshold(failed).map(|(key, value)| entry("min_failed", key, value)));
    let (at, value) = threshold(succeeded).unwrap_or_else(|| (key, string(key, "all")));
    entries.push(entry("min_succeeded", at, value));
    let at = found.map_or(key, |(field, _)| field.value.span);
    entry("completion", key, map(at, entries))
}

/// Retries of single tasks, which OpenPAI supports only if they need not start together.
fn retry(
    role: &Fields<'_>,
    no_gang: Option<Span>,
    kept: &mut Map<String, Json>,
    sink: &mut Sink,
) -> Option<Entry> {
    let (field, count) = role.number("taskRetryCount", 0, sink).filter(|(_, count)| *count > 0)?;
    if no_gang.is_none() {
        kept.insert("taskRetryCount".to_owned(), count.into());
        sink.push(
            Diagnostic::warning(codes::OPENPAI_IGNORED, "OpenPAI does not retry these tasks: they start together")
                .at_span(field.key_span, "")
                .note("with `gangAllocation: false` under `extras` tasks start and are retried separately; `jobRetryCount` retries the whole job"),
        );
        return None;
    }
    let (key, at) = (field.key_span, field.value.span);
    let rules = vec![entry("max", key, number(at, count)), entry("scope", key, string(at, "task"))];
    Some(entry("retry", key, map(at, rules)))
}

/// The role as a document entry, with its image.
pub(super) fn finish(role: TaskRole<'_>, image: Option<Node>) -> Entry {
    let mut entries = role.entries;
    if let (Some((field, _)), Some(image)) = (role.image, image) {
        let place = entries.iter().position(|entry| entry.key == "resources").unwrap_or(0);
        entries.insert(place, entry("image", field.key_span, image));
    }
    entry(role.ours, role.key, map(role.span, entries))
}
