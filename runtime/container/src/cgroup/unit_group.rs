//! Where the group of a unit of systemd is.

use std::path::PathBuf;

use super::path::GroupPath;
use crate::systemd::Unit;

/// Where the group of a unit is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitGroup {
    base: PathBuf,
    names: Vec<String>,
    /// Whether processes are put into it by its files: systemd puts none into a slice.
    pub(super) is_slice: bool,
}

impl UnitGroup {
    /// The group of a unit of a systemd whose own group is `base`, relative to the root of the tree.
    pub fn of(unit: &Unit, base: PathBuf) -> Self {
        Self { base, names: unit.groups(), is_slice: unit.is_slice() }
    }

    pub(super) fn path(&self) -> GroupPath {
        GroupPath { absolute: true, names: self.names.clone() }
    }

    pub(super) fn in_tree(&self) -> (PathBuf, Vec<String>) {
        (self.base.clone(), self.names.clone())
    }

    /// Cgroup v1 hierarchies have the groups above only where something is limited there.
    pub(super) fn in_hierarchy(&self) -> (PathBuf, Vec<String>) {
        let base = self.base.iter().map(|name| name.to_string_lossy().into_owned());
        (PathBuf::new(), base.chain(self.names.iter().cloned()).collect())
    }
}
