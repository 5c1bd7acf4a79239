//! User and group ids of a user namespace: a single id, or a range by newuidmap and newgidmap.
//!
//! The kernel takes each map once, as lines of `inside outside length` (user_namespaces(7)). A process without rights
//! in the namespace above may write only its own id, and then has to give up setgroups(2) first; for more, newuidmap(1)
//! and newgidmap(1) write what /etc/subuid and /etc/subgid grant. Neither way ever becomes the other in silence.

pub mod subordinate;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use linux_raw_sys::general::{CAP_SETFCAP, CAP_SETGID, CAP_SETUID};
use oci_spec::runtime::{Linux, LinuxIdMapping, Mount, Spec};
use rustix::process::{Gid, Uid};

use crate::error::{Error, Kind, Result, describe_io};
use crate::host::ProcessStatus;
use crate::program_path;

/// Maximum number of extents of a map (`UID_GID_MAP_MAX_EXTENTS`).
const MAX_EXTENTS: usize = 340;

/// A run of ids: `length` of them, from `inside` in the namespace and from `outside` in the one above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first id as the container sees it.
    pub inside: u32,
    /// The first id as the host sees it.
    pub outside: u32,
    /// How many; never 0, and neither end reaches 4294967295, which is not a valid id.
    pub length: u32,
}

/// The ids of one kind, users or groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdMap(Vec<Extent>);

/// Both maps of a user namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdMaps {
    /// For /proc/PID/uid_map.
    pub users: IdMap,
    /// For /proc/PID/gid_map.
    pub groups: IdMap,
}

/// The writer of the maps.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Writer {
    /// The container's first process, which knows no other ids than these two and gives up setgroups(2).
    Child,
    /// This process, which has the right to.
    Parent,
    /// newuidmap and newgidmap, which have the right to what root granted.
    Helpers { users: PathBuf, groups: PathBuf },
}

impl IdMaps {
    /// The maps for the new user namespace of config.json.
    ///
    /// # Errors
    ///
    /// Besides what [`Self::read`] refuses: no maps, and maps that this user may not have written on this host.
    pub fn of(spec: &Spec) -> Result<Self> {
        let maps = spec.linux().as_ref().map(Self::read).transpose()?.flatten();
        let maps = maps.ok_or_else(|| missing_maps("/linux/uidMappings"))?;
        maps.current_writer()?;
        Ok(maps)
    }

    /// Reads the maps of config.json and checks them by the kernel's rules; nothing if it has none.
    pub fn read(linux: &Linux) -> Result<Option<Self>> {
        Self::both(linux.uid_mappings().as_deref(), linux.gid_mappings().as_deref(), "/linux")
    }

    /// Reads the maps of a mount that is at `place`, such as `/mounts/3`; nothing if it has none of its own.
    ///
    /// `inside` are then the ids in the file system, and `outside` those on the host that they are seen as.
    pub fn of_mount(mount: &Mount, place: &str) -> Result<Option<Self>> {
        Self::both(mount.uid_mappings().as_deref(), mount.gid_mappings().as_deref(), place)
    }

    fn both(
        users: Option<&[LinuxIdMapping]>,
        groups: Option<&[LinuxIdMapping]>,
        place: &str,
    ) -> Result<Option<Self>> {
        let at = |name: &str| format!("{place}/{name}");
        match (users.unwrap_or_default(), groups.unwrap_or_default()) {
            ([], []) => Ok(None),
            ([], _) => Err(Error::new(Kind::Config, "groups are mapped and users are not")
                .at(at("uidMappings"))
                .help("write both, or neither")),
            (_, []) => Err(Error::new(Kind::Config, "users are mapped and groups are not")
                .at(at("gidMappings"))
                .help("write both, or neither")),
            (users, groups) => Ok(Some(Self {
                users: IdMap::of(users, &at("uidMappings"))?,
                groups: IdMap::of(groups, &at("gidMappings"))?,
            })),
        }
    }

