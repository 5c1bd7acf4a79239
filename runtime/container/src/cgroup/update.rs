//! Other limits for a container that runs.

use std::path::{Path, PathBuf};

use oci_spec::runtime::LinuxResources;
use rustix::io::Errno;

use super::controller::Controller;
use super::create::{self, subtree_control, write_limit};
use super::file::write;
use super::layout::{Hierarchy, Layout, Version};
use super::limit::{Limit, Limits};
use super::plan::{Group, Interface};
use super::record::{Cgroup, GroupRecord};
use super::request::CgroupRequest;
use jobc_sys::error::{Error, Kind, Result};

/// How often processes are looked for that were made while the others were moved.
const MAX_ROUNDS: usize = 100;

/// A limit and the group that gets it.
struct Change {
    directory: PathBuf,
    limit: Limit,
}

/// The content of a group's file before it was written.
struct PreviousContent(PathBuf, String);

impl Cgroup {
    /// Writes those limits of `resources` that are in `sections` (`memory`, `cpu`, …).
    ///
    /// If a cgroup v1 hierarchy has no group of the container yet, because nothing was limited there, one is created
    /// and the container's processes are moved into it.
    ///
    /// # Errors
    ///
    /// Invalid limits, and limits that nothing here enforces. All limits are then as before, also if `then` fails,
    /// which gets the limits after they are written.
    pub fn update(
        &mut self,
        layout: &Layout,
        resources: &LinuxResources,
        sections: &[&str],
        then: impl FnOnce(&[Limit]) -> Result<()>,
    ) -> Result<()> {
        let named = |place: &str| {
            let rest = place.strip_prefix("/linux/resources/").unwrap_or_default();
            sections.contains(&rest.split('/').next().unwrap_or_default())
        };
        let limits = Limits::of_update(resources, layout)?;
        let lost = |error: &Error| error.pointer().is_some_and(named);
        if let Some(error) = limits.unsupported.into_iter().find(lost) {
            return Err(error);
        }
        self.check_memory_in_use(resources, sections)?;
        let before = self.record.groups.len();
        let mut former = vec![];
        let writable: Vec<Limit> =
            limits.writable.into_iter().filter(|limit| named(&limit.pointer)).collect();
        let result = writable
            .iter()
            .map(|limit| Ok(Change { directory: self.directory_for(limit, layout)?, limit: limit.clone() }))
            .collect::<Result<Vec<_>>>()
            .and_then(|changes| self.write_all(layout, changes, &mut former))
            .and_then(|()| {
                let new = self.record.groups[before..].to_vec();
                new.iter().try_for_each(|group| self.move_processes_to(&group.directory))
            })
            .and_then(|()| then(&writable));
        if result.is_err() {
            for PreviousContent(path, text) in former.into_iter().rev() {
                // The error reports why the change failed.
                let _ = write(&path, &text);
            }
            for group in self.record.groups.split_off(before) {
                let _ = rustix::fs::rmdir(&group.directory);
            }
        }
        self.join_fds.clear();
        result
    }

    /// Refuses less memory than there is in use, where config.json has `checkBeforeUpdate`; otherwise the kernel of
    /// version 2 would end processes for it.
    fn check_memory_in_use(&self, resources: &LinuxResources, sections: &[&str]) -> Result<()> {
        let memory = resources.memory().as_ref().filter(|_| sections.contains(&"memory"));
        let Some(memory) = memory.filter(|memory| memory.check_before_update() == Some(true)) else {
            return Ok(());
        };
        let limit = memory.limit().and_then(|limit| u64::try_from(limit).ok()).filter(|limit| *limit > 0);
        match (limit, self.usage().memory) {
            (Some(limit), Some(used)) if used > limit => {
                let message =
                    format!("{used} bytes of memory are in use, more than the new limit of {limit}");
                Err(Error::new(Kind::Unenforceable, message).at("/linux/resources/memory/limit"))
            }
            _ => Ok(()),
        }
    }

