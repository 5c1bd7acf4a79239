//! The request of a container for a cgroup.

use oci_spec::runtime::LinuxResources;

use super::scope::ScopeGroup;
use super::unit_group::UnitGroup;

/// A container's request for its cgroup.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
pub struct CgroupRequest<'a> {
    /// The container's name; its group is `/jobc/<id>` where config.json names none.
    pub id: &'a str,
    /// `linux.cgroupsPath`: from the tree's root with a slash before it, from the group of this process without.
    pub path: Option<&'a str>,
    /// The group that systemd makes, instead of one that this program makes at `path`.
    pub unit: Option<&'a UnitGroup>,
    /// The group of a scope that this user's systemd would make around this process: for a plan that is never carried
    /// out.
    pub scope: Option<&'a ScopeGroup>,
    /// `linux.resources`.
    pub resources: Option<&'a LinuxResources>,
    /// Continue if a limit cannot be enforced.
    pub allow_unenforced: bool,
    /// The owner of the group inside the container: the host's numbers for its root, where it has a user namespace and
    /// may write to its groups.
    pub owner: Option<(u32, u32)>,
    /// Whether it gets a group in every cgroup v1 hierarchy, not only where one is needed: for callers that look for
    /// one there, and for a container that sees the paths of its groups.
    pub every_hierarchy: bool,
    /// Whether its disk usage will be reported.
    pub counts_io: bool,
    /// Whether the container has its own user namespace, in which no process can create a device node (mknod(2)).
    pub user_namespace: bool,
}