    /// The maps of a container that a user without rights starts: its root is that user, and its other ids are those
    /// that /etc/subuid and /etc/subgid grant, where newuidmap and newgidmap are installed; else it has no others.
    ///
    /// Root that lacks CAP_SYS_ADMIN, as in most containers, may as a rule map all ids that it knows, each to itself.
    pub fn rootless(uid: u32, gid: u32) -> Result<Self> {
        // To map root itself takes CAP_SETFCAP as well (user_namespaces(7)).
        if uid == 0 && is_privileged() && has_capabilities(1 << CAP_SETFCAP) {
            let own = |file: &str| {
                let text = std::fs::read_to_string(format!("/proc/self/{file}"));
                text.map(|text| IdMap::identity(&text)).map_err(|error| {
                    Error::new(Kind::System, format!("cannot read /proc/self/{file}")).because(error)
                })
            };
            return Ok(Self { users: own("uid_map")?, groups: own("gid_map")? });
        }
        let (users, groups) = granted_ids(uid)?;
        Ok(Self { users: IdMap::with_granted(uid, &users), groups: IdMap::with_granted(gid, &groups) })
    }

    /// The maps of a container in which a user without rights, who starts it, has the same ids as outside. The granted
    /// ids, if any, are the others, from 0.
    pub fn rootless_unchanged(uid: u32, gid: u32) -> Result<Self> {
        Self::rootless_as(uid, gid, (uid, gid))
    }

    /// The same for a container in which they are another user and group, such as those of its image.
    pub fn rootless_as(uid: u32, gid: u32, inside: (u32, u32)) -> Result<Self> {
        let (users, groups) = granted_ids(uid)?;
        Ok(Self {
            users: IdMap::around(inside.0, uid, &users),
            groups: IdMap::around(inside.1, gid, &groups),
        })
    }

    /// The lines of both maps, where the container's first process writes them itself.
    pub fn single(&self) -> Option<(String, String)> {
        (self.current_writer() == Ok(Writer::Child)).then(|| (self.users.text(), self.groups.text()))
    }

    /// Whether setgroups(2) is denied in the namespace: to a process that maps only its own group, no matter which
    /// process writes the map.
    pub fn groups_denied(&self) -> bool {
        let gid = rustix::process::getegid();
        !is_privileged() && self.groups.is_only(gid.as_raw())
    }

    /// The user and group to become first in the namespace: without rights those that this process already has, since
    /// it may not reach its own files as others; else 0 where it is mapped.
    pub fn first(&self) -> (u32, u32) {
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let own = |id| (!is_privileged()).then_some(id);
        (self.users.first(own(uid)), self.groups.first(own(gid)))
    }

    /// Writes the maps of a process in its new user namespace, which waits for them.
    pub fn write(&self, pid: u32) -> Result<()> {
        match self.current_writer()? {
            Writer::Helpers { users, groups } => {
                run(&users, &self.users.arguments(pid), "/linux/uidMappings")?;
                run(&groups, &self.groups.arguments(pid), "/linux/gidMappings")
            }
            Writer::Parent | Writer::Child => {
                let write = |file: &str, map: &IdMap, place: &str| {
                    std::fs::write(format!("/proc/{pid}/{file}"), map.text()).map_err(|error| {
                        let message =
                            format!("cannot map `{}`: {}", map.text().trim_end(), describe_io(&error));
                        Error::new(Kind::System, message).at(place)
                    })
                };
                write("uid_map", &self.users, "/linux/uidMappings")?;
                write("gid_map", &self.groups, "/linux/gidMappings")
            }
        }
    }

    /// The possible writer of these maps if this process starts the container.
    fn current_writer(&self) -> Result<Writer> {
        self.writer(rustix::process::geteuid(), rustix::process::getegid(), is_privileged())
    }

