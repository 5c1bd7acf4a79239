//! Development containers (`devcontainer.json`): one role, which stays until it is stopped.

use serde_json::json;

use crate::diagnostic::Sink;
use crate::document::{Document, Entry, Node, Value};
use crate::source::Sources;

use super::account::VALUE;
use super::container::{self, Mount, Role};
use super::draft::Draft;
use super::keyed::{each, key, name_job};
use super::nodes::{json, string};
use super::options::Becomes::{Field, Note, Refusal};
use super::options::CommandOption;
use super::read::{Read, comment_lines};
use super::values::{pairs, scalar, text_at, texts};

const ROLE: &str = "main";
const EDITOR: &str = "a setting of the editor";
const LATER: &str = "a command of the editor: `jobc exec` starts one in the task";

/// The keys, by name.
pub(super) static KEYS: &[CommandOption] = &[
    key("$schema", Note(EDITOR)),
    key("appPort", Field("`resources.ports`, with `publish: host`")),
    key("build", Field("`image: {dockerfile, context, target, args}`")),
    key("capAdd", Field("`security.capabilities.add`")),
    key("containerEnv", Field("`env`")),
    key("containerUser", Field("`user`")),
    key("context", Field("`image.context`")),
    key("customizations", Note(EDITOR)),
    key(
        "dockerComposeFile",
        Refusal("the services are in a Compose file", "import that file: `jobc import compose.yaml`"),
    ),
    key("dockerFile", Field("`image.dockerfile`")),
    key("extensions", Note(EDITOR)),
    key("features", Field("nothing, with a warning: features are not installed")),
    key("forwardPorts", Field("`resources.ports`, with `publish: host`")),
    key("hostRequirements", Field("`resources`")),
    key("image", Field("`image`")),
    key("init", Note("the default")),
    key("initializeCommand", Note("a command of the host")),
    key("mounts", Field("`data`; named volumes `outputs`")),
    key("name", Field("`name`")),
    key("onCreateCommand", Field("`setup`")),
    key("otherPortsAttributes", Note(EDITOR)),
    key("overrideCommand", Note("the job stays until it is stopped")),
    key("portsAttributes", Note(EDITOR)),
    key("postAttachCommand", Note(LATER)),
    key("postCreateCommand", Field("`setup`")),
    key("postStartCommand", Note(LATER)),
    key("privileged", Field("`security.privileged`")),
    key("remoteEnv", Field("`env`")),
    key("remoteUser", Field("`user`")),
    key(
        "runArgs",
        Field("`resources` for `--gpus`, `--shm-size`, `--memory` and `--cpus`; others are a warning"),
    ),
    key("runServices", Note("services of the Compose file")),
    key("secrets", Note("texts of the editor, which asks for values; write them as `secrets`")),
    key("securityOpt", Field("nothing: the profiles are those of jobc")),
    key("service", Note("a service of the Compose file")),
    key("settings", Note(EDITOR)),
    key("shutdownAction", Note("`jobc stop` ends the job")),
    key("updateContentCommand", Field("`setup`")),
    key("updateRemoteUserUID", Note("files in mounted directories belong to the caller")),
    key("userEnvProbe", Note(EDITOR)),
    key("waitFor", Note(EDITOR)),
    key("workspaceFolder", Field("`workdir`, where the directory of the file is mounted")),
    key("workspaceMount", Note("the directory of the file is mounted at `workspaceFolder`")),
];

/// Whether it is a development container: JSON with an image, and only keys that it has.
pub(super) fn is_container(root: &Node) -> bool {
    let has = |key: &str| root.get(key).is_some();
    let is_json = |entry: &Entry| entry.key_span.range().len() > entry.key.len();
    let is_known = |entry: &Entry| is_json(entry) && KEYS.iter().any(|key| key.long == entry.key);
    let of_editor = [
        "containerEnv",
        "customizations",
        "features",
        "forwardPorts",
        "hostRequirements",
        "onCreateCommand",
        "postCreateCommand",
        "remoteUser",
        "runArgs",
        "workspaceFolder",
    ];
    let has_image = ["build", "dockerFile", "image"].iter().any(|key| has(key));
    has("dockerComposeFile")
        || has_image && (of_editor.iter().any(|key| has(key)) || root.entries().iter().all(is_known))
}

