//! One service: each of its keys as a field, a note or a refusal.

mod before;
mod checks;
mod deploy;
mod dockerfile;
mod files;
mod program;

use crate::document::{Entry, Node, Value};
use crate::source::Span;
use crate::suggest;

use super::super::container::{self, Role};
use super::super::draft::Draft;
use super::super::env_file;
use super::super::keyed::only;
use super::super::nodes::{number, string};
use super::super::options::Becomes;
use super::super::values::{is_empty, scalar, text_at, texts};
use super::keys::KEYS;
use super::project::Project;

/// A service that is being read.
pub(super) struct Service<'r, 'd, 's> {
    pub(super) role: Role<'d, 's>,
    pub(super) project: &'r Project<'r>,
    name: &'r str,
    /// The names of `data` and `outputs` that it mounts.
    mounted: Vec<String>,
    /// Variables whose names no shell accepts.
    dotted: Vec<(String, String, Span)>,
    entrypoint: Option<(Vec<Node>, Span)>,
    command: Option<(Vec<Node>, Span)>,
}

/// Reads a service, and returns the names of `data` and `outputs` that it mounts.
pub(super) fn read(
    service: &Entry,
    entries: &[Entry],
    role: &str,
    project: &Project<'_>,
    draft: &mut Draft<'_>,
) -> Vec<String> {
    let role = Role { draft, name: role };
    let mut reader = Service {
        role,
        project,
        name: &service.key,
        mounted: vec![],
        dotted: vec![],
        entrypoint: None,
        command: None,
    };
    for entry in entries {
        let part = entry.key_span;
        let Some(option) = KEYS.iter().find(|option| option.long == entry.key) else {
            if entry.key.starts_with("x-") {
                reader.role.draft.note(part, "an extension");
                continue;
            }
            let near = suggest::nearest(&entry.key, KEYS.iter().map(|option| option.long));
            reader.role.draft.unknown(part, format!("unknown key `{}` of a service", entry.key), near);
            continue;
        };
        match option.becomes {
            Becomes::Note(why) => reader.role.draft.note(part, why),
            _ if is_empty(&entry.value) && entry.key != "command" && entry.key != "entrypoint" => {
                reader.role.draft.note(part, "empty: the default");
            }
            Becomes::Refusal(what, instead) => reader.role.draft.refuse(part, what, instead),
            _ => reader.field(entry),
        }
        // An alias: its value stands where the anchor is.
        if entry.value.span.source == part.source && entry.value.span.start < part.start {
            let role = &mut reader.role;
            role.draft.account.field(part, format!("roles.{}", role.name));
        }
    }
    reader.finish(service, entries);
    reader.check_setup(entries);
    reader.mounted
}