    /// The possible writer of these maps if `uid` and `gid` start the container, `privileged` or not to map any id.
    fn writer(&self, uid: Uid, gid: Gid, privileged: bool) -> Result<Writer> {
        if privileged {
            return Ok(Writer::Parent);
        }
        // The group of a user can be 0, as in containers of arbitrary users.
        for (map, own, place) in [
            (&self.users, uid.as_raw(), "/linux/uidMappings"),
            (&self.groups, gid.as_raw(), "/linux/gidMappings"),
        ] {
            if own != 0 && map.0.iter().any(|extent| extent.outside == 0) {
                return Err(Error::new(
                    Kind::Unenforceable,
                    "only root can map the host's id 0 into a container",
                )
                .at(place)
                .help("map your own id, or a range that /etc/subuid and /etc/subgid grant you"));
            }
        }
        if self.users.is_only(uid.as_raw()) && self.groups.is_only(gid.as_raw()) {
            return Ok(Writer::Child);
        }
        if let (Some(users), Some(groups)) =
            (program_path::find("newuidmap"), program_path::find("newgidmap"))
        {
            return Ok(Writer::Helpers { users, groups });
        }
        let message =
            "mapping ids other than your own needs newuidmap and newgidmap, which are not installed";
        Err(Error::new(Kind::Unenforceable, message)
            .at("/linux/uidMappings")
            .help(format!("install the package `uidmap`, or map your id {} alone", uid.as_raw())))
    }
}

/// The ids that /etc/subuid and /etc/subgid grant a user; none where newuidmap or newgidmap is missing.
fn granted_ids(uid: u32) -> Result<(Vec<subordinate::Range>, Vec<subordinate::Range>)> {
    let name = subordinate::name(Path::new("/etc/passwd"), uid)?;
    let granted = |path| subordinate::granted(Path::new(path), uid, name.as_deref());
    let (users, groups) = (granted("/etc/subuid")?, granted("/etc/subgid")?);
    let is_installed = |program| program_path::find(program).is_some();
    let is_granted = !users.is_empty() && !groups.is_empty();
    Ok(if is_granted && is_installed("newuidmap") && is_installed("newgidmap") {
        (users, groups)
    } else {
        (vec![], vec![])
    })
}

/// Whether this process may write any maps of ids of its user namespace: root may, unless it lacks the capabilities.
fn is_privileged() -> bool {
    rustix::process::geteuid().is_root() && has_capabilities(1 << CAP_SETUID | 1 << CAP_SETGID)
}

fn has_capabilities(needed: u64) -> bool {
    ProcessStatus::of_this_process().is_ok_and(|status| status.permitted & needed == needed)
}

/// Runs one of the two programs; its output goes into the error.
fn run(program: &Path, arguments: &[String], place: &str) -> Result<()> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output =
        output.map_err(|error| Error::new(Kind::System, format!("cannot run {name}")).because(error))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let message = message.lines().next().unwrap_or("no error message");
    Err(Error::new(Kind::Unenforceable, format!("cannot map ids: {message}"))
        .at(place)
        .help("map your own id, and ranges that /etc/subuid and /etc/subgid grant you"))
}

/// A user namespace without maps: in it every id is the overflow id, and nothing can be owned.
pub fn missing_maps(place: &str) -> Error {
    Error::new(Kind::Config, "the container has a new user namespace but no id mappings")
        .at(place)
        .help("write `uidMappings` and `gidMappings`, or leave the user namespace out")
}

impl IdMap {
    /// Checks a list of config.json that is at `place` by the kernel's rules.
    fn of(mappings: &[LinuxIdMapping], place: &str) -> Result<Self> {
        if mappings.len() > MAX_EXTENTS {
            let error = Error::new(
                Kind::Config,
                format!("{} extents, but the kernel allows at most {MAX_EXTENTS}", mappings.len()),
            );
            return Err(error.at(place));
        }
        let mut extents: Vec<Extent> = Vec::with_capacity(mappings.len());
        for (index, mapping) in mappings.iter().enumerate() {
            let new =
                Extent { inside: mapping.container_id(), outside: mapping.host_id(), length: mapping.size() };
            let wrong =
                |message: String| Err(Error::new(Kind::Config, message).at(format!("{place}/{index}")));
            if new.length == 0 {
                return wrong("an extent of size 0".to_owned());
            }
            if [new.inside, new.outside].iter().any(|first| first.checked_add(new.length).is_none()) {
                return wrong(format!(
                    "an extent of {} ids ends past 4294967294, the largest id",
                    new.length
                ));
            }
            for (other, old) in extents.iter().enumerate() {
                let side = if overlap(old.inside, old.length, new.inside, new.length) {
                    "container"
                } else if overlap(old.outside, old.length, new.outside, new.length) {
                    "host"
                } else {
                    continue;
                };
                return wrong(format!("overlaps {side} ids of {place}/{other}"));
            }
            extents.push(new);
        }
        Ok(Self(extents))
    }

