//! One service: each of its keys as a field, a note or a refusal.

mod before;
mod deploy;
mod dockerfile;
mod files;

use crate::document::{Entry, Node, Value};
use crate::openpai::{MAX_ROLE_NAME, converted};
use crate::source::Span;
use crate::suggest;

use super::super::container::{self, Role};
use super::super::draft::Draft;
use super::super::env_file;
use super::super::keyed::only;
use super::super::nodes::{number, sequence, string};
use super::super::options::Becomes;
use super::super::values::{is_empty, pairs, scalar, text_at, texts};
use super::super::words::{Piece, split_plain};
use super::keys::KEYS;
use super::project::Project;

/// Keys of a check.
const HEALTH: [&str; 7] =
    ["disable", "interval", "retries", "start_interval", "start_period", "test", "timeout"];

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
    fn resolved(&mut self, key: &str, text: &str, part: Span) -> String {
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
        let command = self.command.take();
        let image = entries.iter().find(|entry| entry.key == "image").and_then(|entry| scalar(&entry.value));
        let is_known = self.entrypoint.is_some();
        let dotted = std::mem::take(&mut self.dotted);
        for (name, value, part) in &dotted {
            if is_known {
                self.role.draft.account.field(*part, format!("roles.{}.run", self.role.name));
            } else if image.as_ref().is_some_and(|image| image.contains("elasticsearch")) {
                elastic(&mut self.role, name, value, *part);
            } else {
                container::variable(&mut self.role, name, Some(value), *part);
            }
        }
        match (self.entrypoint.take(), command) {
            (Some((mut words, part)), command) => {
                if !dotted.is_empty() {
                    // Shells pass no such variables on; the program `env` does.
                    let set = dotted.iter().map(|(name, value, at)| string(*at, format!("{name}={value}")));
                    words.splice(0..0, std::iter::once(string(part, "env")).chain(set));
                }
                if let Some((more, at)) = command {
                    self.role.draft.account.field(at, format!("roles.{}.run", self.role.name));
                    words.extend(more);
                }
                self.role.field(&["run"], part, sequence(part, words));
            }
            (None, Some((words, part))) => self.role.field(&["args"], part, sequence(part, words)),
            (None, None) => {}
        }
    }

    /// The words of `command` or `entrypoint`; none for one that resets it to that of the image.
    fn words(&mut self, key: &str, node: &Node, part: Span) -> Option<(Vec<Node>, Span)> {
        let words: Vec<Node> = if let Value::Sequence(items) = &node.value {
            let texts: Vec<(String, Span)> =
                items.iter().filter_map(|item| Some((scalar(item)?, item.span))).collect();
            texts.into_iter().map(|(text, at)| string(at, self.resolved(key, &text, at))).collect()
        } else {
            let text = scalar(node)?;
            let Ok(words) = split_plain(&text) else {
                self.role.draft.invalid(part, "the quote is not closed", "");
                return None;
            };
            let piece = |piece: Piece| match piece {
                Piece::Text(text) | Piece::Other(text) => text,
                Piece::Variable(name) => format!("${{{name}}}"),
            };
            let texts: Vec<String> =
                words.into_iter().map(|word| word.pieces.into_iter().map(piece).collect()).collect();
            texts.iter().map(|text| string(node.span, self.resolved(key, text, node.span))).collect()
        };
        if words.is_empty() {
            self.role.draft.note(part, "empty: the default of the image");
            return None;
        }
        Some((words, part))
    }

    fn environment(&mut self, node: &Node, part: Span) {
        let pairs = pairs(node);
        if pairs.is_empty() {
            return self.role.draft.note(part, "empty: the default");
        }
        for (name, value, part) in pairs {
            let value = value.map(|value| self.resolved(&name, &value, part));
            if let (true, Some(value)) = (is_dotted(&name), &value) {
                self.dotted.push((name, value.clone(), part));
                continue;
            }
            container::variable(&mut self.role, &name, value.as_deref(), part);
        }
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

    fn needs(&mut self, node: &Node, part: Span) {
        let named = |name: &str| converted(name, MAX_ROLE_NAME, true).unwrap_or_default();
        for entry in node.entries() {
            only(&entry.value, &["condition", "required", "restart"], "`depends_on`", self.role.draft);
        }
        let items = match &node.value {
            Value::Mapping(entries) => entries
                .iter()
                .map(|entry| {
                    (
                        entry.key.clone(),
                        text_at(&entry.value, "condition").unwrap_or("service_started".to_owned()),
                        entry.key_span,
                    )
                })
                .collect::<Vec<_>>(),
            _ => texts(node)
                .into_iter()
                .map(|(name, span)| (name, "service_started".to_owned(), span))
                .collect(),
        };
        if items.is_empty() {
            self.role.draft.note(part, "empty: the default");
        }
        for (name, condition, part) in items {
            let state = match condition.as_str() {
                "service_started" => "started",
                "service_healthy" => "ready",
                "service_completed_successfully" => "succeeded",
                _ => {
                    self.role.draft.invalid(part, format!("unknown condition `{condition}`"), "");
                    continue;
                }
            };
            if !self.project.names.has_service(&name) {
                self.role.draft.note(part, "the service is left out: it has a profile");
                continue;
            }
            let needed = named(&name);
            self.role.field(&["needs", &needed], part, string(part, state));
        }
    }

    fn health(&mut self, node: &Node, part: Span) {
        only(node, &HEALTH, "`healthcheck`", self.role.draft);
        let is_off = node.get("disable").is_some_and(|off| off.to_json() == true);
        let test = node.get("test");
        let words: Vec<(String, Span)> = test.map(texts).unwrap_or_default();
        let first = words.first().map(|(word, _)| word.as_str());
        let is_awaited = self.project.awaited.iter().any(|name| name == self.name);
        if is_off || first == Some("NONE") {
            return self.role.draft.note(part, "no check");
        }
        if !is_awaited {
            return self.role.draft.note(part, "no service waits for this one to be healthy");
        }
        let Some(test) = test else {
            return self.role.draft.refuse(
                part,
                "the check is that of the image",
                "write the command as `test`",
            );
        };
        let at = test.span;
        let list = match first {
            Some("CMD") => {
                words[1..].iter().map(|(word, at)| string(*at, self.resolved("test", word, *at))).collect()
            }
            Some("CMD-SHELL") => {
                let command = words.get(1).map(|(word, _)| word.clone()).unwrap_or_default();
                let command = self.resolved("test", &command, at);
                container::health_command(&command, at).items().to_vec()
            }
            _ => {
                let command = self.resolved("test", first.unwrap_or_default(), at);
                container::health_command(&command, at).items().to_vec()
            }
        };
        self.role.field(&["ready", "exec"], part, sequence(at, list));
        for entry in node.entries() {
            let (key, at) = (entry.key.as_str(), entry.key_span);
            let value = scalar(&entry.value).map(|value| self.text(&value, at)).unwrap_or_default();
            match key {
                "interval" => self.time(&["ready", "every"], &value, at),
                "timeout" => self.time(&["ready", "try_timeout"], &value, at),
                "start_period" => self.time(&["ready", "delay"], &value, at),
                "retries" => self.role.draft.note(at, "`ready` is tried until its `timeout`"),
                "start_interval" => self.role.draft.note(at, "`ready.every` is the time between all checks"),
                _ => {}
            }
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

    fn time(&mut self, path: &[&str], text: &str, part: Span) {
        match container::duration(text) {
            Some(time) => self.role.field(path, part, string(part, time)),
            None if text.contains("${{") => self.role.field(path, part, string(part, text)),
            None => self.role.draft.invalid(part, format!("`{text}` is not a time such as `30s`"), ""),
        }
    }
}

/// Whether a name is one that programs of Java read, and no shell passes on.
fn is_dotted(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    name.contains(['.', '-'])
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(is_part)
}

/// A setting of Elasticsearch, under the name that its image reads too.
fn elastic(role: &mut Role<'_, '_>, name: &str, value: &str, part: Span) {
    let name = name.replace('_', "__").replace('.', "_").to_ascii_uppercase();
    let name = format!("ES_SETTING_{name}");
    container::variable(role, &name, Some(value), part);
    role.draft.changed(
        part,
        format!("the setting becomes `{name}`: a job has no variables with `.` in their names"),
        "images of Elasticsearch 7.16 and later read it",
    );
}
