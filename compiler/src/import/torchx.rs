//! Applications of TorchX as JSON (`AppDef`): its roles are roles.

use crate::diagnostic::Sink;
use crate::document::{Document, Entry, Node, Value};
use crate::openpai::{MAX_ROLE_NAME, converted};
use crate::source::Sources;

use super::container::{self, Mount, Role};
use super::draft::Draft;
use super::keyed::{each, key, name_job};
use super::nodes::{map, number, sequence, string};
use super::options::Becomes::{Field, Note, Refusal};
use super::options::CommandOption;
use super::read::{Read, comment_lines};
use super::values::{pairs, scalar, text_at, texts};

const OF_SCHEDULER: &str = "a setting of one scheduler of TorchX";

/// The keys of a role, by name.
pub(super) static KEYS: &[CommandOption] = &[
    key("args", Field("`args`, or the end of `run` beside `entrypoint`")),
    key("base_image", Note("the image that a patch was made on")),
    key("entrypoint", Field("`run`")),
    key("env", Field("`env`")),
    key("image", Field("`image`")),
    key("max_retries", Field("`retry.max`")),
    key("metadata", Note(OF_SCHEDULER)),
    key("min_replicas", Refusal("a job that grows and shrinks", "write the number of instances")),
    key("mounts", Field("`data`; named volumes `outputs`")),
    key("name", Field("the name of the role")),
    key("num_replicas", Field("`instances`")),
    key("overrides", Note(OF_SCHEDULER)),
    key("port_map", Field("`resources.ports`")),
    key("resource", Field("`resources`")),
    key("retry_policy", Note("`retry` starts the instance, the role or the job again: `retry.scope`")),
    key("workspace", Note("`code` of a job file brings a directory along")),
];

/// Whether it is an application: a list of roles with the keys of TorchX.
pub(super) fn is_app(root: &Node) -> bool {
    let is_role = |role: &Node| role.get("image").is_some() && role.get("entrypoint").is_some();
    root.get("roles").is_some_and(|roles| !roles.items().is_empty() && roles.items().iter().all(is_role))
}

/// Reads an application.
pub(super) fn read(document: &Document, sources: &Sources, sink: &mut Sink) -> Read {
    let errors = sink.error_count();
    let root = &document.root;
    let first = root.entries().first().map_or(root.span, |entry| entry.key_span);
    let mut draft = Draft::new(first, sink);
    name_job(root, first, "app", &mut draft);
    for entry in root.entries() {
        match entry.key.as_str() {
            "name" => draft.account.field(entry.key_span, "name"),
            "roles" => draft.account.field(entry.key_span, "roles"),
            "metadata" => draft.note(entry.key_span, OF_SCHEDULER),
            key => {
                draft.invalid(entry.key_span, format!("unknown key `{key}` of an application of TorchX"), "");
            }
        }
    }
    let roles = root.get("roles").map_or(&[][..], Node::items);
    for node in roles {
        let own = text_at(node, "name").unwrap_or("main".to_owned());
        let Some(name) = converted(&own, MAX_ROLE_NAME, true) else {
            draft.invalid(node.span, format!("`{own}` has no letter or digit of ASCII"), "");
            continue;
        };
        if draft.get(&["roles", &name]).is_some() {
            draft.invalid(node.span, format!("two roles get the name `{name}`"), "");
            continue;
        }
        draft.set(&["roles", &name], node.span, map(node.span, vec![]));
        each(node.entries(), KEYS, "a role of TorchX", &mut draft, |entry, draft| {
            field(entry, &name, roles.len() == 1, draft);
        });
        let words = ["entrypoint", "args"].map(|key| node.get(key).map(texts).unwrap_or_default());
        let words = words.concat().into_iter().map(|(text, at)| string(at, macros(&text, &mut draft, at)));
        let words: Vec<Node> = words.collect();
        draft.set(&["roles", &name, "run"], node.span, sequence(node.span, words));
    }
    if roles.len() > 1 {
        draft.set(&["network"], first, string(first, "job"));
    }
    let has_errors = draft.sink.error_count() > errors;
    let comments = vec![(root.span.source, comment_lines(document, sources.get(root.span.source)))];
    let (document, targets, account) = draft.finish();
    Read { document: (!has_errors).then_some(document), targets, account, comments }
}

