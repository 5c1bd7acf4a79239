//! Data and outputs, and where each role mounts them.

use camino::Utf8Path;
use indexmap::IndexMap;
use jobc_schema::plan::{MountPlan, VolumeKind, VolumePlan, VolumeSource};
use jobc_schema::role::{Role, UseChange, Uses};
use jobc_schema::storage::Data;
use jobc_schema::{Job, Pointer};
use serde_json::json;

use super::code;
use super::context::Context;
use super::secrets;
use super::volume_source::read_source;
use crate::diagnostic::{Diagnostic, DocumentId, Location, Safety, Sink, codes};
use crate::suggest;

/// Directories of the system or jobc: nothing is mounted over them or, if the flag is set, below them.
const RESERVED: [(&str, bool); 5] =
    [("/", false), ("/proc", true), ("/sys", true), ("/dev", true), ("/etc/jobc", true)];

/// Where programs share memory (shm_overview(7)).
const SHM: &str = "/dev/shm";

/// The volumes of the job.
pub(super) fn resolve_volumes(context: &Context<'_>, sink: &mut Sink) -> IndexMap<String, VolumePlan> {
    let job = context.job;
    let mut volumes = IndexMap::new();
    for (name, data) in &job.data {
        let at = Pointer::ROOT.keys(["data", name]);
        let mut source = read(data.source.as_deref(), &at, sink);
        match &mut source {
            VolumeSource::Git { reference, .. } => reference.clone_from(&data.reference),
            _ if data.reference.is_some() => {
                refuse_option("ref", "a `git+https://` source", &at, data.source.is_some(), sink);
            }
            _ => {}
        }
        match &mut source {
            VolumeSource::Https { unpack, .. } => *unpack = data.unpack,
            _ if data.unpack => {
                refuse_option("unpack", "an `https://` source", &at, data.source.is_some(), sink);
            }
            _ => {}
        }
        if matches!(
            source,
            VolumeSource::Job { .. } | VolumeSource::Instance { .. } | VolumeSource::Memory { .. }
        ) {
            if data.secret.is_some() {
                refuse_option("secret", "a source that somebody guards", &at, true, sink);
            }
            check_job_volume(context, name, data, &at, sink);
        }
        // Programs of several roles meet there; anything else would only hide it.
        let is_shm = tidy(&data.mount) == SHM && matches!(source, VolumeSource::Job { in_memory: true });
        if !is_shm {
            check_mount(&data.mount, &at.key("mount"), sink);
        }
        if let Some(secret) = &data.secret {
            secrets::check_secret(context, secret, &at.key("secret"), sink);
        }
        let (secret, options) = (data.secret.clone(), data.options.clone());
        volumes.insert(name.clone(), VolumePlan { kind: VolumeKind::Data, source, secret, options });
    }
    for (name, output) in &job.outputs {
        let at = Pointer::ROOT.keys(["outputs", name]);
        let source = read(output.source.as_deref(), &at, sink);
        if matches!(source, VolumeSource::Https { .. } | VolumeSource::Git { .. }) {
            sink.push(
                Diagnostic::error(
                    codes::VOLUME_SOURCE,
                    format!("the output `{name}` cannot be written to this source"),
                )
                .at(&at.key("source"), "can only be read")
                .note("write a path, `nfs://HOST/PATH`, `s3://BUCKET/PATH` or `pvc:NAME`"),
            );
        }
        let other = match source {
            VolumeSource::Job { .. } => Some("files that one role hands to another"),
            VolumeSource::Instance { .. } | VolumeSource::Memory { .. } => {
                Some("files of each instance alone")
            }
            _ => None,
        };
        if let Some(other) = other {
            let moved = json!({ "source": output.source, "mount": output.mount, "writable": true });
            sink.push(
                Diagnostic::error(
                    codes::JOB_VOLUME,
                    format!("the output `{name}` would be removed when the job ends"),
                )
                .at(&at.key("source"), "lives no longer than the job")
                .note(format!(
                    "name a path to keep it; for {other} write it under `data` with `writable: true`"
                ))
                .move_entry(
                    DocumentId::Job,
                    &at,
                    &Pointer::ROOT.keys(["data", name]),
                    Some(moved),
                ),
            );
        }
        check_mount(&output.mount, &at.key("mount"), sink);
        if let Some(secret) = &output.secret {
            secrets::check_secret(context, secret, &at.key("secret"), sink);
        }
        let (secret, options) = (output.secret.clone(), output.options.clone());
        volumes.insert(name.clone(), VolumePlan { kind: VolumeKind::Output, source, secret, options });
    }
    volumes
}

