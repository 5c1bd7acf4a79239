//! Mounts of a container: directories of the host, named volumes, and memory.

use crate::document::{Node, Value};
use crate::openpai::converted;
use crate::source::Span;

use super::super::draft::Draft;
use super::super::nodes::{entry, map, sequence, string};
use super::super::paths::source;
use super::{bytes, param, size};

/// A mount.
#[derive(Debug, Default)]
pub(in super::super) struct Mount<'t> {
    /// A path of the host, or the name of a volume; absent for an anonymous volume.
    pub(in super::super) source: Option<&'t str>,
    /// The path in the container.
    pub(in super::super) target: &'t str,
    /// Whether the container cannot write to it.
    pub(in super::super) read_only: bool,
    /// Whether the source is the name of a volume.
    pub(in super::super) is_volume: bool,
}

/// `[SOURCE:]TARGET[:OPTIONS]`; returns the name of the entry of `data` or `outputs`.
pub(in super::super) fn volume(draft: &mut Draft<'_>, text: &str, part: Span) -> Option<String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (from, target, options) = match parts[..] {
        [target] => (None, target, ""),
        [from, target] => (Some(from), target, ""),
        [from, target, options] => (Some(from), target, options),
        _ => {
            draft.invalid(part, format!("`{text}` is not SOURCE:TARGET"), "");
            return None;
        }
    };
    let is_volume = from.is_some_and(|from| !from.starts_with(['/', '.', '~', '$', '`']));
    let mut read_only = false;
    for option in options.split(',').filter(|option| !option.is_empty()) {
        match option {
            "ro" => read_only = true,
            "rw" | "z" | "Z" | "cached" | "delegated" | "consistent" | "nocopy" | "rprivate" | "private" => {}
            _ => draft.changed(part, format!("the option `{option}` of a mount has no counterpart"), ""),
        }
    }
    mount(draft, &Mount { source: from, target, read_only, is_volume }, part)
}

/// Writes a mount, and returns the name of its entry.
pub(in super::super) fn mount(draft: &mut Draft<'_>, mount: &Mount<'_>, part: Span) -> Option<String> {
    let Mount { source: from, target, read_only, is_volume } = *mount;
    if !target.starts_with('/') && !target.starts_with("${{") {
        draft.invalid(part, format!("`{target}` is not an absolute path in the container"), "");
        return None;
    }
    let Some(from) = from else {
        draft.note(part, "an anonymous volume: each instance has its own files there already");
        return None;
    };
    if target == "/dev/shm" {
        draft.changed(
            part,
            "the memory of the host is mounted at /dev/shm",
            "write `resources: {shm: 8GiB}` in a job file",
        );
        return None;
    }
    let mut from = source(from);
    if let Some(rest) = from.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        from = param(draft, "HOME", None, part) + rest;
    }
    if from.contains(['$', '`']) && !from.contains("${{") {
        draft.refuse(part, format!("the path `{from}` is computed by the shell"), "write the path");
        return None;
    }
    let taken = |name: &str| draft.get(&["data", name]).or_else(|| draft.get(&["outputs", name])).is_some();
    let last = |path: &str| path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    let base = converted(&if is_volume { from.clone() } else { last(target) }, 28, true)
        .unwrap_or("files".to_owned());
    let mut name = base.clone();
    let mut number = 2;
    while taken(&name) {
        // Roles that mount the same directory at the same place share its entry.
        for section in ["data", "outputs"] {
            let is_same = draft.get(&[section, &name]).is_some_and(|entry| {
                let is = |key: &str, value: &str| entry.get(key).and_then(Node::as_str) == Some(value);
                let writable = entry.get("writable").is_some() || section == "outputs";
                is("mount", target)
                    && (is("source", &from) || is("source", &format!("./{from}")))
                    && writable != read_only
            });
            if is_same {
                draft.account.field(part, format!("{section}.{name}"));
                return Some(name);
            }
        }
        name = format!("{base}-{number}");
        number += 1;
    }
    let section = if is_volume { "outputs" } else { "data" };
    let path = if is_volume { format!("./{from}") } else { from };
    draft.set(&[section, &name, "source"], part, string(part, path));
    draft.set(&[section, &name, "mount"], part, string(part, target));
    if !read_only && !is_volume {
        draft.set(&[section, &name, "writable"], part, Node { span: part, value: Value::Bool(true) });
    }
    draft.account.field(part, format!("{section}.{name}"));
    Some(name)
}

/// A directory in memory, with its options.
pub(in super::super) fn tmpfs(
    draft: &mut Draft<'_>,
    target: &str,
    amount: Option<&str>,
    part: Span,
) -> String {
    let bytes = amount.and_then(bytes).filter(|bytes| *bytes > 0);
    if bytes.is_none() {
        draft.changed(
            part,
            format!("the directory `{target}` in memory has no size: it is one on disk"),
            "write a size, such as `size=1g`, for one in memory",
        );
    }
    let last = target.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let name = converted(last, 28, true).unwrap_or("memory".to_owned());
    let source = bytes.map_or("instance:".to_owned(), |bytes| format!("memory:{}", size(bytes)));
    draft.set(&["data", &name, "source"], part, string(part, source));
    draft.set(&["data", &name, "mount"], part, string(part, target));
    draft.set(&["data", &name, "writable"], part, Node { span: part, value: Value::Bool(true) });
    draft.account.field(part, format!("data.{name}"));
    name
}

/// An entry that a role mounts, with what differs in this role: `mount` or `subpath`.
pub(in super::super) type Mounted = (String, Vec<(&'static str, String, Span)>);

/// A role with its place, and the entries that it mounts.
pub(in super::super) type Mounts = (String, Span, Vec<Mounted>);

/// Names the entries that each role mounts, unless it mounts all as a whole.
pub(in super::super) fn select_mounts(mounts: &[Mounts], draft: &mut Draft<'_>) {
    for section in ["data", "outputs"] {
        let all: Vec<String> = draft
            .get(&[section])
            .map_or(&[][..], Node::entries)
            .iter()
            .map(|entry| entry.key.clone())
            .collect();
        for (role, span, mounted) in mounts {
            let of_role: Vec<&String> =
                all.iter().filter(|name| mounted.iter().any(|(of, _)| of == *name)).collect();
            let changes = |name: &String| {
                mounted.iter().find(|(of, _)| of == name).map_or(&[][..], |(_, changes)| changes.as_slice())
            };
            let is_whole = !of_role.iter().any(|name| !changes(name).is_empty());
            if of_role.len() == all.len() && is_whole {
                continue;
            }
            let value = if is_whole {
                sequence(*span, of_role.into_iter().map(|name| string(*span, name)).collect())
            } else {
                let change = |name: &String| {
                    let fields = changes(name).iter();
                    let fields = fields.map(|(key, text, at)| entry(*key, *at, string(*at, text))).collect();
                    entry(name, *span, map(*span, fields))
                };
                map(*span, of_role.into_iter().map(change).collect())
            };
            draft.set(&["roles", role, section], *span, value);
        }
    }
}
