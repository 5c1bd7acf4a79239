//! Where in a hierarchy a group can be created.
//!
//! A user who may write to the path of config.json gets the group there. Others (unprivileged users) get it under the
//! nearest group that is delegated to them, with the same names below it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use linux_raw_sys::general::CAP_DAC_OVERRIDE;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

use super::super::controller::Controller;
use super::super::layout::{Hierarchy, UnifiedHierarchy, is_file_system_read_only};
use super::super::limit::{ALLOW_UNENFORCED_HELP, Limit};
use super::super::path::{GroupPath, join_below};
use super::super::scope::ScopeGroup;
use jobc_sys::error::{Error, Kind};
use jobc_sys::host::{ProcessStatus, in_user_namespace};

/// How root has systemd give its users' systemds more controllers (systemd.resource-control(5), `Delegate=`).
pub const DELEGATE_HELP: &str = "as root: mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' \
     >/etc/systemd/system/user@.service.d/delegate.conf && systemctl daemon-reload; then log in again";

/// Where cgroups are mounted as a rule: cgroup v2 itself, cgroup v1 below.
const CGROUP_MOUNT: &str = "/sys/fs/cgroup";

/// The group to make a group in, relative to the mount, and the names below it.
pub(super) type GroupLocation = (PathBuf, Vec<String>);

/// Why a group cannot be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No cgroup hierarchy is mounted.
    NotMounted,
    /// None of the groups that this process is in is delegated to this user.
    NoDelegatedGroup { own: PathBuf },
    /// The hierarchy is mounted read-only, for root too; options of mount(8) that change it.
    ReadOnly { mount: PathBuf, remount: &'static str },
    /// The delegated group contains processes, so its controllers cannot be passed on.
    HoldsProcesses { group: PathBuf, controllers: Vec<Controller> },
    /// The delegated group does not have the controllers.
    MissingControllers { group: PathBuf, controllers: Vec<Controller> },
    /// The group of this user's systemd does not have the controllers, so none of its scopes does.
    ControllersNotDelegated { group: PathBuf, controllers: Vec<Controller> },
    /// The group of this process cannot be seen from here.
    NotVisible,
}

impl Refusal {
    /// The error that a limit cannot be enforced for this reason.
    pub(super) fn limit_error(&self, limit: &Limit) -> Error {
        let error = Error::new(Kind::Unenforceable, self.to_string()).at(&limit.pointer);
        let hints = self.advice().into_iter().chain([ALLOW_UNENFORCED_HELP.to_owned()]).collect();
        Error { hints, ..error }
    }

    /// The controllers that are missing where others are available.
    pub(super) fn missing_controllers(&self) -> &[Controller] {
        match self {
            Self::MissingControllers { controllers, .. }
            | Self::ControllersNotDelegated { controllers, .. } => controllers,
            _ => &[],
        }
    }

    /// Whether a group delegated to this user would help.
    pub(super) fn needs_delegated_group(&self) -> bool {
        matches!(
            self,
            Self::NoDelegatedGroup { .. } | Self::HoldsProcesses { .. } | Self::MissingControllers { .. }
        )
    }