/// Reports a directory of the job or of an instance that is initially empty and read-only for every role that sees it.
fn check_job_volume(context: &Context<'_>, name: &str, data: &Data, at: &Pointer, sink: &mut Sink) {
    let seen = context.job.roles.values().filter_map(|role| match &role.data {
        None => Some(data.writable),
        Some(Uses::Names(names)) => names.iter().any(|known| known == name).then_some(data.writable),
        Some(Uses::Changes(changes)) => {
            changes.get(name).map(|change| change.writable.unwrap_or(data.writable))
        }
    });
    let seen: Vec<bool> = seen.collect();
    if !seen.is_empty() && !seen.contains(&true) {
        sink.push(
            Diagnostic::error(
                codes::JOB_VOLUME,
                format!("no role can write to `{name}`, which is empty when the job starts"),
            )
            .at(&at.key("source"), "lives no longer than the job")
            .note("write `writable: true` next to it, or for the role that writes it")
            .set(&at.key("writable"), true),
        );
    }
}

fn read(source: Option<&str>, at: &Pointer, sink: &mut Sink) -> VolumeSource {
    let Some(text) = source else { return VolumeSource::Target {} };
    read_source(text).unwrap_or_else(|error| {
        let at = at.key("source");
        let found = Diagnostic::error(codes::VOLUME_SOURCE, error.message).at(&at, "");
        sink.push(match error.instead {
            // In quotes: YAML would read `job:` as a key.
            Some(source) => {
                let (what, quoted) =
                    (format!("write `{source}`"), serde_json::Value::from(source).to_string());
                found.fix(what, Location::value(&at), quoted, Safety::Unsafe)
            }
            None => found.note(error.note),
        });
        VolumeSource::Target {}
    })
}

fn refuse_option(key: &str, fits: &str, at: &Pointer, has_source: bool, sink: &mut Sink) {
    let mut diagnostic =
        Diagnostic::error(codes::VOLUME_OPTION, format!("`{key}` is for {fits}")).at_key(&at.key(key), "");
    if has_source {
        diagnostic = diagnostic.at(&at.key("source"), "this is another");
    }
    sink.push(diagnostic.note(format!("remove `{key}`, or change the source")));
}

/// The volumes that a role sees: all of the job's unless it lists some.
pub(super) fn resolve_mounts(
    context: &Context<'_>,
    name: &str,
    role: &Role,
    sink: &mut Sink,
) -> Vec<MountPlan> {
    let job = context.job;
    let at = Pointer::ROOT.keys(["roles", name]);
    let mut mounts: Vec<(MountPlan, Pointer)> = Vec::new();
    let data = job.data.iter().map(|(name, data)| (name.as_str(), data.mount.as_str(), data.writable));
    pick(role.data.as_ref(), "data", data, &at, &mut mounts, sink);
    let outputs =
        job.outputs.iter().map(|(name, output)| (name.as_str(), output.mount.as_str(), output.writable));
    pick(role.outputs.as_ref(), "outputs", outputs, &at, &mut mounts, sink);
    mounts.extend(code::mount(context, name, role));
    for (mount, place) in &mounts {
        check_subpath(job, mount, place, sink);
    }
    let mut seen: IndexMap<&str, &Pointer> = IndexMap::new();
    for (mount, place) in &mounts {
        if let Some(other) = seen.get(mount.path.as_str()) {
            let diagnostic =
                Diagnostic::error(codes::VOLUME_MOUNT, format!("two volumes are mounted at `{}` in `{name}`", mount.path))
                    .at(place, "the second")
                    .at(other, "the first")
                    .note("give one of them another `mount`, or list the ones the role needs under its `data` and `outputs`");
            // Next to the other one, with its own name as the directory.
            let beside =
                Utf8Path::new(&mount.path).parent().unwrap_or(Utf8Path::new("/")).join(&mount.volume);
            let free = !mounts.iter().any(|(other, _)| other.path == beside.as_str());
            let named = place.last().is_some_and(|last| last == "mount") && free;
            sink.push(if named { diagnostic.set(place, beside.as_str()) } else { diagnostic });
        } else {
            seen.insert(&mount.path, place);
        }
    }
    mounts.into_iter().map(|(mount, _)| mount).collect()
}