    /// Id 0 of the container is `own`; the ones after it are the granted ranges, one behind the other.
    fn with_granted(own: u32, granted: &[subordinate::Range]) -> Self {
        let mut extents = vec![Extent { inside: 0, outside: own, length: 1 }];
        let mut next = 1;
        for range in granted.iter().take(MAX_EXTENTS - 1) {
            // Ids past the last one are left out; they are not needed.
            let length = range.length.min(u32::MAX - next);
            if length > 0 {
                extents.push(Extent { inside: next, outside: range.first, length });
                next += length;
            }
        }
        Self(extents)
    }

    /// Id `own` of the container is `outside`; the granted ranges, one behind the other, are the ids from 0 around it.
    fn around(own: u32, outside: u32, granted: &[subordinate::Range]) -> Self {
        let mut extents = vec![Extent { inside: own, outside, length: 1 }];
        let mut next = 0;
        // One of the ranges is split at `own`.
        for range in granted.iter().take(MAX_EXTENTS - 2) {
            let (mut outside, mut left) = (range.first, range.length);
            while left > 0 {
                if next == own {
                    next += 1;
                }
                let length = left.min(if next < own { own - next } else { u32::MAX - next });
                if length == 0 {
                    break;
                }
                extents.push(Extent { inside: next, outside, length });
                (next, outside, left) = (next + length, outside + length, left - length);
            }
        }
        Self(extents)
    }

    /// The id inside that is `own` outside, if it is given and mapped; else 0 where it is mapped, else any.
    fn first(&self, own: Option<u32>) -> u32 {
        let inside = |id: u32| {
            self.0.iter().find_map(|extent| {
                let offset = id.checked_sub(extent.outside).filter(|offset| *offset < extent.length)?;
                Some(extent.inside + offset)
            })
        };
        let any = || self.outside(0).map_or_else(|| self.0.first().map_or(0, |extent| extent.inside), |_| 0);
        own.and_then(inside).unwrap_or_else(any)
    }

    /// All ids inside of a map as the kernel shows it, each as itself.
    fn identity(map: &str) -> Self {
        let extent = |line: &str| {
            let mut numbers = line.split_ascii_whitespace().map(|word| word.parse::<u32>().ok());
            let (first, length) = (numbers.next()??, numbers.nth(1)??);
            Some(Extent { inside: first, outside: first, length })
        };
        Self(map.lines().filter_map(extent).collect())
    }

    fn is_only(&self, id: u32) -> bool {
        matches!(self.0[..], [Extent { outside, length: 1, .. }] if outside == id)
    }

    /// The runs of ids, in the order written.
    pub fn extents(&self) -> &[Extent] {
        &self.0
    }

    /// The id on the host behind one in the container.
    pub fn outside(&self, inside: u32) -> Option<u32> {
        self.0.iter().find_map(|extent| {
            let offset = inside.checked_sub(extent.inside).filter(|offset| *offset < extent.length)?;
            Some(extent.outside + offset)
        })
    }

    /// The text for /proc/PID/uid_map or gid_map, in one write(2).
    pub fn text(&self) -> String {
        self.0
            .iter()
            .map(|Extent { inside, outside, length }| format!("{inside} {outside} {length}\n"))
            .collect()
    }

    /// The arguments of newuidmap(1) or newgidmap(1) for a process.
    fn arguments(&self, pid: u32) -> Vec<String> {
        let numbers = self.0.iter().flat_map(|extent| [extent.inside, extent.outside, extent.length]);
        std::iter::once(pid).chain(numbers).map(|number| number.to_string()).collect()
    }
}

fn overlap(first: u32, length: u32, other: u32, other_length: u32) -> bool {
    first < other + other_length && other < first + length
}

#[cfg(test)]
mod tests;
