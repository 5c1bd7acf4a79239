//! Tasks of SkyPilot: one role, an instance for each node.

use serde_json::json;

use crate::diagnostic::Sink;
use crate::document::{Document, Entry, Node, Value};
use crate::openpai::{MAX_JOB_NAME, converted};
use crate::source::{Sources, Span};

use super::container::{self, Role};
use super::draft::Draft;
use super::keyed::{each, key};
use super::nodes::{json, number, string};
use super::options::Becomes::{Field, Note, Refusal};
use super::options::CommandOption;
use super::read::{Read, comment_lines};
use super::values::{pairs, scalar, text_at, texts};

const ROLE: &str = "main";
const PLACE: &str = "which cloud or cluster runs a job is said by its target";
const RECORDS: &str = "jobc keeps the output of each task: `jobc logs` prints it";

/// The keys, by name.
pub(super) static KEYS: &[CommandOption] = &[
    key("config", Note(PLACE)),
    key("envs", Field("`env`; without a value a parameter or a secret")),
    key("event_callback", Note(RECORDS)),
    key("experimental", Note(PLACE)),
    key("file_mounts", Field("`data`; buckets are an error")),
    key("inputs", Note("an estimate of costs")),
    key("name", Field("`name`")),
    key("num_nodes", Field("`instances`")),
    key("outputs", Note("an estimate of costs")),
    key("resources", Field("`resources`, and `image` for `image_id: docker:…`")),
    key("run", Field("`run`, with the variables of jobc instead of `SKYPILOT_…`")),
    key("secrets", Field("`secrets`, in `env`")),
    key(
        "service",
        Refusal(
            "replicas behind a load balancer of SkyPilot",
            "write `instances` and `resources: {ports: …}`",
        ),
    ),
    key("setup", Field("`setup`")),
    key(
        "volumes",
        Refusal("volumes of SkyPilot", "write a directory or a claim as `data: {source: …, mount: …}`"),
    ),
    key("workdir", Field("`code`")),
];

static RESOURCES: &[CommandOption] = &[
    key("accelerator_args", Note(PLACE)),
    key("accelerators", Field("")),
    key("any_of", Refusal("one of several kinds of resources", "write one of them as `resources`")),
    key("autostop", Note("a job ends when its command does")),
    key("cloud", Note(PLACE)),
    key("cpus", Field("")),
    key("disk_size", Field("")),
    key("disk_tier", Note(PLACE)),
    key("image_id", Field("")),
    key("infra", Note(PLACE)),
    key("instance_type", Note(PLACE)),
    key("job_recovery", Note("`retry: {max: N}` starts a job again")),
    key("labels", Note(PLACE)),
    key("local_disk", Note(PLACE)),
    key("max_hourly_cost", Note(PLACE)),
    key("memory", Field("")),
    key("network_tier", Note(PLACE)),
    key("ordered", Refusal("one of several kinds of resources", "write one of them as `resources`")),
    key("ports", Field("")),
    key("priority", Note(PLACE)),
    key("region", Note(PLACE)),
    key("spot_recovery", Note("`retry: {max: N}` starts a job again")),
    key("use_spot", Note(PLACE)),
    key("zone", Note(PLACE)),
];

/// Whether it has the resources of SkyPilot, or its other keys.
pub(super) fn is_task(root: &Node) -> bool {
    let in_resources =
        |key: &str| root.get("resources").is_some_and(|resources| resources.get(key).is_some());
    let keys = ["accelerators", "cloud", "infra", "use_spot", "instance_type", "any_of"];
    (root.get("run").is_some() || root.get("setup").is_some())
        && root.get("version").is_none()
        && (keys.iter().any(|key| in_resources(key))
            || root.get("num_nodes").is_some()
            || root.get("file_mounts").is_some())
}

/// Reads a task.
pub(super) fn read(document: &Document, sources: &Sources, sink: &mut Sink) -> Read {
    let errors = sink.error_count();
    let root = &document.root;
    let first = root.entries().first().map_or(root.span, |entry| entry.key_span);
    let source = sources.get(root.span.source);
    let mut draft = Draft::new(first, sink);
    let stem = source.path().file_stem().unwrap_or("task");
    draft.set(&["name"], first, string(first, converted(stem, MAX_JOB_NAME, false).unwrap_or("task".into())));
    each(root.entries(), KEYS, "a task of SkyPilot", &mut draft, field);
    let nodes = draft.get(&["roles", ROLE, "instances"]).is_some();
    if nodes && text_at(root, "run").is_some_and(|run| run.contains("torchrun") && !run.contains("rdzv")) {
        draft.note(first, "`distributed: {framework: torchrun}` lets jobc set up the meeting of the nodes");
    }
    if draft.get(&["image"]).is_none() {
        let image = container::param(&mut draft, "IMAGE", None, first);
        draft.set(&["image"], first, string(first, image));
        draft.changed(
            first,
            "the task runs on the files of a virtual machine: the image is a parameter",
            "set it to one with the programs of the task: `--set IMAGE=pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime`",
        );
    }
    let has_errors = draft.sink.error_count() > errors;
    let comments = vec![(root.span.source, comment_lines(document, source))];
    let (document, targets, account) = draft.finish();
    Read { document: (!has_errors).then_some(document), targets, account, comments }
}

