//! The group of a scope that a user's systemd creates around a supervisor.
//!
//! It is delegated to the user (`Delegate=`), and a group that passes controllers on cannot hold processes itself
//! (cgroup-v2.rst, "No Internal Process Constraint"). So the process moves one level down, to [`SUPERVISOR_GROUP`], and
//! groups of containers are its siblings.

use std::path::{Path, PathBuf};

use rustix::fs::{Mode, chmod, mkdir};

use super::controller::Controller;
use super::file::write;
use super::layout::{Layout, UnifiedHierarchy};
use crate::systemd::Unit;
use jobc_sys::error::{Error, Kind, Result};

/// The group of the supervisor and of the programs it starts besides containers, below the scope's.
pub const SUPERVISOR_GROUP: &str = "supervisor";

/// The location that the group of a scope would have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeGroup {
    /// The group of systemd itself, relative to the root of the tree: it exists, and has the controllers that its
    /// scopes can have.
    pub(super) systemd: PathBuf,
    /// The scope's group, below that.
    pub(super) below: PathBuf,
}

impl ScopeGroup {
    /// The group of a unit of a systemd whose own group is `systemd`, relative to the root of the tree.
    pub fn of(unit: &Unit, systemd: &Path) -> Self {
        Self { systemd: systemd.to_owned(), below: unit.groups().iter().collect() }
    }

    /// The controllers that it has once it is made: those of systemd's own group.
    pub fn controllers(&self, tree: &UnifiedHierarchy) -> Vec<Controller> {
        let list = std::fs::read_to_string(tree.mount.join(&self.systemd).join("cgroup.controllers"));
        list.unwrap_or_default().split_whitespace().filter_map(Controller::from_name).collect()
    }

    /// Moves this process, which systemd has put into the scope's group, to [`SUPERVISOR_GROUP`] below it.
    ///
    /// # Errors
    ///
    /// It is not in that group, or the kernel refuses.
    pub fn enter_supervisor_group(unit: &Unit) -> Result<()> {
        let unified = Layout::detect()?.unified;
        let own = unified.and_then(|unified| Some(unified.mount.join(unified.own_group?)));
        let Some(group) = own.as_ref().filter(|own| own.file_name() == Some(unit.name.as_ref())) else {
            let own = own.map_or_else(
                || "a cgroup that is not visible here".to_owned(),
                |own| format!("`{}`", own.display()),
            );
            let message =
                format!("the user's systemd created `{}`, but left this process in {own}", unit.name);
            return Err(Error::new(Kind::System, message));
        };
        let leaf = group.join(SUPERVISOR_GROUP);
        mkdir(&leaf, Mode::from_raw_mode(0o755))
            .and_then(|()| write(&leaf.join("cgroup.procs"), "0"))
            // Containers' groups are not made below it: they would have no controllers.
            .and_then(|()| chmod(&leaf, Mode::from_raw_mode(0o555)))
            .map_err(|errno| Error::system(format!("move to the cgroup `{}`", leaf.display()), errno))
    }
}
