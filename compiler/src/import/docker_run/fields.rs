//! The options of a line that become fields.

use serde_json::json;

use crate::document::{Node, Value};
use crate::files::Files;
use crate::openpai::{MAX_JOB_NAME, converted};
use crate::source::Span;

use super::super::container::{self, Mount, Role};
use super::super::draft::Draft;
use super::super::env_file;
use super::super::nodes::{json, number, string};
use super::super::words::{Piece, Word};

/// What several options make together.
#[derive(Debug, Default)]
pub(super) struct RunOptions {
    /// `--entrypoint`.
    pub(super) entrypoint: Option<(String, Span)>,
}

/// The text of a word; variables of the shell become parameters, and `${{` of the text stays as it is.
pub(super) fn resolved(word: &Word, part: Span, draft: &mut Draft<'_>) -> Option<String> {
    text_of(word, false, part, draft)
}

/// As above; a path that begins in the current directory keeps `$PWD`.
fn text_of(word: &Word, has_path: bool, part: Span, draft: &mut Draft<'_>) -> Option<String> {
    let mut out = String::new();
    for piece in &word.pieces {
        let begins = has_path && (out.is_empty() || out.ends_with(['=', ',']));
        match piece {
            Piece::Text(text) => out.push_str(&text.replace("${{", "${{ '${{' }}")),
            // A path of the caller.
            Piece::Variable(name) if begins && name == "PWD" => {
                out.push_str("$PWD");
            }
            Piece::Other(text) if begins && (text == "$(pwd)" || text == "`pwd`") => out.push_str("$PWD"),
            Piece::Variable(name) if container::is_secret(name) && word.pieces.len() == 1 => {
                out.push_str(&container::secret(draft, name, part));
            }
            Piece::Variable(name) => out.push_str(&container::param(draft, name, None, part)),
            Piece::Other(text) => match text
                .strip_prefix("${")
                .and_then(|rest| rest.strip_suffix('}'))
                .and_then(|rest| rest.split_once('-'))
            {
                Some((name, default)) if !default.contains('$') && is_name(name.trim_end_matches(':')) => {
                    out.push_str(&container::param(draft, name.trim_end_matches(':'), Some(default), part));
                }
                _ => {
                    draft.refuse(part, format!("`{text}` is computed by the shell"), "write its value");
                    return None;
                }
            },
        }
    }
    Some(out)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl RunOptions {
    /// Takes an option that becomes a field.
    pub(super) fn take(
        &mut self,
        name: &str,
        value: &Word,
        part: Span,
        files: &dyn Files,
        role: &mut Role<'_, '_>,
    ) {
        if name == "env" {
            return environment(value, part, role);
        }
        if name == "user" && ["$(id", "UID"].iter().any(|mark| value.text().contains(mark)) {
            return role.draft.changed(part, "the user is that of the image, not the caller", "write the number: `user: 1000:1000`; files that an unprivileged `jobc run` writes belong to the caller");
        }
        let has_path = ["volume", "mount", "env-file"].contains(&name);
        let Some(text) = text_of(value, has_path, part, role.draft) else { return };
        let text = text.as_str();
        let lone = |role: &mut Role<'_, '_>, path: &[&str]| role.field(path, part, string(part, text));
        match name {
            "add-host" => container::extra_host(role.draft, text, part),
            "cap-add" => container::capability(role, "add", text, part),
            "cap-drop" => container::capability(role, "drop", text, part),
            "cpus" => container::cpus(role, text, part),
            "device" => container::device(role, text, part),
            "dns" => role.draft.push(&["dns", "servers"], part, string(part, text)),
            "dns-option" => role.draft.push(&["dns", "options"], part, string(part, text)),
            "dns-search" => role.draft.push(&["dns", "search"], part, string(part, text)),
            "entrypoint" if text.is_empty() => role.draft.refuse(
                part,
                "the entrypoint of the image is taken away",
                "write the program of the image behind it, as `run`",
            ),
            "entrypoint" => {
                role.draft.account.field(part, "roles.main.run");
                self.entrypoint = Some((text.to_owned(), part));
            }
            "env-file" => env_file::read(role, text, part, files),
            "gpus" => container::gpus(role, text, part),
            "group-add" if role.get(&["resources", "gpu", "vendor"]).is_some() => {
                role.draft.note(part, "comes with the GPUs");
            }
            "group-add" => {
                role.draft.refuse(part, "further groups of the process", "write `user: USER:GROUP`");
            }
            "health-cmd" => role.field(&["ready", "exec"], part, container::health_command(text, part)),
            "health-interval" => time(role, &["ready", "every"], text, part),
            "health-start-period" => time(role, &["ready", "delay"], text, part),
            "health-timeout" => time(role, &["ready", "try_timeout"], text, part),
            "hostname" => role.draft.changed(
                part,
                "an instance is called main-0, not by this name",
                "instances find each other by `${{ hosts.main[0] }}`",
            ),
            "ipc" if text == "host" => role.draft.changed(
                part,
                "the memory of the host is not shared",
                "write the size that the program needs, such as `shm: 8GiB`",
            ),
            "ipc" => role.draft.note(part, "a job's shared memory is its own"),
            "label" => {
                let (key, value) = text.split_once('=').unwrap_or((text, ""));
                role.field(&["labels", key], part, string(part, value));
            }
            "memory" => container::limit(role, "memory", text, part),
            "memory-swap" => {
                let same = role.get(&["resources", "memory"]).and_then(Node::as_str).map(str::to_owned);
                if same.is_some() && container::bytes(text).map(container::size) == same {
                    role.draft.note(part, "the default: a job has no swap");
                } else {
                    role.draft.refuse(part, "a job has no swap", "leave it out, or request more `memory`");
                }
            }
            "mount" => mount(role, text, part),
            "name" => match converted(text, MAX_JOB_NAME, false) {
                Some(name) => role.draft.field(&["name"], part, string(part, name)),
                None => role.draft.invalid(part, format!("`{text}` has no letter or digit of ASCII"), ""),
            },
            "network" => container::network(role.draft, text, part),
            "pids-limit" => match text.parse::<i64>() {
                Ok(limit) if limit > 0 => {
                    role.field(&["resources", "pids"], part, number(part, limit.unsigned_abs()));
                }
                Ok(_) => role.draft.note(part, "no limit"),
                Err(_) => role.draft.invalid(part, format!("`{text}` is not a number of processes"), ""),
            },
            "privileged" => role.field(&["security", "privileged"], part, flag(part)),
            "publish" => container::port(role, text, part),
            "read-only" => role.field(&["security", "read_only_root"], part, flag(part)),
            "restart" => container::restart(role.draft, &["retry"], text, part),
            "runtime" if text == "nvidia" && role.get(&["resources", "gpu"]).is_none() => {
                container::visible_devices(role, "all", part);
            }
            "runtime" => role.draft.note(part, "jobc has a runtime of its own"),
            "security-opt" => container::security(role, text, part),
            "shm-size" => container::limit(role, "shm", text, part),
            "stop-signal" => lone(role, &["stop_signal"]),
            "stop-timeout" => role.draft.field(&["grace_period"], part, string(part, format!("{text}s"))),
            "tmpfs" => {
                let (target, options) = text.split_once(':').unwrap_or((text, ""));
                let size = options.split(',').find_map(|option| option.strip_prefix("size="));
                container::tmpfs(role.draft, target, size, part);
            }
            "tz" => role.field(&["env", "TZ"], part, string(part, text)),
            "ulimit" => match text.split_once('=') {
                Some((name, limits)) => container::ulimit(role, name, limits, part),
                None => role.draft.invalid(part, format!("`{text}` is not NAME=LIMIT"), ""),
            },
            "user" => lone(role, &["user"]),
            "volume" => {
                container::volume(role.draft, text, part);
            }
            "workdir" => lone(role, &["workdir"]),
            _ => role.draft.note(part, "not needed"),
        }
    }
}

fn flag(part: Span) -> Node {
    Node { span: part, value: Value::Bool(true) }
}

fn time(role: &mut Role<'_, '_>, path: &[&str], text: &str, part: Span) {
    match container::duration(text) {
        Some(time) => role.field(path, part, json(part, &json!(time))),
        None => role.draft.invalid(part, format!("`{text}` is not a time such as `30s`"), ""),
    }
}

/// `NAME=VALUE`, `NAME`, or `NAME=$VARIABLE`.
fn environment(word: &Word, part: Span, role: &mut Role<'_, '_>) {
    let text = word.text();
    let Some((name, _)) = text.split_once('=') else { return container::variable(role, &text, None, part) };
    let name = name.to_owned();
    let value = word.after(name.len() + 1);
    // `-e TOKEN=$TOKEN` hands on a variable of the user.
    if let [Piece::Variable(variable)] = &value.pieces[..]
        && (container::is_secret(variable) || container::is_secret(&name))
    {
        let text = container::secret(role.draft, variable, part);
        return container::variable(role, &name, Some(&text), part);
    }
    let Some(value) = resolved(&value, part, role.draft) else { return };
    container::variable(role, &name, Some(&value), part);
}

/// `type=bind,source=…,target=…,readonly`.
fn mount(role: &mut Role<'_, '_>, text: &str, part: Span) {
    let (mut kind, mut size) = ("volume", None);
    let mut mount = Mount::default();
    for field in text.split(',') {
        let (key, value) = field.split_once('=').unwrap_or((field, "true"));
        match key {
            "type" => kind = value,
            "source" | "src" => mount.source = Some(value),
            "target" | "dst" | "destination" => mount.target = value,
            "readonly" | "ro" => mount.read_only = value != "false",
            "tmpfs-size" => size = Some(value),
            "bind-propagation" | "consistency" | "z" | "relabel" | "volume-nocopy" | "tmpfs-mode" => {}
            _ => role.draft.changed(part, format!("`{key}` of a mount has no counterpart"), ""),
        }
    }
    match kind {
        "bind" | "volume" => {
            mount.is_volume = kind == "volume";
            container::mount(role.draft, &mount, part);
        }
        "tmpfs" => {
            container::tmpfs(role.draft, mount.target, size, part);
        }
        _ => role.draft.refuse(
            part,
            format!("a mount of type `{kind}`"),
            "write a directory: `-v SOURCE:TARGET`",
        ),
    }
}
