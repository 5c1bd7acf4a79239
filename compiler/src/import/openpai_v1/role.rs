//! One task role: its resources, ports, thresholds and command.

use serde_json::{Map, Value as Json};

use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Entry, Node, Value};
use crate::openpai::{MAX_LABEL, MAX_ROLE_NAME, converted};
use crate::source::Span;

use super::super::fields::{Fields, describe, wrong};
use super::super::nodes::{entry, map, number, string};

/// The known fields of a task role.
const KNOWN: &[&str] = &[
    "name",
    "taskNumber",
    "cpuNumber",
    "memoryMB",
    "shmMB",
    "gpuNumber",
    "portList",
    "command",
    "minFailedTaskCount",
    "minSucceededTaskCount",
];

/// The default memory of a task (rest-server 0.14, `config/job.js`).
const DEFAULT_MEMORY: &str = "100MiB";

/// Fields that have another name in protocol v1.
const MISPLACED_FIELDS: [(&str, &str); 8] = [
    ("instances", "`taskNumber`"),
    ("cpu", "`cpuNumber`"),
    ("gpu", "`gpuNumber`"),
    ("memory", "`memoryMB`, a number of MiB"),
    ("ports", "`portList`"),
    ("commands", "`command`, one string"),
    ("image", "it at the top level: protocol v1 has one image for all task roles"),
    ("gpuType", "it at the top level: protocol v1 has one type for all task roles"),
];

/// Settings of the job that apply to all its roles.
pub(super) struct JobSettings<'a> {
    /// `gpuType`: its span and the model.
    pub(super) gpu_type: Option<(&'a Entry, &'a str)>,
    /// Shell lines to run before each command.
    pub(super) setup: &'a str,
}

/// Converts a task role to a role of ours, named as it is, else `task<index>`.
pub(super) fn import(index: usize, item: &Node, shared: &JobSettings<'_>, sink: &mut Sink) -> Option<Entry> {
    let Some(first) = item.entries().first() else {
        let message =
            format!("item {} of `taskRoles` must be a map of fields, not {}", index + 1, describe(item));
        sink.push(Diagnostic::error(codes::OPENPAI_VALUE, message).at_span(item.span, ""));
        return None;
    };
    let named = item.get("name").and_then(Node::as_str);
    let called = named.map_or_else(|| format!("{}", index + 1), |name| format!("`{name}`"));
    let role = Fields { node: item, place: first.key_span, within: format!(" in task role {called}") };
    role.refuse_others_but(KNOWN, &MISPLACED_FIELDS, sink);

    let (name, name_span) = name(index, &role, sink)?;
    let mut entries = vec![];
    if let Some((field, _)) = role.number("taskNumber", 1, sink) {
        entries.push(entry("instances", field.key_span, field.value.clone()));
    }
    entries.push(entry(
        "resources",
        first.key_span,
        map(item.span, resources(&role, item.span, shared, sink)),
    ));
    if let Some(field) = role.required("command", sink) {
        match role.text("command", sink) {
            Some((_, command)) => {
                let mut setup = shared.setup.to_owned();
                if command.contains("PAI_WORK_DIR") {
                    setup.push_str("export PAI_WORK_DIR=\"$PWD\"\n");
                }
                if setup.matches('\n').count() == 1 {
                    setup.pop();
                }
                if !setup.is_empty() {
                    entries.push(entry("setup", field.key_span, string(field.value.span, setup)));
                }
                let command = command.replace("${{", "${{ '${{' }}");
                entries.push(entry("run", field.key_span, string(field.value.span, command)));
            }
            None if field.value.as_str().is_some() => wrong(field, "a command", sink),
            None => {}
        }
    }
    entries.extend(completion(&role, item.span, sink));
    Some(entry(name, name_span, map(item.span, entries)))
}

fn name(index: usize, role: &Fields<'_>, sink: &mut Sink) -> Option<(String, Span)> {
    let Some((field, text)) = role.text("name", sink) else {
        return Some((format!("task{index}"), role.place));
    };
    let Some(ours) = converted(text, MAX_ROLE_NAME, true) else {
        wrong(field, "a name with at least one letter or digit of ASCII", sink);
        return None;
    };
    if ours != text {
        sink.push(
            Diagnostic::info(codes::OPENPAI_RENAMED, format!("the task role `{text}` becomes the role `{ours}`"))
                .at_span(field.value.span, "")
                .note("names of roles have at most 32 lower-case letters, digits and `-` here, so that every target takes them"),
        );
    }
    Some((ours, field.value.span))
}

fn resources(role: &Fields<'_>, span: Span, shared: &JobSettings<'_>, sink: &mut Sink) -> Vec<Entry> {
    let mut entries = vec![];
    match role.number("cpuNumber", 1, sink) {
        Some((field, _)) => entries.push(entry("cpu", field.key_span, field.value.clone())),
        None if role.entry("cpuNumber").is_none() => entries.push(entry("cpu", role.place, number(span, 1))),
        None => {}
    }
    if role.entry("memoryMB").is_none() {
        entries.push(entry("memory", role.place, string(span, DEFAULT_MEMORY)));
    }
    for (theirs, ours) in [("memoryMB", "memory"), ("shmMB", "shm")] {
        if let Some((field, megabytes)) = role.number(theirs, 1, sink) {
            let text = format!("{megabytes}MiB");
            entries.push(entry(ours, field.key_span, string(field.value.span, text)));
        }
    }
    match role.number("gpuNumber", 0, sink) {
        Some((field, count)) => {
            let gpu = match shared.gpu_type.filter(|_| count > 0) {
                Some((kind, model)) => map(
                    field.value.span,
                    vec![
                        entry("count", field.key_span, field.value.clone()),
                        entry("model", kind.key_span, string(kind.value.span, model)),
                    ],
                ),
                None => field.value.clone(),
            };
            entries.push(entry("gpu", field.key_span, gpu));
        }
        // OpenPAI's default is 0, and there 0 means that no GPU is visible.
        None => entries.push(entry("gpu", role.place, number(span, 0))),
    }
    entries.extend(ports(role, sink));
    entries
}

