//! The container's control group: version 1, version 2, or both side by side.
//!
//! [`Layout::detect`] looks where they are, [`Plan::of`] decides which groups a container gets and what is written to
//! them, with nothing changed, and [`Cgroup::create`] carries that out. On version 2 the container's first process is
//! born in its group ([`Cgroup::into_fd`]); groups of version 1 it joins in one burst ([`Cgroup::join_fds`]). Beside
//! hierarchies of version 1 a leaf of the unified tree serves to kill and to freeze.
//!
//! A limit that nothing enforces here is an error of [`Kind::Unenforceable`](crate::error::Kind), or, where that is
//! allowed, an [`Unenforced`] for the record.

mod bpf;
mod controller;
mod devices;
mod layout;
mod life;
mod limit;
mod make;
mod path;
mod plan;
mod scope;
mod stats;
mod unit;
mod update;
mod usage;

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use oci_spec::runtime::LinuxResources;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

pub use controller::Controller;
pub use layout::{Hierarchy, Layout, Unified, Version};
pub use life::remove_empty;
pub(crate) use limit::GO_ON;
pub use limit::Limit;
pub use path::GroupPath;
pub(crate) use plan::DELEGATE;
pub use plan::{Group, Interface, Plan};
pub use scope::{LEAF, ScopeGroup};
pub use unit::UnitGroup;
pub(crate) use unit::changed;
pub use usage::{Meter, Usage};

use crate::error::{Error, Result};

/// What a container wants of its control group.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// The container's name; its group is `/jobc/<id>` where config.json names none.
    pub id: &'a str,
    /// `linux.cgroupsPath`: from the tree's root with a slash before it, from the group of this process without.
    pub path: Option<&'a str>,
    /// The group that systemd makes, in place of one that this program makes at `path`.
    pub unit: Option<&'a UnitGroup>,
    /// The group of a scope that this user's systemd would make around this process: for a plan that nobody carries out.
    pub scope: Option<&'a ScopeGroup>,
    /// `linux.resources`.
    pub resources: Option<&'a LinuxResources>,
    /// Go on where a limit cannot be enforced.
    pub allow_unenforced: bool,
    /// Who owns the group inside the container: the machine's numbers for its root, where it has a user namespace and
    /// may write to its groups.
    pub owner: Option<(u32, u32)>,
    /// Whether somebody will ask what it has read from disks and written to them.
    pub counts_io: bool,
    /// Whether the container has a user namespace of its own, in which nobody can make a device node (mknod(2)).
    pub user_namespace: bool,
}

/// A limit of config.json that nothing enforces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unenforced {
    /// The field: a JSON Pointer into config.json.
    pub place: String,
    /// Why not, in words.
    pub reason: String,
}

impl fmt::Display for Unenforced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

impl Unenforced {
    /// Limits that nothing enforces, for people: a line a reason, with what is limited in the job file's words.
    ///
    /// Reasons that differ only in the group they name are one: with version 1 every controller has a tree of its own.
    pub fn in_words(all: &[Self]) -> Vec<String> {
        let kind = |reason: &str| reason.split('`').next().map(str::to_owned);
        let mut lines: Vec<(&str, Vec<&str>)> = Vec::new();
        for Self { place, reason } in all {
            let limited = place.strip_prefix("/linux/resources/").unwrap_or(place);
            let limited = limited.split('/').next().unwrap_or(limited);
            match lines.iter_mut().find(|(first, _)| kind(first) == kind(reason)) {
                Some((_, list)) if list.contains(&limited) => {}
                Some((_, list)) => list.push(limited),
                None => lines.push((reason, vec![limited])),
            }
        }
        let line = |(reason, limited): (&str, Vec<&str>)| {
            let list = limited.iter().map(|limited| format!("`{limited}`")).collect::<Vec<_>>().join(", ");
            format!("nothing keeps tasks within their limits of {list}: {reason}")
        };
        lines.into_iter().map(line).collect()
    }
}

impl From<Error> for Unenforced {
    fn from(error: Error) -> Self {
        Self { place: error.place.unwrap_or_default(), reason: error.message }
    }
}

/// The groups of a container; none where it has none.
#[derive(Debug, Default)]
pub struct Cgroup {
    saved: Saved,
    into: Option<OwnedFd>,
    joins: Vec<OwnedFd>,
}

/// What is kept of a container's groups: enough to find, to kill and to remove them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    groups: Vec<SavedGroup>,
}

/// One group of a container's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SavedGroup {
    /// The group's folder.
    folder: PathBuf,
    /// The folder's inode number: another group that is made there later has another.
    id: u64,
    /// Which interface it has.
    version: Version,
    /// The controllers of version 1 in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    controllers: Vec<Controller>,
    /// The folders above it that go with it once they are empty, the deepest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    above: Vec<PathBuf>,
}