fn field(entry: &Entry, name: &str, is_single: bool, draft: &mut Draft<'_>) {
    let (node, part) = (&entry.value, entry.key_span);
    let text = scalar(node).unwrap_or_default();
    let count = || text.parse::<u64>().unwrap_or(0);
    let mut role = Role { draft, name };
    match entry.key.as_str() {
        "name" => role.draft.account.field(part, format!("roles.{name}")),
        "entrypoint" | "args" => role.draft.account.field(part, format!("roles.{name}.run")),
        "image" if is_single => role.draft.field(&["image"], part, string(part, text)),
        "image" => role.field(&["image"], part, string(part, text)),
        "num_replicas" if count() == 1 => role.draft.note(part, "the default"),
        "num_replicas" => role.field(&["instances"], part, number(part, count())),
        "max_retries" if count() == 0 => role.draft.note(part, "the default"),
        "max_retries" => role.field(&["retry", "max"], part, number(part, count())),
        "env" => {
            for (key, value, at) in pairs(node) {
                let value = value.map(|value| macros(&value, role.draft, at));
                container::variable(&mut role, &key, value.as_deref(), at);
            }
        }
        "port_map" => {
            for (port, value, at) in pairs(node) {
                let value = value.and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
                let label = converted(&port, 15, true).unwrap_or("port".to_owned());
                role.field(&["resources", "ports", &label], at, number(at, value));
            }
        }
        "mounts" => {
            for item in node.items() {
                let of = |key: &str| text_at(item, key);
                let source = of("src").or_else(|| of("source"));
                let target = of("dst_path").or_else(|| of("target")).unwrap_or_default();
                let read_only = item.get("read_only").is_some_and(|flag| flag.to_json() == true);
                let is_volume = source.as_deref().is_some_and(|source| !source.starts_with(['/', '.', '~']));
                let mount = Mount { source: source.as_deref(), target: &target, read_only, is_volume };
                container::mount(role.draft, &mount, item.span);
            }
        }
        _ => {
            for entry in node.entries() {
                let at = entry.key_span;
                let text = scalar(&entry.value).unwrap_or_default();
                match entry.key.as_str() {
                    _ if text == "-1" || text == "0" => role.draft.note(at, "none"),
                    "cpu" => container::cpus(&mut role, &text, at),
                    "gpu" => container::limit_count(&mut role, "gpu", &text, at),
                    "memMB" => container::limit(&mut role, "memory", &format!("{text}m"), at),
                    "capabilities" | "tags" | "devices" if matches!(&entry.value.value, Value::Mapping(entries) if entries.is_empty()) =>
                    {
                        role.draft.note(at, "empty: the default");
                    }
                    "devices" => {
                        role.draft.refuse(
                            at,
                            "devices of one scheduler",
                            "write `resources: {devices: […]}`",
                        );
                    }
                    _ => role.draft.note(at, OF_SCHEDULER),
                }
            }
        }
    }
}

/// A text with what TorchX puts in at the start.
fn macros(text: &str, draft: &mut Draft<'_>, part: crate::source::Span) -> String {
    if text.contains("${replica_id}") || text.contains("${rank0_env}") {
        draft.refuse(
            part,
            "TorchX puts in the number of the replica or the host of the first one",
            "write `$JOBC_INDEX` and `$JOBC_HOSTS_<ROLE>` in a script, or `distributed`, which tells frameworks both",
        );
    }
    let name = draft.get(&["name"]).and_then(Node::as_str).unwrap_or_default().to_owned();
    text.replace("${img_root}", "").replace("${app_id}", &name).replace("${{", "${{ '${{' }}")
}