impl Service<'_, '_, '_> {
    /// A text with its variables as parameters, and the names of services as hosts.
    pub(super) fn resolved(&mut self, key: &str, text: &str, part: Span) -> String {
        let text = self.project.variables.interpolate(text, part, self.role.draft);
        self.project.names.rewrite(key, &text)
    }

    /// A text with its variables as parameters.
    pub(super) fn text(&mut self, text: &str, part: Span) -> String {
        self.project.variables.interpolate(text, part, self.role.draft)
    }

    fn field(&mut self, entry: &Entry) {
        let (node, part) = (&entry.value, entry.key_span);
        let text = scalar(node).map(|text| self.text(&text, part)).unwrap_or_default();
        let role = &mut self.role;
        match entry.key.as_str() {
            "build" => self.build(node, part),
            "cap_add" => {
                for (name, part) in &texts(node) {
                    container::capability(role, "add", name, *part);
                }
            }
            "cap_drop" => {
                for (name, part) in &texts(node) {
                    container::capability(role, "drop", name, *part);
                }
            }
            "command" => self.command = self.words("command", node, part),
            "entrypoint" => self.entrypoint = self.words("entrypoint", node, part),
            "configs" => self.files(node, "configs", part),
            "secrets" => self.files(node, "secrets", part),
            "cpuset" => container::cpuset(role, &text, part),
            "pid" => role.draft.changed(
                part,
                "the program does not see processes of others",
                "`jobc top` and `jobc stats` measure the tasks of a job",
            ),
            "cpu_count" | "cpus" => container::cpus(role, &text, part),
            "depends_on" => self.needs(node, part),
            "deploy" => self.deploy(node),
            "devices" => {
                for (device, part) in texts(node) {
                    let device = self.text(&device, part);
                    container::device(&mut self.role, &device, part);
                }
            }
            "dns" => texts(node)
                .into_iter()
                .for_each(|(text, part)| role.draft.push(&["dns", "servers"], part, string(part, text))),
            "dns_opt" => texts(node)
                .into_iter()
                .for_each(|(text, part)| role.draft.push(&["dns", "options"], part, string(part, text))),
            "dns_search" => texts(node)
                .into_iter()
                .for_each(|(text, part)| role.draft.push(&["dns", "search"], part, string(part, text))),
            "env_file" => self.env_files(node),
            "environment" => self.environment(node, part),
            "external_links" => {
                let instead = "write their addresses as `extra_hosts`";
                role.draft.changed(part, "the containers of other projects are not part of the job", instead);
            }
            "extra_hosts" => match &node.value {
                Value::Mapping(entries) => entries.iter().for_each(|entry| {
                    let line = format!("{}={}", entry.key, scalar(&entry.value).unwrap_or_default());
                    container::extra_host(role.draft, &line, entry.key_span);
                }),
                _ => {
                    for (text, part) in &texts(node) {
                        container::extra_host(role.draft, text, *part);
                    }
                }
            },
            "gpus" if node.items().is_empty() => container::gpus(role, &text, part),
            "gpus" => node.items().iter().for_each(|item| self.device(item)),
            "group_add" if role.get(&["resources", "gpu", "vendor"]).is_some() => {
                role.draft.note(part, "comes with the GPUs");
            }
            "group_add" => {
                let groups: Vec<String> = texts(node).into_iter().map(|(group, _)| group).collect();
                let message = format!("the process is not in the group `{}`", groups.join("`, `"));
                role.draft.changed(part, message, "write `user: USER:GROUP` if it needs one");
            }
            "healthcheck" => self.health(node, part),
            "image" => {
                let path: &[&str] =
                    if self.project.is_single { &["image"] } else { &["roles", self.role.name, "image"] };
                self.role.draft.field(path, part, string(part, text));
            }
            "ipc" if text == "host" => role.draft.changed(
                part,
                "the memory of the host is not shared",
                "write the size that the program needs, such as `shm_size: 8g`",
            ),
            "ipc" if text.starts_with("service:") => role.draft.refuse(
                part,
                "memory that two services share",
                "write `data` with `source: job:memory`, mounted at /dev/shm by both roles",
            ),
            "ipc" => role.draft.note(part, "a job's shared memory is its own"),
            "mem_limit" => container::limit(role, "memory", &text, part),
            "network_mode" => container::network(role.draft, &text, part),
            "networks" => role.draft.note(part, "a job has one network for all its roles"),
            "pids_limit" if text == "-1" => role.draft.note(part, "no limit"),
            "pids_limit" => container::limit_count(role, "pids", &text, part),
            "ports" => self.ports(node),
            "pre_start" => self.before(node),
            "privileged" => role.field(&["security", "privileged"], part, node.clone()),
            "profiles" => role.draft.note(part, "the service is one of those that start"),
            "read_only" => role.field(&["security", "read_only_root"], part, node.clone()),
            "restart" => container::restart(role.draft, &["roles", role.name, "retry"], &text, part),
            "runtime" if text == "nvidia" && role.get(&["resources", "gpu"]).is_none() => {
                container::visible_devices(role, "all", part);
            }
            "runtime" => role.draft.note(part, "jobc has a runtime of its own"),
            "scale" => self.instances(&text, part),
            "security_opt" => {
                for (text, part) in &texts(node) {
                    container::security(role, text, *part);
                }
            }
            "shm_size" => container::limit(role, "shm", &text, part),
            "stop_grace_period" => self.time(&["grace_period"], &text, part),
            "stop_signal" => role.field(&["stop_signal"], part, string(part, text)),
            "sysctls" => {
                role.draft.changed(part, "settings of the kernel are not made", "set them on the host");
            }
            "tmpfs" => {
                for (text, part) in texts(node) {
                    let (target, options) = text.split_once(':').unwrap_or((&text, ""));
                    let size = options.split(',').find_map(|option| option.strip_prefix("size="));
                    self.mounted.push(container::tmpfs(self.role.draft, target, size, part));
                }
            }
            "ulimits" => {
                for limit in node.entries() {
                    only(&limit.value, &["hard", "soft"], "a limit", self.role.draft);
                    let limits = scalar(&limit.value).unwrap_or_else(|| {
                        let of = |key: &str| text_at(&limit.value, key).unwrap_or_default();
                        format!("{}:{}", of("soft"), of("hard"))
                    });
                    container::ulimit(&mut self.role, &limit.key, &limits, limit.key_span);
                }
            }
            "user" => role.field(&["user"], part, string(part, text)),
            "volumes" => self.volumes(node),
            "working_dir" => role.field(&["workdir"], part, string(part, text)),
            _ => role.draft.note(part, "not needed"),
        }
    }

    /// Writes what several keys make together.
    fn finish(&mut self, service: &Entry, entries: &[Entry]) {
        let has = |key: &str| entries.iter().any(|entry| entry.key == key);
        if !has("image") && !has("build") {
            self.role.draft.invalid(
                service.key_span,
                format!("the service `{}` has neither `image` nor `build`", self.name),
                "a file that changes another is read with it: `jobc import -f compose.yaml -f compose.override.yaml`",
            );
        }
        self.program(entries);
    }

    fn env_files(&mut self, node: &Node) {
        let items = if node.items().is_empty() { std::slice::from_ref(node) } else { node.items() };
        for item in items {
            let path = scalar(item).or_else(|| text_at(item, "path")).unwrap_or_default();
            let path = self.text(&path, item.span);
            let is_optional = item.get("required").is_some_and(|required| required.to_json() == false);
            if is_optional && !self.project.files.exists(camino::Utf8Path::new(&path)) {
                self.role.draft.note(item.span, "the file is absent, and not required");
                continue;
            }
            env_file::read(&mut self.role, &path, item.span, self.project.files);
        }
    }

    pub(super) fn instances(&mut self, text: &str, part: Span) {
        match text.parse::<u64>() {
            Ok(1) => self.role.draft.note(part, "the default"),
            Ok(count) if count > 0 => self.role.field(&["instances"], part, number(part, count)),
            _ if text.contains("${{") => self.role.field(&["instances"], part, string(part, text)),
            _ => self.role.draft.invalid(part, format!("`{text}` is not a number of instances above 0"), ""),
        }
    }
}
