//! A bundle that was written for root, as an unprivileged user can run it.
//!
//! The rights of root are had inside a user namespace only, so one is added. What the kernel refuses there is replaced
//! by the closest equivalent, and each change is recorded; no isolation is removed silently.

use std::path::PathBuf;

use oci_spec::runtime::{
    LinuxIdMapping, LinuxIdMappingBuilder, LinuxNamespace, LinuxNamespaceType, Mount, Spec,
};

use crate::nested::{Engine, Restrictions};
use crate::prepare::KEEP_GROUPS;
use jobc_sys::error::Result;
use jobc_sys::id_map::{IdMap, IdMaps};

/// Whom the user who starts a container is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Root: the files of an image belong to it.
    IsRoot,
    /// Themselves, with their groups, and the process is theirs: the files are those of the host.
    IsUnchanged,
    /// The user and group as whom the process runs, so that files which it writes to the host are theirs.
    IsUser(u32, u32),
}

impl Caller {
    /// The ids of the user namespace of a container that this process starts.
    ///
    /// # Errors
    ///
    /// Unusable entries in /etc/subuid and /etc/subgid.
    pub fn id_maps(self) -> Result<IdMaps> {
        self.id_maps_of(rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
    }

    fn id_maps_of(self, uid: u32, gid: u32) -> Result<IdMaps> {
        match self {
            Self::IsRoot => IdMaps::rootless(uid, gid),
            Self::IsUnchanged => IdMaps::rootless_unchanged(uid, gid),
            Self::IsUser(user, group) => IdMaps::rootless_as(uid, gid, (user, group)),
        }
    }
}

/// Changes a configuration so that this process can run it as `uid` and `gid`; returns the changes, a line each.
///
/// A configuration that names a user namespace is left as it is.
///
/// # Errors
///
/// Unusable entries in /etc/subuid and /etc/subgid, and a container around this process that allows none inside it.
pub fn adapt(spec: &mut Spec, uid: u32, gid: u32, caller: Caller) -> Result<Vec<String>> {
    adapt_within(spec, (uid, gid), caller, Restrictions::find()?, Engine::around)
}

fn adapt_within(
    spec: &mut Spec,
    (uid, gid): (u32, u32),
    caller: Caller,
    around: Restrictions,
    engine: impl FnOnce() -> Option<Engine>,
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    if caller == Caller::IsUnchanged {
        keep_caller(spec, uid, gid);
    } else if uid != 0 && !has_user_namespace(spec) {
        keep_groups(spec);
    }
    let Some(linux) = spec.linux_mut() else { return Ok(notes) };
    let namespaces = linux.namespaces_mut().get_or_insert_default();
    if namespaces.iter().any(|namespace| namespace.typ() == LinuxNamespaceType::User) {
        return Ok(notes);
    }
    let mut user = LinuxNamespace::default();
    user.set_typ(LinuxNamespaceType::User);
    namespaces.push(user);
    let new = |kind| namespaces.iter().any(|namespace| namespace.typ() == kind && namespace.path().is_none());
    let (network, pid) = (new(LinuxNamespaceType::Network), new(LinuxNamespaceType::Pid));
    let maps = caller.id_maps_of(uid, gid)?;
    notes.push(match (additional_ids(&maps), caller) {
        // Root of a container, who maps all ids.
        (users, Caller::IsRoot) if uid == 0 && users > 0 => {
            "the container has a user namespace with the same users".to_owned()
        }
        (users, Caller::IsRoot) => {
            format!("the container has a user namespace: its root is user {uid}, plus {users} more users")
        }
        (users, Caller::IsUser(user, _)) => {
            format!(
                "the container has a user namespace: its user {user} is user {uid}, plus {users} more users"
            )
        }
        (users, Caller::IsUnchanged) => {
            format!("the container has a user namespace: user {uid} is the same, plus {users} more users")
        }
    });
    let terminals = maps.groups.outside(TTY_GID).is_some();
    linux.set_uid_mappings(Some(mappings(&maps.users)));
    linux.set_gid_mappings(Some(mappings(&maps.groups)));
    for mount in spec.mounts_mut().iter_mut().flatten() {
        match mount.typ().as_deref() {
            // The kernel shows a sysfs to the owner of a network namespace only.
            Some("sysfs") if !network => {
                make_bind(mount, "/sys");
                notes.push("`/sys` is the host's, read-only, because the network is the host's".to_owned());
            }
            Some("sysfs") if around.no_sysfs => make_bind(mount, "/sys"),
            Some("proc") if !pid => {
                make_bind(mount, "/proc");
                notes.push("`/proc` is the host's, because the processes are the host's".to_owned());
            }
            // Each process finds itself there as `/proc/self`, and writes to its own files.
            Some("proc") if around.no_proc => {
                make_bind(mount, "/proc");
                mount.set_options(Some(["rbind", "nosuid", "noexec", "nodev"].map(str::to_owned).to_vec()));
            }
            Some("devpts") if !terminals => notes.extend(use_own_tty_group(mount)),
            _ => {}
        }
    }
    if around.no_host_name {
        spec.set_hostname(None).set_domainname(None);
    }
    notes.extend(around.note(engine));
    Ok(notes)
}

/// Makes the process the caller's own, with all of their groups.
fn keep_caller(spec: &mut Spec, uid: u32, gid: u32) {
    if let Some(process) = spec.process_mut() {
        process.user_mut().set_uid(uid).set_gid(gid).set_additional_gids(None);
    }
    let annotations = spec.annotations_mut().get_or_insert_default();
    annotations.insert(KEEP_GROUPS.to_owned(), "1".to_owned());
}

fn has_user_namespace(spec: &Spec) -> bool {
    let namespaces = spec.linux().as_ref().and_then(|linux| linux.namespaces().as_ref());
    namespaces.into_iter().flatten().any(|namespace| namespace.typ() == LinuxNamespaceType::User)
}

/// Keeps the groups of the caller for a process without groups of its own but the first: files that only members of a
/// group may read. They have no number in the container, so a process with groups of its own cannot have them as well.
fn keep_groups(spec: &mut Spec) {
    let user = spec.process().as_ref().map(oci_spec::runtime::Process::user);
    let own =
        user.is_some_and(|user| user.additional_gids().iter().flatten().any(|group| *group != user.gid()));
    if !own {
        if let Some(process) = spec.process_mut() {
            process.user_mut().set_additional_gids(None);
        }
        let annotations = spec.annotations_mut().get_or_insert_default();
        annotations.insert(KEEP_GROUPS.to_owned(), "1".to_owned());
    }
}

/// Changes a configuration without a user namespace so that the root of one that is not the host's can run it;
/// returns the changes, a line each.
pub fn adapt_in_user_namespace(spec: &mut Spec) -> Vec<String> {
    let namespaces = spec.linux().as_ref().and_then(|linux| linux.namespaces().as_ref());
    let has = |kind| namespaces.into_iter().flatten().any(|namespace| namespace.typ() == kind);
    let (own, network) = (has(LinuxNamespaceType::User), has(LinuxNamespaceType::Network));
    if own {
        return Vec::new();
    }
    let mut notes = Vec::new();
    let groups = std::fs::read_to_string("/proc/self/gid_map").unwrap_or_default();
    if !has_id(&groups, TTY_GID) {
        notes.extend(spec.mounts_mut().iter_mut().flatten().filter_map(use_own_tty_group));
    }
    // The network may belong to another user namespace, as with `--network host` of a rootless engine.
    if !network {
        let sysfs =
            spec.mounts_mut().iter_mut().flatten().filter(|mount| mount.typ().as_deref() == Some("sysfs"));
        sysfs.for_each(|mount| make_bind(mount, "/sys"));
    }
    notes
}

/// How a note of [`summary`] begins.
const SUMMARY: &str = "as an unprivileged user: ";

/// The changes of a configuration as one note for the record; none if nothing was changed.
pub fn summary(changes: &[String]) -> Option<String> {
    (!changes.is_empty()).then(|| format!("{SUMMARY}{}", changes.join("; ")))
}

/// Whether a note is a [`summary`]: what every job of an unprivileged user has, which need not be printed each time.
pub fn is_summary(note: &str) -> bool {
    note.starts_with(SUMMARY)
}

/// Whether the text of an id map has an id inside (user_namespaces(7)).
fn has_id(map: &str, id: u32) -> bool {
    map.lines().any(|line| {
        let mut numbers = line.split_ascii_whitespace().map(|word| word.parse::<u32>().unwrap_or_default());
        let (inside, length) = (numbers.next().unwrap_or_default(), numbers.nth(1).unwrap_or_default());
        id.checked_sub(inside).is_some_and(|offset| offset < length)
    })
}

/// Leaves the terminals of a devpts to the user's own group; reports it where config.json sets another one.
fn use_own_tty_group(mount: &mut Mount) -> Option<String> {
    if mount.typ().as_deref() != Some("devpts") {
        return None;
    }
    let mut options = mount.options().clone()?;
    let before = options.len();
    options.retain(|option| *option != format!("gid={TTY_GID}"));
    if options.len() == before {
        return None;
    }
    mount.set_options(Some(options));
    Some("terminals belong to the user's own group, because group 5 is not mapped".to_owned())
}

/// The group `tty`, which config.json gives terminals to.
const TTY_GID: u32 = 5;

fn mappings(map: &IdMap) -> Vec<LinuxIdMapping> {
    map.extents()
        .iter()
        .filter_map(|extent| {
            let mapping = LinuxIdMappingBuilder::default();
            // The builder refuses missing fields only.
            mapping.container_id(extent.inside).host_id(extent.outside).size(extent.length).build().ok()
        })
        .collect()
}

fn additional_ids(maps: &IdMaps) -> u32 {
    maps.users.extents().iter().map(|extent| extent.length).sum::<u32>() - 1
}

/// Turns a mount into a read-only bind mount of a host directory.
fn make_bind(mount: &mut Mount, source: &str) {
    mount.set_typ(Some("bind".to_owned()));
    mount.set_source(Some(PathBuf::from(source)));
    let options = ["rbind", "rro", "nosuid", "noexec", "nodev"].map(str::to_owned);
    mount.set_options(Some(options.to_vec()));
}

#[cfg(test)]
mod tests;
