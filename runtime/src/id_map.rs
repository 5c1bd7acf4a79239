//! User and group ids of a user namespace: a single id, or a range by newuidmap and newgidmap.
//!
//! The kernel takes each map once, as lines of `inside outside length` (user_namespaces(7)). A process without rights in
//! the namespace above may write only its own id, and then has to give up setgroups(2) first; for more, newuidmap(1) and
//! newgidmap(1) write what /etc/subuid and /etc/subgid grant. Neither way ever becomes the other in silence.

mod subordinate;

use std::path::{Path, PathBuf};

use oci_spec::runtime::{Linux, LinuxIdMapping};

use crate::error::{Error, Kind, Result};

/// The most extents a map can have (`UID_GID_MAP_MAX_EXTENTS`).
const MOST: usize = 340;

/// A run of ids: `length` of them, from `inside` in the namespace and from `outside` in the one above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first id as the container sees it.
    pub inside: u32,
    /// The first id as the machine sees it.
    pub outside: u32,
    /// How many; never 0, and neither end reaches 4294967295, which is no id.
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

/// Who writes the maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writer {
    /// This process, into the files in /proc. `deny` to /proc/PID/setgroups comes before the groups where `setgroups` is false.
    Itself {
        /// Whether the container may change its list of groups.
        setgroups: bool,
    },
    /// The two programs with the right to; see [`IdMap::arguments`].
    Helpers {
        /// The path of newuidmap.
        users: PathBuf,
        /// The path of newgidmap.
        groups: PathBuf,
    },
}

impl IdMaps {
    /// The maps of config.json; nothing if it has none.
    pub fn of(linux: &Linux) -> Result<Option<Self>> {
        let users = linux.uid_mappings().as_deref().unwrap_or_default();
        let groups = linux.gid_mappings().as_deref().unwrap_or_default();
        match (users, groups) {
            ([], []) => Ok(None),
            ([], _) => Err(Error::new(Kind::Config, "groups are mapped and users are not")
                .at("/linux/uidMappings")
                .help("write both, or neither")),
            (_, []) => Err(Error::new(Kind::Config, "users are mapped and groups are not")
                .at("/linux/gidMappings")
                .help("write both, or neither")),
            _ => Ok(Some(Self {
                users: IdMap::of(users, "/linux/uidMappings")?,
                groups: IdMap::of(groups, "/linux/gidMappings")?,
            })),
        }
    }

    /// The maps of a container that a user without rights starts: its root is that user, and its other ids are those
    /// that /etc/subuid and /etc/subgid grant, where newuidmap and newgidmap are installed; else it has no others.
    pub fn rootless(uid: u32, gid: u32) -> Result<Self> {
        let name = subordinate::name(Path::new("/etc/passwd"), uid)?;
        let granted = |path| subordinate::granted(Path::new(path), uid, name.as_deref());
        let (users, groups) = (granted("/etc/subuid")?, granted("/etc/subgid")?);
        let installed = program("newuidmap").is_some() && program("newgidmap").is_some();
        Ok(if installed && !users.is_empty() && !groups.is_empty() {
            Self { users: IdMap::behind(uid, &users), groups: IdMap::behind(gid, &groups) }
        } else {
            Self { users: IdMap::behind(uid, &[]), groups: IdMap::behind(gid, &[]) }
        })
    }

    /// Who can write these maps for a process of `uid` and `gid`, which is `privileged` if it has `CAP_SETUID` and
    /// `CAP_SETGID` in the namespace above.
    pub fn writer(&self, uid: u32, gid: u32, privileged: bool) -> Result<Writer> {
        if privileged {
            return Ok(Writer::Itself { setgroups: true });
        }
        let zero = |map: &IdMap| map.0.iter().any(|extent| extent.outside == 0);
        if (uid != 0 && zero(&self.users)) || (gid != 0 && zero(&self.groups)) {
            return Err(Error::new(
                Kind::Unenforceable,
                "only root can map the machine's id 0 into a container",
            )
            .at("/linux/uidMappings")
            .help("map your own id, or a range that /etc/subuid grants you"));
        }
        if self.users.is_only(uid) && self.groups.is_only(gid) {
            return Ok(Writer::Itself { setgroups: false });
        }
        match (program("newuidmap"), program("newgidmap")) {
            (Some(users), Some(groups)) => Ok(Writer::Helpers { users, groups }),
            _ => Err(Error::new(
                Kind::Unenforceable,
                "more ids than your own need newuidmap and newgidmap, which are not installed",
            )
            .at("/linux/uidMappings")
            .help(format!("install the package `uidmap`, or map `{uid}` alone"))),
        }
    }
}

impl IdMap {
    /// Checks a list of config.json that stands at `place` by the kernel's rules.
    fn of(mappings: &[LinuxIdMapping], place: &str) -> Result<Self> {
        if mappings.len() > MOST {
            let error = Error::new(
                Kind::Config,
                format!("{} extents, where the kernel takes {MOST}", mappings.len()),
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
                return wrong("an extent of no ids".to_owned());
            }
            if [new.inside, new.outside].iter().any(|first| first.checked_add(new.length).is_none()) {
                return wrong(format!(
                    "its last id ({} of them) is past 4294967294, the last there is",
                    new.length
                ));
            }
            for (other, old) in extents.iter().enumerate() {
                let side = if overlap(old.inside, old.length, new.inside, new.length) {
                    "container"
                } else if overlap(old.outside, old.length, new.outside, new.length) {
                    "machine"
                } else {
                    continue;
                };
                return wrong(format!("ids of the {side} that {place}/{other} maps already"));
            }
            extents.push(new);
        }
        Ok(Self(extents))
    }

    /// Id 0 of the container is `own`; the ones after it are the granted ranges, one behind the other.
    fn behind(own: u32, granted: &[subordinate::Range]) -> Self {
        let mut extents = vec![Extent { inside: 0, outside: own, length: 1 }];
        let mut next = 1;
        for range in granted.iter().take(MOST - 1) {
            // What would go past the last id is left out; nobody asked for it.
            let length = range.length.min(u32::MAX - next);
            if length > 0 {
                extents.push(Extent { inside: next, outside: range.first, length });
                next += length;
            }
        }
        Self(extents)
    }

    fn is_only(&self, id: u32) -> bool {
        matches!(self.0[..], [Extent { outside, length: 1, .. }] if outside == id)
    }

    /// The runs of ids, in the order written.
    pub fn extents(&self) -> &[Extent] {
        &self.0
    }

    /// The id on the machine behind one in the container.
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
    pub fn arguments(&self, pid: u32) -> Vec<String> {
        let numbers = self.0.iter().flat_map(|extent| [extent.inside, extent.outside, extent.length]);
        std::iter::once(pid).chain(numbers).map(|number| number.to_string()).collect()
    }
}

fn overlap(first: u32, length: u32, other: u32, other_length: u32) -> bool {
    first < other + other_length && other < first + length
}

/// The path of an executable file among the folders of `PATH`.
fn program(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin:/usr/sbin:/sbin".into());
    std::env::split_paths(&folders)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|path| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok())
}

#[cfg(test)]
mod tests;