/// Reads a development container.
pub(super) fn read(document: &Document, sources: &Sources, sink: &mut Sink) -> Read {
    let errors = sink.error_count();
    let root = &document.root;
    let first = root.entries().first().map_or(root.span, |entry| entry.key_span);
    let mut draft = Draft::new(first, sink);
    name_job(root, first, "dev", &mut draft);
    let directory = text_at(root, "workspaceFolder").unwrap_or("/workspace".to_owned());
    let directory = directory.replace("${localWorkspaceFolderBasename}", "workspace");
    // The file is in `.devcontainer`, below the directory that it is about.
    let above = sources.get(root.span.source).path().parent().and_then(camino::Utf8Path::file_name);
    let project = if above == Some(".devcontainer") { ".." } else { "." };
    draft.set(
        &["data", "workspace"],
        first,
        json(first, &json!({"source": project, "mount": directory, "writable": true})),
    );
    draft.set(&["roles", ROLE, "workdir"], first, string(first, &directory));
    each(root.entries(), KEYS, "a development container", &mut draft, |entry, draft| {
        field(entry, &directory, draft);
    });
    draft.set(&["roles", ROLE, "run"], first, string(first, "sleep infinity"));
    draft.changed(
        first,
        "a development container has no command: the job stays until `jobc stop`",
        "`jobc exec -it TASK bash` gives a shell in it; write the command of the job as `run`",
    );
    let has_errors = draft.sink.error_count() > errors;
    let comments = vec![(root.span.source, comment_lines(document, sources.get(root.span.source)))];
    let (document, targets, account) = draft.finish();
    Read { document: (!has_errors).then_some(document), targets, account, comments }
}