impl Cgroup {
    /// Makes the groups of a container and writes its limits; returns those that nothing enforces.
    ///
    /// Where nothing is limited and no group can be made, there is none, and that is no error. The group `jobc` that
    /// holds all others stays when they are removed; it has no limits.
    ///
    /// # Errors
    ///
    /// A path or a limit that makes no sense, a limit that cannot be enforced (unless that is allowed), a group that is
    /// in use. Whatever was made is removed again.
    pub fn create(layout: &Layout, request: &Request<'_>) -> Result<(Self, Vec<Unenforced>)> {
        Plan::of(layout, request)?.carry_out(request)
    }

    /// The groups of a container that another process made; [`Self::open_entrances`] lets a process in.
    pub fn open(saved: Saved) -> Self {
        Self { saved, into: None, joins: vec![] }
    }

    /// What to keep of the groups.
    pub fn saved(&self) -> &Saved {
        &self.saved
    }

    /// The group of version 2 that clone3(2) makes a process in (`CLONE_INTO_CGROUP`).
    pub fn into_fd(&self) -> Option<BorrowedFd<'_>> {
        self.into.as_ref().map(AsFd::as_fd)
    }

    /// The files of version 1 that a process with one thread joins the groups by, each by writing `0`.
    ///
    /// They are `tasks`, not `cgroup.procs`: for a thread that moves itself the kernel does not halt all others'
    /// forks and exits meanwhile, which costs 10 ms on a machine that was idle.
    pub fn join_fds(&self) -> &[OwnedFd] {
        &self.joins
    }

    /// Opens what a further process enters the groups by: [`Self::into_fd`] and [`Self::join_fds`].
    ///
    /// `first` is the container's first process. Where the container has divided its group of version 2 itself, the group
    /// takes no process any more (cgroup-v2.rst, "No Internal Process Constraint"), and the further one goes where the first is.
    pub fn open_entrances(&mut self, first: u32) -> Result<()> {
        self.into = None;
        self.joins.clear();
        for group in self.saved.groups.iter().filter(|group| group.is_there()) {
            match group.version {
                Version::V1 => self.joins.push(make::entrance(&group.folder, "tasks", OFlags::WRONLY)?),
                Version::V2 => {
                    let folder = life::holding(&group.folder, first)?;
                    self.into = Some(make::entrance(&folder, "", OFlags::DIRECTORY)?);
                }
            }
        }
        Ok(())
    }

    /// The group of version 2 that a further process belongs in beside the container's `first`, relative to the root of the tree;
    /// nothing where there is none, or none that can be seen from here.
    pub(crate) fn entrance(&self, first: u32) -> Result<Option<PathBuf>> {
        let Some(unified) = Layout::detect()?.unified else { return Ok(None) };
        let mut there = self.saved.groups.iter().filter(|group| group.is_there());
        let Some(group) = there.find(|group| group.version == Version::V2) else { return Ok(None) };
        let folder = life::holding(&group.folder, first)?;
        Ok(folder.strip_prefix(&unified.mount).ok().map(Path::to_owned))
    }

    /// Gives away what a process enters its groups by: [`Self::into_fd`] and [`Self::join_fds`].
    pub fn take_entrances(&mut self) -> (Option<OwnedFd>, Vec<OwnedFd>) {
        (self.into.take(), std::mem::take(&mut self.joins))
    }

    /// Whether the container has no group at all.
    pub fn is_none(&self) -> bool {
        self.saved.groups.is_empty()
    }

    /// Whether a group of it is there still.
    pub fn is_there(&self) -> bool {
        self.saved.groups.iter().any(SavedGroup::is_there)
    }

    /// Whether this process may make one in its group of version 2, or has none to make one in.
    pub(crate) fn may_be_entered(&self, layout: &Layout) -> bool {
        let Some(unified) = &layout.unified else { return true };
        let mut there = self.saved.groups.iter().filter(|group| group.version == Version::V2);
        there.all(|group| {
            group.folder.strip_prefix(&unified.mount).is_ok_and(|group| plan::may_move(unified, group))
        })
    }

    /// The folders of the groups.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.saved.groups.iter().map(|group| group.folder.as_path())
    }
}

#[cfg(test)]
mod tests {
    use super::Unenforced;

    #[test]
    fn what_nothing_keeps_is_told_in_a_line_a_reason() {
        let of =
            |place: &str, reason: &str| Unenforced { place: place.to_owned(), reason: reason.to_owned() };
        let told = Unenforced::in_words(&[
            of("/linux/resources/pids/limit", "not in `/pids`"),
            of("/linux/resources/memory/limit", "not in `/memory`"),
            of("/linux/resources/memory/swap", "not in `/memory`"),
            of("/linux/resources/devices", "there are none"),
        ]);
        assert_eq!(
            told,
            [
                "nothing keeps tasks within their limits of `pids`, `memory`: not in `/pids`",
                "nothing keeps tasks within their limits of `devices`: there are none",
            ]
        );
    }
}