    /// What to do for this reason, where there is anything.
    pub(super) fn advice(&self) -> Option<String> {
        Some(match self {
            Self::NoDelegatedGroup { .. } => "start it in a cgroup of your own, for example with `systemd-run --user --scope --property=Delegate=yes`, or use `jobc oci --systemd-cgroup`".to_owned(),
            Self::ReadOnly { mount, remount } => {
                // With cgroup v1 each hierarchy is a mount, and as a rule all are read-only.
                let (all, each) = match mount.parent() {
                    Some(above) if mount != Path::new(CGROUP_MOUNT) => {
                        let above = above.display();
                        (format!("{above}"), format!("for each in {above}/*; do mount -o {remount} $each; done"))
                    }
                    _ => (mount.display().to_string(), format!("mount -o {remount} {}", mount.display())),
                };
                format!("as root: `{each}`; in a container, start that with cgroups mounted read-write (`--privileged`, or `-v {all}:{all}:rw`)")
            }
            Self::HoldsProcesses { group, .. } => format!(
                "move its processes to a child: `mkdir {0}/main` and write their PIDs to `{0}/main/cgroup.procs`",
                group.display()
            ),
            Self::MissingControllers { group, controllers } => format!(
                "have root enable them for it (`+{}` in `cgroup.subtree_control` of the parent of `{}`, or `Delegate=` of its unit)",
                names(controllers, " +"),
                group.display()
            ),
            Self::ControllersNotDelegated { .. } => DELEGATE_HELP.to_owned(),
            Self::NotMounted | Self::NotVisible => return None,
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMounted => f.write_str("no cgroups are available for the container"),
            Self::NoDelegatedGroup { own } => {
                write!(f, "this user cannot create cgroups in `{}` or above it", own.display())
            }
            Self::ReadOnly { mount, .. } => {
                write!(f, "the cgroup hierarchy `{}` is mounted read-only", mount.display())
            }
            Self::HoldsProcesses { group, controllers } => write!(
                f,
                "the cgroup `{}` holds processes, so it cannot enable `{}` for its children",
                group.display(),
                names(controllers, " ")
            ),
            Self::MissingControllers { group, controllers } => {
                let names = names(controllers, " ");
                write!(f, "the cgroup `{}` does not have the controllers `{names}`", group.display())
            }
            Self::ControllersNotDelegated { group, controllers } => write!(
                f,
                "the cgroup `{}` of the user's systemd does not have the controllers `{}`",
                group.display(),
                names(controllers, " ")
            ),
            Self::NotVisible => f.write_str("the cgroup of this process is not mounted here"),
        }
    }
}

/// The place in a cgroup v1 hierarchy.
pub(super) fn locate_in_hierarchy(hierarchy: &Hierarchy, path: &GroupPath) -> Result<GroupLocation, Refusal> {
    let (mount, own) = (&hierarchy.mount, hierarchy.own_group.as_deref());
    let start = if path.absolute { Path::new("") } else { own.ok_or(Refusal::NotVisible)? };
    if hierarchy.writable && bypasses_permissions()
        || can_create_group(&join_below(mount, start), &path.names)
    {
        return Ok((start.to_owned(), path.names.clone()));
    }
    let own = own.ok_or(Refusal::NotVisible)?;
    let given = own.ancestors().find(|group| writable(&join_below(mount, group)));
    let base = given.ok_or_else(|| no_group(mount, own))?;
    Ok((base.to_owned(), path.names.clone()))
}

/// The place in the cgroup v2 hierarchy, for a group with those controllers.
///
/// A process can be moved between groups only by a user who may write to `cgroup.procs` of their common ancestor, and a
/// group that holds processes cannot pass controllers on (cgroup-v2.rst, "Delegation Containment", "No Internal Process
/// Constraint"); other users' processes are not moved.
pub(super) fn locate_in_unified(
    unified: &UnifiedHierarchy,
    path: &GroupPath,
    needed: &[Controller],
) -> Result<GroupLocation, Refusal> {
    let mount = &unified.mount;
    let start = if path.absolute {
        Path::new("")
    } else {
        unified.own_group.as_deref().ok_or(Refusal::NotVisible)?
    };
    let may = unified.writable && bypasses_permissions();
    if may
        || can_create_group(&join_below(mount, start), &path.names)
            && can_move_process(unified, &start.join(path.relative()))
    {
        return Ok((start.to_owned(), path.names.clone()));
    }
    let own = unified.own_group.as_deref().ok_or(Refusal::NotVisible)?;
    let mut nearest = None;
    for group in own.ancestors() {
        let directory = join_below(mount, group);
        if !writable(&directory) || !writable(&directory.join("cgroup.procs")) {
            continue;
        }
        match check_delegation(&directory, needed) {
            Ok(()) => return Ok((group.to_owned(), path.names.clone())),
            Err(refusal) => nearest = nearest.or(Some(refusal)),
        }
    }
    Err(nearest.unwrap_or_else(|| no_group(mount, own)))
}

/// Why this process cannot create a group in its own group or above it: what helps a user does not help root.
fn no_group(mount: &Path, own: &Path) -> Refusal {
    let own = join_below(mount, own);
    if is_root_of_host() && accessat(CWD, &own, Access::WRITE_OK, AtFlags::EACCESS) == Err(Errno::ROFS) {
        // If the file system is read-only, and not just its mount, a remount changes all of its mounts.
        let remount = if is_file_system_read_only(mount) { "remount,rw" } else { "remount,bind,rw" };
        return Refusal::ReadOnly { mount: mount.to_owned(), remount };
    }
    Refusal::NoDelegatedGroup { own }
}

/// Whether groups below `directory` can have the controllers.
fn check_delegation(directory: &Path, needed: &[Controller]) -> Result<(), Refusal> {
    let list = |file: &str| {
        let text = fs::read_to_string(directory.join(file)).unwrap_or_default();
        text.split_whitespace().filter_map(Controller::from_name).collect::<Vec<_>>()
    };
    let off = missing(needed, &list("cgroup.subtree_control"));
    if off.is_empty() {
        return Ok(());
    }
    let lacking = missing(needed, &list("cgroup.controllers"));
    if !lacking.is_empty() {
        return Err(Refusal::MissingControllers { group: directory.to_owned(), controllers: lacking });
    }
    if fs::read_to_string(directory.join("cgroup.procs")).is_ok_and(|list| !list.is_empty()) {
        return Err(Refusal::HoldsProcesses { group: directory.to_owned(), controllers: off });
    }
    Ok(())
}

/// The missing controllers, each once.
fn missing(needed: &[Controller], there: &[Controller]) -> Vec<Controller> {
    let lacks = |one: &Controller| !one.is_always_enabled() && !there.contains(one);
    let mut missing: Vec<Controller> = needed.iter().copied().filter(lacks).collect();
    missing.dedup();
    missing
}

/// The place in a scope that this user's systemd would make: it has what the group of that systemd has.
pub(super) fn locate_in_scope(
    unified: &UnifiedHierarchy,
    scope: &ScopeGroup,
    path: &GroupPath,
    needed: &[Controller],
) -> Result<GroupLocation, Refusal> {
    let lacking = missing(needed, &scope.controllers(unified));
    if lacking.is_empty() {
        Ok((scope.systemd.join(&scope.below), path.names.clone()))
    } else {
        let group = join_below(&unified.mount, &scope.systemd);
        Err(Refusal::ControllersNotDelegated { group, controllers: lacking })
    }
}

/// Whether this process is root on the host, and not only in a user namespace.
fn is_root_of_host() -> bool {
    rustix::process::geteuid().is_root() && !in_user_namespace()
}

/// The names of controllers, joined with a separator.
fn names(controllers: &[Controller], between: &str) -> String {
    controllers.iter().map(|one| one.name()).collect::<Vec<_>>().join(between)
}

/// Whether a process of this group may be made in, or moved to, the group `to`.
pub(in super::super) fn can_move_process(unified: &UnifiedHierarchy, to: &Path) -> bool {
    let Some(own) = &unified.own_group else { return true };
    let common: PathBuf =
        own.components().zip(to.components()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
    writable(&join_below(&unified.mount, &common).join("cgroup.procs"))
}

/// Whether this process can write files regardless of their permissions, as the host's root can.
fn bypasses_permissions() -> bool {
    let overrides = |status: ProcessStatus| status.effective & 1 << CAP_DAC_OVERRIDE != 0;
    ProcessStatus::of_this_process().is_ok_and(overrides) && !in_user_namespace()
}

/// Whether this process may create a group of those names: whether it may write to the deepest existing directory.
fn can_create_group(base: &Path, names: &[String]) -> bool {
    for depth in (0..names.len()).rev() {
        let directory = base.join(names[..depth].iter().collect::<PathBuf>());
        match accessat(CWD, &directory, Access::WRITE_OK, AtFlags::EACCESS) {
            Ok(()) => return true,
            Err(Errno::NOENT) => {}
            Err(_) => return false,
        }
    }
    false
}

/// Whether this process may make directories there, or write to the file.
fn writable(path: &Path) -> bool {
    accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}
