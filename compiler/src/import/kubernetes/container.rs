//! The container of a pod: image, command, environment.

use jobc_schema::shell;

use crate::document::{Entry, Node};
use crate::source::Span;

use super::super::command::{Command, command};
use super::super::keyed::only;
use super::super::nodes::{sequence, string};
use super::super::values::{scalar, texts};
use super::context::{Use, expanded};
use super::env::Variables;
use super::kinds::Stands;
use super::reader::Pod;
use super::rows::{Fields, Row, changed, field, note, refused};
use super::{env, probes, resources, security, volumes};

const RECORDS: &str = "jobc keeps the output of each task: `jobc logs` prints it";
const TERMINAL: &str = "`jobc run -it` and `jobc exec -it` give a terminal";

/// The fields of a container.
pub(super) const CONTAINER: &[Row] = &[
    field("args", "`args`, or the end of `run` beside `command`"),
    field("command", "`run`; `bash -c SCRIPT` is a script with `shell`"),
    field("env", "`env`; keys of Secrets `secrets` with `store`, keys of ConfigMaps in the file their text"),
    field("envFrom", "`env`, for ConfigMaps and Secrets in the same file; others are an error"),
    field("image", "`image`"),
    note("imagePullPolicy", "`jobc image pull` and `jobc lock` decide which image is taken"),
    field("lifecycle.postStart", "`setup`, which runs before the program"),
    changed(
        "lifecycle.preStop",
        "no command is run before the end",
        "catch the signal in the program: `stop_signal`, `grace_period`",
    ),
    field("lifecycle.stopSignal", "`stop_signal`"),
    changed(
        "livenessProbe",
        "a task that hangs is not started again",
        "`timeout` of the role ends it, and `retry` starts it again",
    ),
    note("name", "an instance is called ROLE-INDEX"),
    field("ports", "`resources.ports`; those of operators and of Ray nothing"),
    field("readinessProbe", "`ready`"),
    note("resizePolicy", "the resources of a task are fixed"),
    field("resources", "`resources`"),
    note("restartPolicy", "`retry` starts a failed task again"),
    changed(
        "restartPolicyRules",
        "exit codes that the kubelet restarts at",
        "write `retry: {max: 3, on_exit_codes: […]}` of the role",
    ),
    field("securityContext", "`user`, `security`"),
    field("startupProbe", "`ready`"),
    note("stdin", TERMINAL),
    note("stdinOnce", TERMINAL),
    note("terminationMessagePath", RECORDS),
    note("terminationMessagePolicy", RECORDS),
    note("tty", TERMINAL),
    refused("volumeDevices", "a block device", "write a directory: `volumeMounts`"),
    field("volumeMounts", "`data` and `outputs`; memory at /dev/shm is `resources.shm`"),
    field("workingDir", "`workdir`"),
];

/// A container that is being read.
pub(super) struct Container<'p, 'c, 'd, 's> {
    /// Its pod.
    pub(super) pod: &'p mut Pod<'c, 'd, 's>,
    /// Its fields.
    pub(super) node: &'p Node,
    /// The variables that it sets.
    variables: Variables,
}