fn field(entry: &Entry, draft: &mut Draft<'_>) {
    let (node, part) = (&entry.value, entry.key_span);
    let text = scalar(node).unwrap_or_default();
    match entry.key.as_str() {
        "name" => match converted(&text, MAX_JOB_NAME, false) {
            Some(name) => draft.field(&["name"], part, string(part, name)),
            None => draft.invalid(part, format!("`{text}` has no letter or digit of ASCII"), ""),
        },
        "num_nodes" => match text.parse::<u64>() {
            Ok(1) => draft.note(part, "the default"),
            Ok(count) if count > 0 => draft.field(&["roles", ROLE, "instances"], part, number(part, count)),
            _ => draft.invalid(part, format!("`{text}` is not a number of nodes above 0"), ""),
        },
        "workdir" if text.is_empty() => {
            draft.refuse(part, "the directory is a repository of Git", "check it out, and write its path");
        }
        "workdir" => draft.field(&["code"], part, string(part, text)),
        "setup" | "run" => {
            draft.field(&["roles", ROLE, &entry.key], part, string(node.span, variables(&text)));
        }
        "envs" | "secrets" => {
            for (name, value, at) in pairs(node) {
                let mut role = Role { draft, name: ROLE };
                match value {
                    Some(value) if entry.key == "envs" => {
                        let value = value.replace("${{", "${{ '${{' }}");
                        container::variable(&mut role, &name, Some(&value), at);
                    }
                    None if entry.key == "envs" && !container::is_secret(&name) => {
                        let value = container::param(role.draft, &name, None, at);
                        role.field(&["env", &name], at, string(at, value));
                    }
                    _ => container::variable(&mut role, &name, None, at),
                }
            }
        }
        "file_mounts" => {
            for mount in node.entries() {
                let at = mount.key_span;
                match scalar(&mount.value).filter(|source| !source.contains("://")) {
                    Some(source) => {
                        let target = mount.key.replacen('~', "/root", 1);
                        let target = if target.starts_with('/') { target } else { format!("/root/{target}") };
                        let source =
                            if source.starts_with(['/', '.', '~']) { source } else { format!("./{source}") };
                        let mount = container::Mount {
                            source: Some(&source),
                            target: &target,
                            read_only: true,
                            is_volume: false,
                        };
                        container::mount(draft, &mount, at);
                    }
                    None => draft.refuse(
                        at,
                        "the files are in a bucket",
                        "mount the bucket on the hosts or as a claim, and write that as `data`",
                    ),
                }
            }
        }
        _ => each(node.entries(), RESOURCES, "`resources` of SkyPilot", draft, resource),
    }
}

fn resource(entry: &Entry, draft: &mut Draft<'_>) {
    let (node, part) = (&entry.value, entry.key_span);
    let text = scalar(node).unwrap_or_default();
    let least = text.trim_end_matches('+');
    let mut role = Role { draft, name: ROLE };
    if least != text {
        let message = format!("`{text}` is at least {least}: the job has {least}");
        role.draft.changed(part, message, "");
    }
    match entry.key.as_str() {
        "accelerators" => accelerators(node, part, &mut role),
        "cpus" => container::cpus(&mut role, least, part),
        key @ ("memory" | "disk_size") => {
            let unit = if least.ends_with(|c: char| c.is_ascii_digit()) { "g" } else { "" };
            let field = if key == "memory" { key } else { "disk" };
            container::limit(&mut role, field, &format!("{least}{unit}"), part);
        }
        "image_id" => match text.strip_prefix("docker:") {
            Some(image) => role.draft.field(&["image"], part, string(part, image)),
            None => role.draft.changed(
                part,
                format!("`{text}` is an image of virtual machines"),
                "write the name of a container image as `image`",
            ),
        },
        _ => texts(node).iter().for_each(|(text, part)| container::port(&mut role, text, *part)),
    }
}

/// `A100:8`, `A100`, or `{A100: 8}`.
fn accelerators(node: &Node, part: Span, role: &mut Role<'_, '_>) {
    let named: Vec<(String, String)> = match &node.value {
        Value::Mapping(entries) => entries
            .iter()
            .map(|entry| (entry.key.clone(), scalar(&entry.value).unwrap_or("1".into())))
            .collect(),
        _ => texts(node)
            .into_iter()
            .map(|(text, _)| match text.split_once(':') {
                Some((model, count)) => (model.to_owned(), count.to_owned()),
                None => (text, "1".to_owned()),
            })
            .collect(),
    };
    let [(model, count)] = &named[..] else {
        return role.draft.refuse(part, "one of several models of GPUs", "write one of them");
    };
    match count.parse::<f64>() {
        Ok(count) if count >= 1.0 && count.fract() == 0.0 && count < 65_536.0 => {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is checked to be in range"
            )]
            let count = count as u64;
            role.field(
                &["resources", "gpu"],
                part,
                json(part, &json!({"count": count, "model": model.to_ascii_lowercase()})),
            );
        }
        _ => role.draft.refuse(
            part,
            format!("`{count}` of a GPU"),
            "write a share of one in a job file: `gpu: {count: 1, share: {memory: 8GiB}}`",
        ),
    }
}

/// A script with the variables of jobc.
fn variables(text: &str) -> String {
    let mut out = text.replace("${{", "${{ '${{' }}");
    for (theirs, ours) in [
        ("SKYPILOT_NODE_RANK", "JOBC_INDEX"),
        ("SKYPILOT_NUM_NODES", "JOBC_INSTANCES"),
        ("SKYPILOT_NUM_GPUS_PER_NODE", "JOBC_GPUS"),
        ("SKYPILOT_TASK_ID", "JOBC_JOB"),
    ] {
        out = out.replace(theirs, ours);
    }
    // Lines there, commas here.
    let hosts = "$(tr , '\\n' <<< \"$JOBC_HOSTS_MAIN\")";
    for form in ["\"$SKYPILOT_NODE_IPS\"", "\"${SKYPILOT_NODE_IPS}\""] {
        out = out.replace(form, &format!("\"{hosts}\""));
    }
    for form in ["${SKYPILOT_NODE_IPS}", "$SKYPILOT_NODE_IPS"] {
        out = out.replace(form, hosts);
    }
    out
}
