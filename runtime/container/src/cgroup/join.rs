//! The way into the groups of a container: they are made, or opened for an additional process.

use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::layout::{Layout, Version};
use super::plan::{self, Plan};
use super::record::Cgroup;
use super::request::CgroupRequest;
use super::subgroup::SubGroups;
use super::unenforced::UnenforcedLimit;
use super::{create, lifecycle};
use jobc_sys::error::Result;

impl Cgroup {
    /// Creates the groups of a container and writes its limits; returns the unenforced ones.
    ///
    /// A container without limits gets no group if none can be created; that is not an error. The group `jobc`, which
    /// holds all others, stays when they are removed; it has no limits.
    ///
    /// # Errors
    ///
    /// An invalid path or limit, a limit that cannot be enforced (unless that is allowed), a group that is in use.
    /// Everything created is removed again.
    pub fn create(layout: &Layout, request: &CgroupRequest<'_>) -> Result<(Self, Vec<UnenforcedLimit>)> {
        Plan::of(layout, request)?.carry_out(request)
    }

    /// Opens what an additional process enters the groups by: [`Self::into_fd`] and [`Self::join_fds`].
    ///
    /// `first` is the container's first process. Where the container has divided its cgroup v2 group itself, the group
    /// accepts no more processes (cgroup-v2.rst, "No Internal Process Constraint"), and the further one goes where the
    /// first is; unless `below` says which it enters.
    pub fn open_entry_fds(&mut self, first: u32, below: &SubGroups) -> Result<()> {
        self.into_fd = None;
        self.join_fds.clear();
        below.check(&self.record.groups)?;
        for group in self.record.groups.iter().filter(|group| group.exists()) {
            let named = below.directory_in(group)?;
            match group.version {
                Version::V1 => {
                    let directory = named.as_ref().unwrap_or(&group.directory);
                    self.join_fds.push(create::open_entry_fd(directory, "tasks", OFlags::WRONLY)?);
                }
                Version::V2 => {
                    let directory = match named {
                        Some(directory) => directory,
                        None => lifecycle::group_of_process(&group.directory, first)?,
                    };
                    self.into_fd = Some(create::open_entry_fd(&directory, "", OFlags::DIRECTORY)?);
                }
            }
        }
        Ok(())
    }

    /// The cgroup v2 group for an additional process next to the container's `first`, relative to the root of the
    /// hierarchy; `None` if there is none, or none is visible from here.
    pub(crate) fn entry_group(&self, first: u32) -> Result<Option<PathBuf>> {
        let Some(unified) = Layout::detect()?.unified else { return Ok(None) };
        let mut there = self.record.groups.iter().filter(|group| group.exists());
        let Some(group) = there.find(|group| group.version == Version::V2) else { return Ok(None) };
        let directory = lifecycle::group_of_process(&group.directory, first)?;
        Ok(directory.strip_prefix(&unified.mount).ok().map(Path::to_owned))
    }

    /// Whether this process may make one in its cgroup v2 group, or has none to make one in.
    pub(crate) fn can_join(&self, layout: &Layout) -> bool {
        let Some(unified) = &layout.unified else { return true };
        let mut there = self.record.groups.iter().filter(|group| group.version == Version::V2);
        there.all(|group| {
            group
                .directory
                .strip_prefix(&unified.mount)
                .is_ok_and(|group| plan::can_move_process(unified, group))
        })
    }
}