fn pick<'a>(
    uses: Option<&Uses>,
    key: &str,
    all: impl Iterator<Item = (&'a str, &'a str, bool)> + Clone,
    at: &Pointer,
    mounts: &mut Vec<(MountPlan, Pointer)>,
    sink: &mut Sink,
) {
    let none = UseChange::default();
    let wanted: Vec<(&str, &UseChange, Pointer)> = match uses {
        None => {
            mounts.extend(all.map(|(name, path, writable)| {
                let mount = MountPlan { volume: name.to_owned(), path: tidy(path), writable, subpath: None };
                (mount, Pointer::ROOT.keys([key, name, "mount"]))
            }));
            return;
        }
        Some(Uses::Names(names)) => {
            let at = at.key(key);
            names.iter().enumerate().map(|(number, name)| (name.as_str(), &none, at.index(number))).collect()
        }
        Some(Uses::Changes(changes)) => {
            let at = at.key(key);
            changes.iter().map(|(name, change)| (name.as_str(), change, at.key(name))).collect()
        }
    };
    let mut taken: Vec<&str> = Vec::new();
    for (name, change, place) in wanted {
        let Some((_, path, writable)) = all.clone().find(|(known, ..)| *known == name) else {
            let names = || all.clone().map(|(name, ..)| name);
            let diagnostic =
                Diagnostic::error(codes::VOLUME_UNKNOWN, format!("the job's `{key}` has no `{name}`"));
            let near = suggest::nearest(name, names()).or_else(|| suggest::similar(name, names()));
            sink.push(match near {
                Some(near) => diagnostic.meant_key(&place, near),
                None => diagnostic.at_key(&place, "").note(format!("known: {}", suggest::list(names()))),
            });
            continue;
        };
        if taken.contains(&name) {
            continue;
        }
        taken.push(name);
        let path = match &change.mount {
            Some(path) => {
                check_mount(path, &place.key("mount"), sink);
                path
            }
            None => path,
        };
        let writable = change.writable.unwrap_or(writable);
        let subpath = change.subpath.as_ref().map(|path| tidy_subpath(path));
        let mount = MountPlan { volume: name.to_owned(), path: tidy(path), writable, subpath };
        mounts.push((mount, place));
    }
}

/// Reports a directory in a volume that is not below it.
fn check_subpath(job: &Job, mount: &MountPlan, place: &Pointer, sink: &mut Sink) {
    let Some(subpath) = &mount.subpath else { return };
    let at = place.key("subpath");
    let is_file = job.data.get(&mount.volume).is_some_and(|data| {
        !data.unpack && data.source.as_ref().is_some_and(|source| source.starts_with("https://"))
    });
    let of_instance = job
        .data
        .get(&mount.volume)
        .and_then(|data| data.source.as_ref())
        .is_some_and(|source| source.starts_with("instance:") || source.starts_with("memory:"));
    let (what, note) = match () {
        () if of_instance => (
            format!("`{}` is a directory of each instance already", mount.volume),
            "leave `subpath` out".to_owned(),
        ),
        () if is_file => (
            format!("`{}` is a file, which has no directories", mount.volume),
            "write `unpack: true` where it is an archive, or leave `subpath` out".to_owned(),
        ),
        () if subpath.starts_with('/') => (
            "the `subpath` is absolute".to_owned(),
            format!("it is a directory in `{}`: leave out the `/` at its beginning", mount.volume),
        ),
        () if subpath.split('/').any(|part| part == "..") => (
            format!("the `subpath` leaves `{}`", mount.volume),
            "write the path below the source, without `..`".to_owned(),
        ),
        () if subpath.is_empty() => (
            format!("the `subpath` is all of `{}`", mount.volume),
            "leave it out to mount all of it".to_owned(),
        ),
        () => return,
    };
    let diagnostic = Diagnostic::error(codes::SUBPATH, what).at(&at, "").note(note);
    let leaves = subpath.starts_with("../");
    // A part of the text, which may contain expressions.
    sink.push(match (is_file || of_instance, leaves) {
        (true, _) => diagnostic.remove(&at),
        (false, true) => diagnostic.reword(&at, "../", ""),
        (false, false) => diagnostic,
    });
}

/// A path in a volume without doubled or trailing slashes and without `.`; invalid parts are kept.
fn tidy_subpath(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

/// Reports a path in the instance that is not absolute, leaves its directory, or covers a system directory.
pub(super) fn check_mount(path: &str, at: &Pointer, sink: &mut Sink) {
    let tidy = tidy(path);
    let problem = if !path.starts_with('/') {
        Some(("is not absolute", format!("write `/{}`", path.trim_start_matches("./"))))
    } else if tidy.split('/').any(|part| part == "..") {
        Some(("holds `..`", "write the path it leads to".to_owned()))
    } else {
        RESERVED
            .iter()
            .find(|(reserved, below)| {
                tidy == *reserved
                    || (*below && tidy.strip_prefix(reserved).is_some_and(|rest| rest.starts_with('/')))
            })
            .map(|(reserved, _)| {
                let note = match *reserved {
                    "/" => "it would hide the whole image; write a directory such as `/data`".to_owned(),
                    "/etc/jobc" => "jobc uses this directory; write another one".to_owned(),
                    "/dev" if tidy == SHM => {
                        "write `resources: {shm: 8GiB}` for the size of /dev/shm, or `source: \"job:memory\"` for one that the roles of a host share".to_owned()
                    }
                    _ => "it belongs to the system; write a directory such as `/data`".to_owned(),
                };
                ("cannot be covered", note)
            })
    };
    if let Some((what, note)) = problem {
        sink.push(Diagnostic::error(codes::VOLUME_MOUNT, format!("`{path}` {what}")).at(at, "").note(note));
    }
}

/// The path without doubled or trailing slashes and without `.`, so that equal places are equal texts.
pub(super) fn tidy(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    format!("/{}", parts.join("/"))
}
