//! Plans which groups a container gets, where they are created, and what is written to them. Nothing is changed here.

mod inherited;
mod location;

use std::fmt;
use std::path::PathBuf;

use super::controller::Controller;
use super::devices::{self, Rule, program};
use super::layout::{Hierarchy, Layout, Version};
use super::limit::{ALLOW_UNENFORCED_HELP, Limit, Limits};
use super::path::{GroupPath, join_below};
use super::request::CgroupRequest;
use super::unenforced::UnenforcedLimit;
use jobc_sys::error::{Error, Kind, Result};
pub use location::DELEGATE_HELP;
use location::Refusal;
pub(super) use location::can_move_process;

/// The groups of a container, before they are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// One group a cgroup v1 hierarchy, then the one of the cgroup v2 hierarchy.
    pub groups: Vec<Group>,
    /// Limits that nothing enforces, known before anything was tried.
    pub unenforced: Vec<UnenforcedLimit>,
    /// Whether some of those are missing only because this user has no delegated cgroup v2 group.
    pub lacks_group: bool,
}

/// A group to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The hierarchy it is in.
    pub interface: Interface,
    /// Where the hierarchy is mounted.
    pub mount: PathBuf,
    /// Its existing parent, relative to the mount.
    pub base: PathBuf,
    /// The directories' names from there, the last of them the container's own group.
    pub names: Vec<String>,
    /// The limits, in the order they are written.
    pub limits: Vec<Limit>,
    /// The rules about devices, where this group keeps them.
    pub devices: Option<Vec<Rule>>,
    /// Whether systemd creates it: then an existing group is not another container's.
    pub made_by_systemd: bool,
}

/// A hierarchy as the container sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interface {
    /// A cgroup v1 hierarchy.
    V1(Hierarchy),
    /// The cgroup v2 hierarchy.
    V2,
}

impl Plan {
    /// Decides which groups a container gets.
    ///
    /// # Errors
    ///
    /// A path or a limit that makes no sense; unless that is allowed, a limit that cannot be enforced.
    pub fn of(layout: &Layout, request: &CgroupRequest<'_>) -> Result<Self> {
        let path = match request.unit {
            None => GroupPath::of(request.path, request.id)?,
            Some(unit) => unit.path(),
        };
        let mut limits = match request.resources {
            Some(resources) => Limits::of(resources, layout)?,
            None => Limits::default(),
        };
        let list = request.resources.and_then(|resources| resources.devices().as_deref()).unwrap_or_default();
        let rules = devices::rules(list)?;
        // Nothing to keep from whom everything is allowed.
        let rules = (rules != [devices::ALLOW_ALL]).then_some(rules);

        let mut impossible = std::mem::take(&mut limits.unsupported);
        let mut groups = vec![];
        for hierarchy in &layout.hierarchies {
            let (inside, rest): (Vec<_>, Vec<_>) = limits.writable.into_iter().partition(|limit| {
                hierarchy.controllers.contains(&limit.controller)
                    && layout.version(limit.controller) == Some(Version::V1)
            });
            limits.writable = rest;
            let devices = rules.clone().filter(|_| hierarchy.controllers.contains(&Controller::Devices));
            let wanted = !inside.is_empty()
                || request.every_hierarchy
                // A unit's processes are together wherever systemd looks for them.
                || request.unit.is_some()
                || devices.is_some()
                // Usage is counted even without limits.
                || hierarchy.controllers.contains(&Controller::Memory)
                || request.counts_io && hierarchy.controllers.contains(&Controller::Io)
                // Every group of the cgroup v2 hierarchy counts time (cgroup-v2.rst, `cpu.stat`).
                || layout.unified.is_none() && hierarchy.controllers.contains(&Controller::Cpuacct)
                // Without the cgroup v2 hierarchy this is how all processes of a container are found and killed.
                || layout.unified.is_none() && hierarchy.controllers.contains(&Controller::Freezer);
            if !wanted {
                continue;
            }
            let found = match request.unit {
                None => location::locate_in_hierarchy(hierarchy, &path),
                Some(unit) => Ok(unit.in_hierarchy()),
            };
            match found {
                Ok((base, names)) => groups.push(Group {
                    interface: Interface::V1(hierarchy.clone()),
                    mount: hierarchy.mount.clone(),
                    base,
                    names,
                    limits: inside,
                    devices,
                    made_by_systemd: request.unit.is_some(),
                }),
                Err(refusal) => {
                    impossible.extend(inside.iter().map(|limit| refusal.limit_error(limit)));
                    impossible.extend(devices.and_then(|_| refused_devices(request, &refusal)));
                }
            }
        }
        let by_program = rules.filter(|_| layout.hierarchy(Controller::Devices).is_none());
        let mut lacks_group = false;
        if let Some(unified) = &layout.unified {
            let find = |limits: &[Limit]| {
                let needed: Vec<Controller> = limits.iter().map(|limit| limit.controller).collect();
                match (request.unit, request.scope) {
                    (Some(unit), _) => Ok(unit.in_tree()),
                    (None, Some(scope)) => location::locate_in_scope(unified, scope, &path, &needed),
                    (None, None) => location::locate_in_unified(unified, &path, &needed),
                }
            };
            let mut found = find(&limits.writable);
            // If some controllers are missing, the limits of the others are still enforced.
            if let Err(refusal) = &found
                && !refusal.missing_controllers().is_empty()
            {
                let (lost, kept): (Vec<_>, Vec<_>) = limits
                    .writable
                    .into_iter()
                    .partition(|limit| refusal.missing_controllers().contains(&limit.controller));
                impossible.extend(lost.iter().map(|limit| refusal.limit_error(limit)));
                lacks_group = refusal.needs_delegated_group();
                limits.writable = kept;
                found = find(&limits.writable);
            }
            match found {
                Ok((base, names)) => groups.push(Group {
                    interface: Interface::V2,
                    mount: unified.mount.clone(),
                    base,
                    names,
                    limits: limits.writable,
                    devices: by_program.filter(|_| !request.user_namespace || can_load_device_program()),
                    made_by_systemd: request.unit.is_some(),
                }),
                Err(refusal) => {
                    lacks_group |= !limits.writable.is_empty() && refusal.needs_delegated_group();
                    impossible.extend(limits.writable.iter().map(|limit| refusal.limit_error(limit)));
                    impossible.extend(by_program.and_then(|_| refused_devices(request, &refusal)));
                }
            }
        } else if by_program.is_some() {
            impossible.extend(refused_devices(request, &Refusal::NotMounted));
        }
        if layout.hierarchies.is_empty() && layout.unified.is_none() {
            // The one reason for all limits, regardless of what each would need.
            for error in &mut impossible {
                error.what = Refusal::NotMounted.to_string();
            }
        }
        let unenforced = accept_unenforced(impossible, request)?;
        Ok(Self { groups, unenforced, lacks_group })
    }