/// `portList`: `beginAt: 0` is any free port.
fn ports(role: &Fields<'_>, sink: &mut Sink) -> Option<Entry> {
    let field = role.entry("portList")?;
    let Value::Sequence(items) = &field.value.value else {
        wrong(field, "a list of ports", sink);
        return None;
    };
    let mut ports: Vec<Entry> = vec![];
    for item in items {
        let Some(first) = item.entries().first() else {
            let message = format!("an item of `portList` must be a map, not {}", describe(item));
            sink.push(Diagnostic::error(codes::OPENPAI_VALUE, message).at_span(item.span, ""));
            continue;
        };
        let port =
            Fields { node: item, place: first.key_span, within: format!("{}, in `portList`", role.within) };
        port.refuse_others(&["label", "beginAt", "portNumber"], sink);
        let Some(label) = port.required("label", sink).and_then(|field| label(field, &port, sink)) else {
            continue;
        };
        let begin = port.number("beginAt", 0, sink);
        let count = port.number("portNumber", 1, sink);
        let mut rules = vec![];
        if let Some((field, begin)) = begin {
            let value = if begin == 0 { string(field.value.span, "auto") } else { field.value.clone() };
            rules.push(entry("port", field.key_span, value));
        }
        if let Some((field, _)) = count {
            rules.push(entry("count", field.key_span, field.value.clone()));
        }
        if let Some(other) = ports.iter().find(|other| other.key == label.0) {
            let message = format!("two ports get the label `{}`", label.0);
            sink.push(
                Diagnostic::error(codes::OPENPAI_VALUE, message)
                    .at_span(label.1, "")
                    .at_span(other.key_span, "the other"),
            );
            continue;
        }
        ports.push(entry(label.0, label.1, map(item.span, rules)));
    }
    (!ports.is_empty()).then(|| entry("ports", field.key_span, map(field.value.span, ports)))
}

fn label(field: &Entry, port: &Fields<'_>, sink: &mut Sink) -> Option<(String, Span)> {
    let (_, text) = port.text("label", sink)?;
    let Some(ours) = converted(text, MAX_LABEL, true) else {
        wrong(field, "a label with at least one letter or digit of ASCII", sink);
        return None;
    };
    if ours != text {
        let message = format!("the port's label `{text}` becomes `{ours}`");
        let why = "labels have at most 15 lower-case letters, digits and `-` here; the `PAI_*` variables of ports have the new one in them";
        sink.push(Diagnostic::info(codes::OPENPAI_RENAMED, message).at_span(field.value.span, "").note(why));
    }
    Some((ours, field.value.span))
}

/// Whether a converted role has GPUs.
pub(super) fn has_gpu(role: &Entry) -> bool {
    let gpu = role.value.get("resources").and_then(|resources| resources.get("gpu"));
    gpu.is_some_and(|gpu| !gpu.entries().is_empty())
}

/// The labels of a task role's ports that cannot be converted back, with the number of ports of each.
pub(super) fn labels(role: &Node) -> Map<String, Json> {
    let ports = role.get("portList").map(Node::items).unwrap_or_default();
    let label = |port: &Node| {
        let label = port.get("label")?.as_str()?;
        let ours = converted(label, MAX_LABEL, true)?;
        let fits = label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let count = port.get("portNumber").map_or(Json::from(1), Node::to_json);
        (fits && ours.replace('-', "_") != label).then(|| (label.to_owned(), count))
    };
    ports.iter().filter_map(label).collect()
}

/// The thresholds; null disables one, and so does a number that is never reached, on OpenPAI too.
fn completion(role: &Fields<'_>, span: Span, sink: &mut Sink) -> Option<Entry> {
    let mut entries = vec![];
    // Errors in it were reported with the other fields.
    let tasks = role.number("taskNumber", 1, &mut Sink::new()).map_or(1, |(_, count)| count);
    let thresholds = [("minFailedTaskCount", "min_failed"), ("minSucceededTaskCount", "min_succeeded")];
    for (theirs, ours) in thresholds {
        let Some(field) = role.entry(theirs) else { continue };
        if field.value.value == Value::Null {
            entries.push(entry(ours, field.key_span, string(field.value.span, "none")));
        } else if let Some((field, count)) = role.number(theirs, 1, sink) {
            if count <= tasks {
                entries.push(entry(ours, field.key_span, field.value.clone()));
                continue;
            }
            let message =
                format!("`{theirs}` is {count}, but the role has {tasks} tasks: it is never reached");
            sink.push(
                Diagnostic::warning(codes::OPENPAI_THRESHOLD, message)
                    .at_span(field.value.span, "")
                    .note("`null` switches a threshold off"),
            );
            entries.push(entry(ours, field.key_span, string(field.value.span, "none")));
        }
    }
    let key = entries.first()?.key_span;
    Some(entry("completion", key, map(span, entries)))
}
