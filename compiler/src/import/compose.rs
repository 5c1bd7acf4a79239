//! Compose files: each service becomes a role.
//!
//! One file is read, as `docker compose` reads it alone: anchors, merge keys and `extends` within it are merged, `.env` and
//! `env_file` are read, and services with a profile are left out.

mod keys;
mod names;
mod project;
mod service;
mod text;

use crate::diagnostic::{Sink, codes};
use crate::document::{Document, Entry, Node, Value};
use crate::files::Files;
use crate::openpai::{MAX_JOB_NAME, MAX_ROLE_NAME, converted};
use crate::source::Sources;

use super::container::select_mounts;
use super::draft::Draft;
use super::nodes::string;
use super::read::{Comments, Read, comment_lines};
use names::Names;
use project::Project;
use text::Variables;

pub(super) use keys::KEYS;

/// Findings of the parser about what Compose allows.
const ALLOWED: [crate::diagnostic::Code; 5] =
    [codes::MERGE, codes::TAG, codes::MISREAD, codes::LEADING_ZERO, codes::EXPRESSION_IN_FLOW];

/// Whether a document is a Compose file: a map of services with keys of Compose.
pub(super) fn is_compose(root: &Node) -> bool {
    let services = root.get("services").map_or(&[][..], Node::entries);
    let is_service = |service: &Entry| {
        let entries = service.value.entries();
        !entries.is_empty() && entries.iter().any(|entry| KEYS.iter().any(|key| key.long == entry.key))
    };
    root.get("roles").is_none() && !services.is_empty() && services.iter().any(is_service)
}

/// Reads a Compose file.
pub(super) fn read(document: &Document, sources: &Sources, files: &dyn Files, sink: &mut Sink) -> Read {
    sink.retain(|found| !ALLOWED.contains(&found.code));
    let errors = sink.error_count();
    let root = &document.root;
    let first = root.entries().first().map_or(root.span, |entry| entry.key_span);
    let mut draft = Draft::new(first, sink);
    let path = sources.get(root.span.source).path().to_owned();
    let directory = path.parent().and_then(camino::Utf8Path::file_name);
    let variables = Variables::read(files);
    let name = root.get("name").and_then(Node::as_str).map(str::to_owned);
    let name = name.map(|name| variables.interpolate(&name, first, &mut draft));
    let ours = name.as_deref().or(directory).and_then(|name| converted(name, MAX_JOB_NAME, false));
    draft.set(&["name"], first, string(first, ours.unwrap_or("app".to_owned())));
    top_level(root, &mut draft);

    let services = root.get("services").map_or(&[][..], Node::entries);
    let merged: Vec<(&Entry, Vec<Entry>)> =
        services.iter().map(|service| (service, extended(service, services, sources, &mut draft))).collect();
    let has_profile = |entries: &[Entry]| {
        entries.iter().any(|entry| entry.key == "profiles" && !entry.value.items().is_empty())
    };
    let all = merged.iter().all(|(_, entries)| has_profile(entries));
    let (chosen, left): (Vec<_>, Vec<_>) =
        merged.into_iter().partition(|(_, entries)| all || !has_profile(entries));
    for (service, _) in &left {
        draft.note(service.key_span, "the service has a profile, and starts only if that is asked for");
    }
    let project = Project {
        root,
        files,
        variables,
        names: Names::new(&chosen),
        awaited: names::awaited(&chosen),
        is_single: chosen.len() == 1,
    };
    let mut mounts = Vec::new();
    for (service, entries) in &chosen {
        let Some(role) = converted(&service.key, MAX_ROLE_NAME, true) else {
            draft.invalid(service.key_span, format!("`{}` has no letter or digit of ASCII", service.key), "");
            continue;
        };
        if draft.get(&["roles", &role]).is_some() {
            draft.invalid(
                service.key_span,
                format!("two services get the name `{role}`"),
                "give one of them another name",
            );
            continue;
        }
        draft.field(&["roles", &role], service.key_span, super::nodes::map(service.key_span, vec![]));
        let mounted = service::read(service, entries, &role, &project, &mut draft);
        let mounted = mounted.into_iter().map(|name| (name, None)).collect();
        mounts.push((role, service.key_span, mounted));
    }
    if chosen.len() > 1 && draft.get(&["network"]).is_none() {
        draft.set(&["network"], first, string(first, "job"));
        select_mounts(&mounts, &mut draft);
    }
    let has_errors = draft.sink.error_count() > errors;
    let comments = comment_lines(document, sources.get(root.span.source));
    let (document, targets, account) = draft.finish();
    let comments: Comments = comments;
    Read { document: (!has_errors).then_some(document), targets, account, comments }
}

