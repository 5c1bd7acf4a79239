//! The groups of a container, and their record.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::controller::Controller;
use super::layout::Version;

/// The groups of a container; may be empty.
#[derive(Debug, Default)]
pub struct Cgroup {
    pub(super) record: CgroupRecord,
    pub(super) into_fd: Option<OwnedFd>,
    pub(super) join_fds: Vec<OwnedFd>,
}

/// The record of a container's groups: enough to find, kill and remove them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupRecord {
    pub(super) groups: Vec<GroupRecord>,
}

/// One group of a container's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GroupRecord {
    /// The group's directory.
    #[serde(rename = "folder")]
    pub(super) directory: PathBuf,
    /// The directory's inode number: another group that is made there later has another.
    pub(super) id: u64,
    /// Its interface.
    pub(super) version: Version,
    /// The controllers of cgroup v1 in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) controllers: Vec<Controller>,
    /// The directories above it that go with it once they are empty, the deepest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) above: Vec<PathBuf>,
}

impl Cgroup {
    /// The groups of a container that another process made; [`Self::open_entry_fds`] lets a process in.
    pub fn open(saved: CgroupRecord) -> Self {
        Self { record: saved, into_fd: None, join_fds: vec![] }
    }

    /// The part of the groups that is recorded.
    pub fn record(&self) -> &CgroupRecord {
        &self.record
    }

    /// The cgroup v2 group that clone3(2) makes a process in (`CLONE_INTO_CGROUP`).
    pub fn into_fd(&self) -> Option<BorrowedFd<'_>> {
        self.into_fd.as_ref().map(AsFd::as_fd)
    }

    /// The files of cgroup v1 that a process with one thread joins the groups by, each by writing `0`.
    ///
    /// They are `tasks`, not `cgroup.procs`: for a thread that moves itself the kernel does not halt all others'
    /// forks and exits meanwhile, which costs 10 ms on a host that was idle.
    pub fn join_fds(&self) -> &[OwnedFd] {
        &self.join_fds
    }

    /// Takes the file descriptors by which a process enters the groups: [`Self::into_fd`] and [`Self::join_fds`].
    pub fn take_entry_fds(&mut self) -> (Option<OwnedFd>, Vec<OwnedFd>) {
        (self.into_fd.take(), std::mem::take(&mut self.join_fds))
    }

    /// Whether the container has no group at all.
    pub fn is_none(&self) -> bool {
        self.record.groups.is_empty()
    }

    /// Whether one of its groups still exists.
    pub fn exists(&self) -> bool {
        self.record.groups.iter().any(GroupRecord::exists)
    }

    /// The directories of the groups.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.record.groups.iter().map(|group| group.directory.as_path())
    }
}

impl GroupRecord {
    /// Whether the group is still the one that was created, neither removed nor replaced by another container's.
    pub(super) fn exists(&self) -> bool {
        inode_of(&self.directory) == Some(self.id)
    }

    /// Whether files of that controller can be in the group. To look for one that is not there costs as much as to open
    /// one that is.
    pub(super) fn may_have(&self, version: Version, controller: Controller) -> bool {
        // A cgroup v2 group has some files without their controller, such as cpu.stat. Records of earlier versions do
        // not name the controllers.
        self.version == version
            && (version == Version::V2
                || self.controllers.is_empty()
                || self.controllers.contains(&controller))
    }
}

/// Identifies a group among all that were or will be at its path: the kernel never reuses an inode number.
pub(super) fn inode_of(directory: &Path) -> Option<u64> {
    rustix::fs::stat(directory).ok().map(|status| status.st_ino)
}
