//! Compose files: each service becomes a role.
//!
//! The files of a project are read as `docker compose` reads them: override files, `include`, `extends`, anchors and merge
//! keys are merged, `.env` and `env_file` are read, and services with a profile start only if that is named.

mod keys;
mod load;
mod merge;
mod names;
mod paths;
mod project;
mod service;
mod text;

use crate::diagnostic::{Sink, codes};
use crate::document::{Document, Entry, Node};
use crate::files::Files;
use crate::openpai::{MAX_JOB_NAME, MAX_ROLE_NAME, converted};
use crate::source::Sources;
use crate::suggest;

use super::container::select_mounts;
use super::draft::Draft;
use super::keyed::only;
use super::nodes::string;
use super::read::{Read, comment_lines};
use super::selection::Selection;
use super::values::{is_empty, text_at, texts};
use load::Loader;
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
pub(super) fn read(
    document: &Document,
    sources: &mut Sources,
    files: &dyn Files,
    selection: &Selection,
    sink: &mut Sink,
) -> Read {
    sink.retain(|found| !ALLOWED.contains(&found.code));
    let errors = sink.error_count();
    let first = document.root.entries().first().map_or(document.root.span, |entry| entry.key_span);
    let mut draft = Draft::new(first, sink);
    draft.is_sketch = selection.is_sketch;
    let main = document.root.span.source;
    let path = sources.get(main).path().to_owned();
    let directory =
        path.parent().and_then(camino::Utf8Path::file_name).map(str::to_owned).or_else(|| files.name());
    let mut variables = Variables::read(files);
    let loader = Loader::new(&document.root, sources, files, &mut variables, &mut draft);
    let (root, others) = loader.project(&document.root, selection);
    let root = &root;
    draft.sink.retain(|found| !ALLOWED.contains(&found.code));
    let name = root.get("name").and_then(Node::as_str).map(str::to_owned);
    let name = name.map(|name| variables.interpolate(&name, first, &mut draft));
    let ours = name.or(directory).and_then(|name| converted(&name, MAX_JOB_NAME, false));
    draft.set(&["name"], first, string(first, ours.unwrap_or("app".to_owned())));
    top_level(root, &mut draft);

    let services = root.get("services").map_or(&[][..], Node::entries);
    let chosen = chosen(services, &profiles(selection, &variables), &mut draft);
    let project = Project {
        root,
        files,
        variables,
        names: Names::new(&chosen),
        awaited: names::awaited(&chosen),
        is_single: chosen.len() == 1,
    };
    let mut mounts = Vec::new();
    for &(service, entries) in &chosen {
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
        let mounted = mounted.into_iter().map(|name| (name, vec![])).collect();
        mounts.push((role, service.key_span, mounted));
    }
    if chosen.len() > 1 && draft.get(&["network"]).is_none() {
        draft.set(&["network"], first, string(first, "job"));
        select_mounts(&mounts, &mut draft);
    }
    let has_errors = draft.sink.error_count() > errors;
    let mut comments = vec![(main, comment_lines(document, sources.get(main)))];
    comments.extend(others.iter().map(|(id, other)| (*id, comment_lines(other, sources.get(*id)))));
    let (document, targets, account) = draft.finish();
    Read { document: (!has_errors).then_some(document), targets, account, comments }
}

/// The profiles that are named: by the user, else in `.env`.
fn profiles(selection: &Selection, variables: &Variables) -> Vec<String> {
    if !selection.profiles.is_empty() {
        return selection.profiles.clone();
    }
    let names = variables.get("COMPOSE_PROFILES").unwrap_or_default();
    names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The services that start, each with its keys: those without a profile, and those with one that is named. Where all have
/// one and none is named, all start.
fn chosen<'s>(
    services: &'s [Entry],
    named: &[String],
    draft: &mut Draft<'_>,
) -> Vec<(&'s Entry, &'s [Entry])> {
    let profiles = |service: &Entry| service.value.get("profiles").map(texts).unwrap_or_default();
    for name in named.iter().filter(|name| *name != "*") {
        let of_all: Vec<String> =
            services.iter().flat_map(|service| profiles(service).into_iter().map(|(text, _)| text)).collect();
        if let (false, Some(service)) = (of_all.contains(name), services.first()) {
            let known = of_all.iter().map(String::as_str);
            let near = suggest::nearest(name, known).map(|near| format!("; did you mean `{near}`?"));
            let message = format!("no service has the profile `{name}`{}", near.unwrap_or_default());
            draft.invalid(service.key_span, message, "");
        }
    }
    let is_named = |service: &Entry| {
        let own = profiles(service);
        own.is_empty() || own.iter().any(|(own, _)| named.iter().any(|name| name == own || name == "*"))
    };
    let all = named.is_empty() && services.iter().all(|service| !profiles(service).is_empty());
    let (chosen, left): (Vec<&Entry>, Vec<&Entry>) =
        services.iter().partition(|service| all || is_named(service));
    for service in left {
        let own = profiles(service).into_iter().next().map(|(name, _)| name).unwrap_or_default();
        let why = format!("the service has a profile: `--profile {own}` brings it into the job");
        draft.note(service.key_span, why);
    }
    chosen.into_iter().map(|service| (service, service.value.entries())).collect()
}

/// Keys of a secret or a configuration.
const FILES: [&str; 8] =
    ["content", "driver", "driver_opts", "environment", "external", "file", "labels", "name"];

/// Named volumes: each is a directory beside the job file, also one that a driver makes or that is there before.
fn volumes(entry: &Entry, draft: &mut Draft<'_>) {
    draft.note(entry.key_span, "a named volume is a directory beside the job file");
    for volume in entry.value.entries() {
        only(&volume.value, &["driver", "driver_opts", "external", "labels", "name"], "a volume", draft);
        let is = |key: &str| {
            volume.value.get(key).is_some_and(|value| !is_empty(value) && value.to_json() != false)
        };
        if is("driver_opts")
            || is("external")
            || text_at(&volume.value, "driver").is_some_and(|driver| driver != "local")
        {
            draft.changed(
                volume.key_span,
                format!("the volume `{}` of the engine is a directory beside the job file", volume.key),
                "write where its files are as `source`: a path, or `nfs://SERVER/PATH`",
            );
        }
    }
}

/// Accounts for the keys beside `services`.
fn top_level(root: &Node, draft: &mut Draft<'_>) {
    for entry in root.entries() {
        match entry.key.as_str() {
            "services" => draft.account.field(entry.key_span, "roles"),
            "name" => draft.account.field(entry.key_span, "name"),
            "version" => draft.note(entry.key_span, "Compose itself ignores it"),
            "networks" => draft.note(entry.key_span, "a job has one network for all its roles"),
            "volumes" => volumes(entry, draft),
            "secrets" | "configs" => {
                draft.note(entry.key_span, "read where services name them");
                for file in entry.value.entries() {
                    only(&file.value, &FILES, &format!("`{}`", entry.key), draft);
                }
            }
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