fn field(entry: &Entry, directory: &str, draft: &mut Draft<'_>) {
    let (node, part) = (&entry.value, entry.key_span);
    let text = scalar(node).unwrap_or_default();
    let local = |text: &str| {
        let text =
            text.replace("${localWorkspaceFolder}", ".").replace("${containerWorkspaceFolder}", directory);
        text.replace("${localEnv:HOME}", "~")
    };
    let mut role = Role { draft, name: ROLE };
    match entry.key.as_str() {
        "name" => role.draft.account.field(part, "name"),
        "workspaceFolder" => role.draft.account.field(part, format!("roles.{ROLE}.workdir")),
        "image" => role.draft.field(&["image"], part, string(part, text)),
        "build" => {
            let of = |key: &str| text_at(node, key);
            let file = of("dockerfile").or_else(|| of("dockerFile")).unwrap_or("Dockerfile".to_owned());
            let mut image = json!({ "dockerfile": file });
            for key in ["context", "target"] {
                if let Some(value) = of(key).filter(|value| value != ".") {
                    image[key] = json!(value);
                }
            }
            if let Some(entry) = node.entries().iter().find(|entry| entry.key == "options") {
                let message = "options of `docker build` are not read";
                role.draft.changed(entry.key_span, message, "`target` and `args` of `build` are");
            }
            for (name, value, _) in node.get("args").map(pairs).unwrap_or_default() {
                image["args"][&name] = json!(value);
            }
            role.draft.field(&["image"], part, json(part, &image));
        }
        "dockerFile" => role.draft.field(&["image", "dockerfile"], part, string(part, text)),
        "context" => role.draft.field(&["image", "context"], part, string(part, text)),
        "containerEnv" | "remoteEnv" => {
            for (name, value, at) in pairs(node) {
                let value = value.map(|value| local(&value)).unwrap_or_default();
                match value.strip_prefix("${localEnv:").and_then(|rest| rest.strip_suffix('}')) {
                    Some(variable) if variable == name => container::variable(&mut role, &name, None, at),
                    _ if value.contains("${") => role.draft.changed(
                        at,
                        format!("`{value}` has a variable of the editor: the job lacks `{name}`"),
                        "write its value as `env`",
                    ),
                    _ => container::variable(&mut role, &name, Some(&value), at),
                }
            }
        }
        "containerUser" | "remoteUser" => role.field(&["user"], part, string(part, text)),
        "privileged" => role.field(&["security", "privileged"], part, node.clone()),
        "capAdd" => {
            for (name, at) in &texts(node) {
                container::capability(&mut role, "add", name, *at);
            }
        }
        "securityOpt" => texts(node).iter().for_each(|(text, at)| container::security(&mut role, text, *at)),
        "features" => role.draft.changed(
            part,
            "features are not installed",
            "write what they install as `image: {from: …, steps: […]}`, or name an image that has it",
        ),
        "appPort" | "forwardPorts" => {
            for (port, at) in texts(node) {
                container::port(&mut role, port.rsplit(':').next().unwrap_or(&port), at);
            }
        }
        "onCreateCommand" | "updateContentCommand" | "postCreateCommand" => {
            let commands: Vec<String> = match &node.value {
                Value::Mapping(entries) => entries.iter().filter_map(|entry| command(&entry.value)).collect(),
                _ => command(node).into_iter().collect(),
            };
            let before = role.get(&["setup"]).and_then(Node::as_str).map(|text| text.trim_end().to_owned());
            let all = before
                .into_iter()
                .chain(commands.iter().map(|text| local(text)))
                .collect::<Vec<_>>()
                .join("\n");
            let all = if all.contains('\n') { all + "\n" } else { all };
            role.field(&["setup"], part, string(part, all));
        }
        "mounts" => {
            for item in node.items() {
                let fields = match scalar(item) {
                    Some(text) => text
                        .split(',')
                        .map(|field| {
                            let (key, value) = field.split_once('=').unwrap_or((field, "true"));
                            (key.to_owned(), local(value))
                        })
                        .collect::<Vec<_>>(),
                    None => pairs(item)
                        .into_iter()
                        .map(|(key, value, _)| (key, local(&value.unwrap_or_default())))
                        .collect(),
                };
                let of = |keys: &[&str]| {
                    fields
                        .iter()
                        .find(|(key, _)| keys.contains(&key.as_str()))
                        .map(|(_, value)| value.as_str())
                };
                let mount = Mount {
                    source: of(&["source", "src"]),
                    target: of(&["target", "dst", "destination"]).unwrap_or_default(),
                    read_only: of(&["readonly", "ro"]).is_some_and(|value| value != "false"),
                    is_volume: of(&["type"]) == Some("volume"),
                };
                container::mount(role.draft, &mount, item.span);
            }
        }
        "hostRequirements" => {
            for entry in node.entries() {
                let (at, text) = (entry.key_span, scalar(&entry.value).unwrap_or_default());
                match entry.key.as_str() {
                    "cpus" => container::cpus(&mut role, &text, at),
                    "memory" => container::limit(&mut role, "memory", &text, at),
                    "storage" => container::limit(&mut role, "disk", &text, at),
                    "gpu" if text == "false" => role.draft.note(at, "the default"),
                    "gpu" => role.field(&["resources", "gpu"], at, json(at, &json!(1))),
                    key => role.draft.invalid(at, format!("unknown key `{key}` of `hostRequirements`"), ""),
                }
            }
        }
        _ => run_arguments(&texts(node), &mut role),
    }
}

/// A command as a text, or as a list of words.
fn command(node: &Node) -> Option<String> {
    match &node.value {
        Value::Sequence(_) => {
            let words = texts(node);
            Some(jobc_schema::shell::join(words.iter().map(|(word, _)| word.as_str())))
        }
        _ => scalar(node),
    }
}

/// Options of `docker run`, of which those about resources are read.
fn run_arguments(words: &[(String, crate::source::Span)], role: &mut Role<'_, '_>) {
    let mut words = words.iter().peekable();
    while let Some((word, at)) = words.next() {
        let (name, given) =
            word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        let is_known = ["--gpus", "--shm-size", "--memory", "-m", "--cpus"].contains(&name);
        let value = given.map_or_else(
            || {
                let value = words.next_if(|(value, _)| is_known || !value.starts_with('-'));
                if let Some((_, at)) = value {
                    role.draft.note(*at, VALUE);
                }
                value.map(|(value, _)| value.clone()).unwrap_or_default()
            },
            str::to_owned,
        );
        match name {
            "--gpus" => container::gpus(role, &value, *at),
            "--shm-size" => container::limit(role, "shm", &value, *at),
            "--memory" | "-m" => container::limit(role, "memory", &value, *at),
            "--cpus" => container::cpus(role, &value, *at),
            "--rm" | "--init" | "--name" | "-it" => role.draft.note(*at, "not needed"),
            _ => role.draft.changed(
                *at,
                format!("the option `{name}` of `docker run` is not read here"),
                "`jobc import --list docker-run` says what it becomes in a job file",
            ),
        }
    }
}