impl<'p, 'c, 'd, 's> Container<'p, 'c, 'd, 's> {
    /// Reads a container.
    pub(super) fn read(pod: &'p mut Pod<'c, 'd, 's>, node: &'p Node) {
        let mut entries: Vec<(&'static Row, Entry)> = Vec::new();
        let fields = Fields { of: "a container", tables: &[("", CONTAINER)], elsewhere: &[] };
        fields.read(node, pod.role.draft, &mut |_, row, entry| entries.push((row, entry.clone())));
        let variables = Variables::of(node, pod);
        let mut container = Container { pod, node, variables };
        // Mounts and probes read what resources and ports have written.
        let order = |row: &Row| match row.path {
            "resources" | "ports" => 0,
            "readinessProbe" => 2,
            _ => 1,
        };
        entries.sort_by_key(|(row, _)| order(row));
        let words =
            |name: &str| entries.iter().find(|(row, _)| row.path == name).map(|(_, entry)| entry.clone());
        let (program, arguments) = (words("command"), words("args"));
        container.program(program.as_ref(), arguments.as_ref());
        for (row, entry) in &entries {
            container.field(row.path, entry);
        }
        if node.get("image").is_none() {
            let at = node.entries().first().map_or(node.span, |entry| entry.key_span);
            let draft = &mut *container.pod.role.draft;
            if container.pod.context.kind.name == "TrainJob" {
                let image = super::super::container::param(draft, "IMAGE", None, at);
                draft.set(&["image"], at, string(at, image));
                draft.changed(
                    at,
                    "the image is that of the runtime (`runtimeRef`), which is not in the file: it is a parameter",
                    "set it by `--set IMAGE=…`, or add the runtime to the file (`kubectl get clustertrainingruntime NAME -o yaml`)",
                );
            } else {
                draft.invalid(at, "the container has no `image`", "write it");
            }
        }
    }

    fn field(&mut self, name: &str, entry: &Entry) {
        let (node, part) = (&entry.value, entry.key_span);
        let is_empty = node.to_scalar().is_none() && node.entries().is_empty() && node.items().is_empty();
        match name {
            "command" | "args" => {}
            _ if is_empty => self.pod.role.draft.note(part, "empty: the default"),
            "env" => env::read(self.pod, node, &self.variables),
            "envFrom" => env::read_from(self.pod, node),
            "image" => {
                let image = scalar(node).unwrap_or_default();
                let is_single = self.pod.context.is_single;
                let role = self.pod.role.name;
                let path: &[&str] = if is_single { &["image"] } else { &["roles", role, "image"] };
                self.pod.role.draft.field(path, part, string(node.span, image));
            }
            "lifecycle.postStart" => self.post_start(node, part),
            "lifecycle.stopSignal" => self.pod.role.field(&["stop_signal"], part, node.clone()),
            "ports" => probes::ports(self.pod, node),
            "readinessProbe" | "startupProbe" => probes::probe(self.pod, self.node, name, node, part),
            "resources" => resources::read(self.pod, node),
            "securityContext" => security::of_container(self.pod, node),
            "volumeMounts" => volumes::read(self.pod, node),
            _ => {
                let text = self.resolved(&scalar(node).unwrap_or_default(), Use::Word, part);
                self.pod.role.field(&["workdir"], part, string(node.span, text));
            }
        }
    }

    /// A command that runs when the container has started.
    fn post_start(&mut self, node: &Node, part: Span) {
        let words = node.get("exec").and_then(|exec| exec.get("command")).map(texts).unwrap_or_default();
        let words: Vec<String> = words.into_iter().map(|(word, _)| word).collect();
        only(node, &["exec", "httpGet", "sleep", "tcpSocket"], "`postStart`", self.pod.role.draft);
        if let Some(exec) = node.get("exec") {
            only(exec, &["command"], "`exec`", self.pod.role.draft);
        }
        // KubeRay starts Ray before the command of the head.
        let is_ray = self.pod.context.kind.name == "RayJob";
        if words.is_empty() || is_ray || self.pod.role.get(&["run"]).is_none() {
            return self.pod.role.draft.changed(
                part,
                "what follows the start of the container is left out",
                "write a command as `setup`, which runs before `run`",
            );
        }
        let text = match command(&words) {
            Command::Script(_, text) => text,
            Command::Words => shell::join(words.iter().map(String::as_str)),
        };
        let text = self.pod.context.text(text.trim_end(), Use::Script);
        let known = self.pod.role.get(&["setup"]).and_then(Node::as_str).unwrap_or_default().to_owned();
        self.pod.role.field(&["setup"], part, string(part, known + &text + "\n"));
    }

    /// A text with the variables that the kubelet expands, and names as jobc has them.
    fn resolved(&mut self, text: &str, of: Use, part: Span) -> String {
        for directory in ["/etc/volcano/", "/etc/mpi/"] {
            if text.contains(directory) {
                self.pod.role.draft.changed(
                    part,
                    format!("only the operator writes files to `{directory}`"),
                    "`$JOBC_HOSTS_<ROLE>` has the addresses of a role, `$JOBC_HOSTFILE` those for MPI",
                );
            }
        }
        match expanded(text, of, &|name| self.variables.get(name)) {
            Ok(text) => self.pod.context.text(&text, of),
            Err(name) => {
                self.pod.role.draft.refuse(
                    part,
                    format!("`$({name})` stands for a value that is known when the task runs"),
                    "write a script for a shell, which reads it as a variable",
                );
                text.to_owned()
            }
        }
    }

    /// `command` and `args`.
    fn program(&mut self, command_entry: Option<&Entry>, args: Option<&Entry>) {
        let of = |entry: Option<&Entry>| entry.map(|entry| texts(&entry.value)).unwrap_or_default();
        let (program, arguments) = (of(command_entry), of(args));
        let role = self.pod.role.name;
        for entry in command_entry.into_iter().chain(args) {
            if texts(&entry.value).is_empty() {
                self.pod.role.draft.note(entry.key_span, "empty: the default of the image");
            }
        }
        let part = self.pod.context.part(role);
        if part == Some("worker") && self.pod.context.kind.framework == Stands::Parts("mpi") {
            for entry in command_entry.into_iter().chain(args) {
                self.pod.role.draft.note(entry.key_span, "jobc starts sshd in the workers");
            }
            return;
        }
        let (Some(entry), true) = (command_entry, !program.is_empty()) else {
            if let (Some(entry), Some("launcher")) = (args, part) {
                self.pod.role.draft.changed(
                    entry.key_span,
                    "the command runs without the ENTRYPOINT of the image",
                    "jobc waits for the workers, and sets up ssh",
                );
                let words = self.words(&arguments);
                return self.pod.role.field(&["run"], entry.key_span, sequence(entry.value.span, words));
            }
            if let (Some(entry), false) = (args, arguments.is_empty()) {
                let words = self.words(&arguments);
                self.pod.role.field(&["args"], entry.key_span, sequence(entry.value.span, words));
            }
            return;
        };
        if let (Some(args), false) = (args, arguments.is_empty()) {
            self.pod.role.draft.account.field(args.key_span, format!("roles.{role}.run"));
        }
        let mut all: Vec<(String, Span)> = program.into_iter().chain(arguments).collect();
        // The script with which jobc sets up ssh before a program.
        let is_ssh = all.get(4).is_some_and(|(script, _)| script.starts_with("JOBC_SSH_PORT="));
        if is_ssh && all.len() > 6 {
            all.drain(..6);
        }
        let words: Vec<String> = all.iter().map(|(word, _)| word.clone()).collect();
        match command(&words) {
            Command::Script(shell, script) => {
                let at = all.last().map_or(entry.value.span, |(_, span)| *span);
                let text = self.resolved(&script, Use::Script, at);
                let words: Vec<&str> = shell.iter().map(String::as_str).collect();
                match words[..] {
                    ["bash" | "/bin/bash", "-euo", "pipefail", "-c"] => {}
                    ["sh" | "/bin/sh", "-eu", "-c"] => {
                        self.pod.role.draft.set(&["roles", role, "shell"], entry.key_span, string(at, "sh"));
                    }
                    _ => {
                        let items = words.iter().map(|word| string(entry.value.span, *word)).collect();
                        let shell = sequence(entry.value.span, items);
                        self.pod.role.draft.set(&["roles", role, "shell"], entry.key_span, shell);
                    }
                }
                self.pod.role.field(&["run"], entry.key_span, string(at, text));
            }
            Command::Words => {
                let items = self.words(&all);
                self.pod.role.field(&["run"], entry.key_span, sequence(entry.value.span, items));
            }
        }
    }

    fn words(&mut self, words: &[(String, Span)]) -> Vec<Node> {
        words.iter().map(|(word, at)| string(*at, self.resolved(word, Use::Word, *at))).collect()
    }
}