    /// Whether limits of a container would have a place if this user were given a cgroup v2 group.
    pub(crate) fn would_use_delegated_group(layout: &Layout, request: &CgroupRequest<'_>) -> bool {
        let allowed = CgroupRequest { allow_unenforced: true, ..*request };
        Self::of(layout, &allowed).is_ok_and(|plan| plan.lacks_group)
    }

    /// Removes those of the groups that exist and have no process; the groups above them stay.
    pub(crate) fn remove_empty(&self) {
        for group in &self.groups {
            let _ = rustix::fs::rmdir(group.directory());
        }
    }

    /// The steps, one per line, for users.
    pub fn describe(&self) -> Vec<String> {
        let mut lines = vec![];
        for group in &self.groups {
            lines.push(format!("make the cgroup `{}`", group.directory().display()));
            for limit in &group.limits {
                for (file, text) in &limit.files {
                    lines.push(format!("write `{text}` to its `{file}`"));
                }
            }
            match (&group.devices, &group.interface) {
                (Some(rules), Interface::V1(_)) => {
                    let writes = devices::writes(rules).unwrap_or_default();
                    lines.extend(
                        writes.into_iter().map(|(file, text)| format!("write `{text}` to its `{file}`")),
                    );
                }
                (Some(rules), Interface::V2) => {
                    let length = program::assemble(rules).len();
                    lines.push(format!("attach a device program of {length} instructions to it"));
                }
                (None, _) => {}
            }
        }
        lines
    }
}

impl Group {
    /// The group's directory.
    pub fn directory(&self) -> PathBuf {
        self.base_directory().join(self.names.iter().collect::<PathBuf>())
    }

    /// The directory of the group that it is made in.
    pub(super) fn base_directory(&self) -> PathBuf {
        join_below(&self.mount, &self.base)
    }

    /// The directories between the base and the group, the highest first.
    pub(super) fn ancestor_names(&self) -> Vec<PathBuf> {
        let base = self.base_directory();
        (1..self.names.len())
            .map(|depth| base.join(self.names[..depth].iter().collect::<PathBuf>()))
            .collect()
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V1(hierarchy) => f.write_str(&hierarchy.name),
            Self::V2 => f.write_str("the cgroup v2 hierarchy"),
        }
    }
}

/// Accepts limits that cannot be enforced, if that is allowed.
pub(super) fn accept_unenforced(
    impossible: Vec<Error>,
    request: &CgroupRequest<'_>,
) -> Result<Vec<UnenforcedLimit>> {
    let allowed = request.allow_unenforced;
    impossible.into_iter().map(|error| if allowed { Ok(error.into()) } else { Err(error) }).collect()
}

/// The consequence if no group enforces the device rules.
///
/// In a user namespace no process can create a device node, so the container has only the nodes that it was given, as
/// with a list that only allows. A rule that denies a device is then not enforced, and outside user namespaces no rule
/// is.
pub(super) fn device_rules_error(request: &CgroupRequest<'_>, why: &dyn fmt::Display) -> Option<Error> {
    let written = request.resources.and_then(|resources| resources.devices().as_deref()).unwrap_or_default();
    if request.user_namespace && !devices::has_effective_deny(written) {
        return None;
    }
    let message = format!("device access cannot be restricted: {why}");
    // Every container is denied the host's devices, even if config.json has no list.
    let help =
        if written.is_empty() { "run without it with `--allow-unenforced`" } else { ALLOW_UNENFORCED_HELP };
    Some(Error::new(Kind::Unenforceable, message).at(devices::DEVICES_POINTER).help(help))
}

/// As above if no group can be created to enforce them, with advice.
fn refused_devices(request: &CgroupRequest<'_>, refusal: &Refusal) -> Option<Error> {
    let mut error = device_rules_error(request, refusal)?;
    error.hints.splice(..0, refusal.advice());
    Some(error)
}

/// Whether this process may load and attach a device program: it needs capabilities in the first user namespace.
fn can_load_device_program() -> bool {
    rustix::process::geteuid().is_root() && !jobc_sys::host::needs_user_namespace()
}

#[cfg(test)]
mod tests;