    /// The directory of the group that gets a limit; created if missing.
    fn directory_for(&mut self, limit: &Limit, layout: &Layout) -> Result<PathBuf> {
        let hierarchy = layout.hierarchy(limit.controller);
        let found = self.record.groups.iter().filter(|group| group.exists()).find(|group| match hierarchy {
            None => group.version == Version::V2,
            Some(_) => group.controllers.contains(&limit.controller),
        });
        if let Some(found) = found {
            return Ok(found.directory.clone());
        }
        let names = self.record.groups.iter().find_map(|group| group_names(group, layout));
        let (Some(hierarchy), Some(names)) = (hierarchy, names) else {
            return Err(Error::new(Kind::Unenforceable, "the container has no cgroup that can be limited")
                .at(&limit.pointer));
        };
        let interface = Interface::V1(Hierarchy::clone(hierarchy));
        let mount = hierarchy.mount.clone();
        let group = Group {
            interface,
            mount,
            base: PathBuf::new(),
            names,
            limits: vec![],
            devices: None,
            made_by_systemd: false,
        };
        create::create_group(&group, &CgroupRequest::default(), self)?;
        let directory = group.directory();
        if !self.record.groups.iter().any(|group| group.directory == directory) {
            let message = format!("the cgroup `{}` cannot be made", directory.display());
            return Err(Error::new(Kind::Unenforceable, message).at(&limit.pointer));
        }
        Ok(directory)
    }

    /// Writes limits; retries those that the kernel rejects after the others.
    ///
    /// The memory limit must never exceed that of memory and swap together, so their order depends on whether they
    /// grow; the same holds for the quota and the period of CPU time.
    fn write_all(
        &self,
        layout: &Layout,
        changes: Vec<Change>,
        former: &mut Vec<PreviousContent>,
    ) -> Result<()> {
        let mut again = vec![];
        for change in changes {
            if layout.hierarchy(change.limit.controller).is_none()
                && !change.limit.files.iter().any(|(file, _)| change.directory.join(file).exists())
                && let Some(group) =
                    self.record.groups.iter().find(|group| group.directory == change.directory)
                && let Some(names) = group_names(group, layout)
                && let Some(unified) = &layout.unified
            {
                let (interface, mount) = (Interface::V2, unified.mount.clone());
                let limits = vec![change.limit.clone()];
                let group = Group {
                    interface,
                    mount,
                    base: PathBuf::new(),
                    names,
                    limits,
                    devices: None,
                    made_by_systemd: false,
                };
                let refused = subtree_control::enable_controllers(&group)
                    .into_iter()
                    .find(|(one, _)| *one == change.limit.controller);
                if let Some((_, error)) = refused {
                    return Err(error.at(&change.limit.pointer));
                }
            }
            former.extend(
                change
                    .limit
                    .files
                    .iter()
                    .filter_map(|(file, _)| PreviousContent::of(change.directory.join(file))),
            );
            if write_limit(&change.directory, &change.limit).is_err() {
                again.push(change);
            }
        }
        again.iter().try_for_each(|change| write_limit(&change.directory, &change.limit))
    }

    /// Moves the container's processes into a new group.
    fn move_processes_to(&self, directory: &Path) -> Result<()> {
        let file = directory.join("cgroup.procs");
        for _ in 0..MAX_ROUNDS {
            let there = std::fs::read_to_string(&file).unwrap_or_default();
            let outside: Vec<u32> = self
                .processes()?
                .into_iter()
                .filter(|pid| !there.lines().any(|line| line.parse() == Ok(*pid)))
                .collect();
            if outside.is_empty() {
                return Ok(());
            }
            for pid in outside {
                match write(&file, &pid.to_string()) {
                    // It has ended.
                    Ok(()) | Err(Errno::SRCH) => {}
                    Err(errno) => {
                        return Err(Error::system(
                            format!("move process {pid} to `{}`", directory.display()),
                            errno,
                        ));
                    }
                }
            }
        }
        let message =
            format!("new processes start faster than they can be moved to `{}`", directory.display());
        Err(Error::new(Kind::System, message).help("pause the container first"))
    }
}

impl PreviousContent {
    /// Only for a file with one line: a file with one line per device is not restored.
    fn of(path: PathBuf) -> Option<Self> {
        let text = std::fs::read_to_string(&path).ok()?;
        let text = text.trim();
        (!text.is_empty() && text.lines().count() == 1 && !text.contains(':'))
            .then(|| Self(path, text.to_owned()))
    }
}

/// The names from the mount of its hierarchy to a group.
fn group_names(group: &GroupRecord, layout: &Layout) -> Option<Vec<String>> {
    let mount = match group.version {
        Version::V2 => &layout.unified.as_ref()?.mount,
        Version::V1 => {
            let shares = |hierarchy: &&Hierarchy| {
                group.controllers.iter().any(|one: &Controller| hierarchy.controllers.contains(one))
            };
            &layout.hierarchies.iter().find(shares)?.mount
        }
    };
    let path = group.directory.strip_prefix(mount).ok()?;
    path.iter().map(|name| name.to_str().map(ToOwned::to_owned)).collect()
}