/// Accounts for the keys beside `services`.
fn top_level(root: &Node, draft: &mut Draft<'_>) {
    for entry in root.entries() {
        match entry.key.as_str() {
            "services" => draft.account.field(entry.key_span, "roles"),
            "name" => draft.account.field(entry.key_span, "name"),
            "version" => draft.note(entry.key_span, "Compose itself ignores it"),
            "networks" => draft.note(entry.key_span, "a job has one network for all its roles"),
            "volumes" => draft.note(entry.key_span, "a named volume is a directory beside the job file"),
            "secrets" | "configs" => draft.note(entry.key_span, "read where services name them"),
            "include" => draft.refuse(
                entry.key_span,
                "the file includes others",
                "`docker compose config > compose.all.yaml` writes one file of all; import that",
            ),
            "models" => draft.refuse(
                entry.key_span,
                "models that Docker runs",
                "write a role that serves the model; `jobc std show vllm-serve` has one",
            ),
            key if key.starts_with("x-") => {
                draft.note(entry.key_span, "an extension; what it anchors is merged where it is used");
            }
            key => draft.invalid(entry.key_span, format!("unknown key `{key}` of a Compose file"), ""),
        }
    }
}

/// The keys of a service with those of the service that it extends, and without those that `!reset` removes.
fn extended(service: &Entry, services: &[Entry], sources: &Sources, draft: &mut Draft<'_>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = service.value.entries().to_vec();
    let mut seen = vec![service.key.clone()];
    let mut extends = entries.iter().find(|entry| entry.key == "extends").cloned();
    while let Some(entry) = extends.take() {
        let name = match &entry.value.value {
            Value::String(name) => Some(name.clone()),
            _ => entry.value.get("service").and_then(Node::as_str).map(str::to_owned),
        };
        let other = name.as_ref().and_then(|name| services.iter().find(|service| service.key == *name));
        match (other, name) {
            _ if entry.value.get("file").is_some() => draft.refuse(
                entry.key_span,
                "the service extends one of another file",
                "`docker compose config > compose.all.yaml` writes one file of all; import that",
            ),
            (Some(_), Some(name)) if seen.contains(&name) => {
                draft.invalid(entry.key_span, format!("`{name}` extends itself"), "");
            }
            (Some(other), Some(name)) => {
                draft.account.field(entry.key_span, format!("roles.{}", service.key));
                seen.push(name);
                extends = other.value.entries().iter().find(|entry| entry.key == "extends").cloned();
                let base = other.value.entries().iter().filter(|entry| entry.key != "extends");
                entries = merge(base.cloned().collect(), entries);
            }
            (_, name) => {
                draft.invalid(entry.key_span, format!("unknown service `{}`", name.unwrap_or_default()), "");
            }
        }
    }
    let is_reset = |entry: &Entry| {
        let source = sources.get(entry.value.span.source);
        source.text()[..entry.value.span.start as usize].trim_end().ends_with("!reset")
    };
    let (reset, kept): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(is_reset);
    for entry in reset {
        draft.note(entry.key_span, "removed by `!reset`");
    }
    kept.into_iter().filter(|entry| entry.key != "extends").collect()
}

/// Merges maps as Compose does: maps deeply, lists one after the other; commands and checks are replaced.
fn merge(mut base: Vec<Entry>, over: Vec<Entry>) -> Vec<Entry> {
    for entry in over {
        let Some(at) = base.iter().position(|known| known.key == entry.key) else {
            base.push(entry);
            continue;
        };
        let replaced = ["command", "entrypoint", "test", "image", "extends"].contains(&entry.key.as_str());
        base[at].key_span = entry.key_span;
        match (&mut base[at].value.value, entry.value.value) {
            (Value::Mapping(own), Value::Mapping(other)) => {
                let merged = merge(std::mem::take(own), other);
                base[at].value.value = Value::Mapping(merged);
            }
            (Value::Sequence(own), Value::Sequence(other)) if !replaced => {
                let other: Vec<Node> = other
                    .into_iter()
                    .filter(|item| !own.iter().any(|known| known.to_json() == item.to_json()))
                    .collect();
                own.extend(other);
            }
            (_, value) => base[at].value = Node { span: entry.value.span, value },
        }
    }
    base
}
