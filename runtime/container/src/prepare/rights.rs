//! The permissions of the process: limits, scheduling, user, capabilities, filter.

use oci_spec::runtime::{LinuxSeccompAction, Process, Spec};

use super::identity::Identity;
use super::steps::{Steps, c_string};
use crate::capabilities::CapabilitySets;
use crate::config::memory_policy::MemoryPolicy;
use crate::config::scheduling;
use crate::operation::Operation;
use crate::privileges::SetCapabilities;
use crate::rlimits::Limit;
use crate::seccomp::{self, Program as Filter};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::host::Host;
use jobc_sys::syscall::CapabilityBits;

/// The umask where config.json has none, as in a login shell.
const DEFAULT_UMASK: u32 = 0o022;

/// The capability that may load a filter without no-new-privileges.
const SYS_ADMIN: u64 = 1 << linux_raw_sys::general::CAP_SYS_ADMIN;

/// The annotation with which the process keeps the supplementary groups of the user who starts it, with any value.
pub(crate) const KEEP_GROUPS: &str = "run.oci.keep_original_groups";

/// The remaining work after the steps.
pub(super) struct Rights {
    /// The filter, where the trampoline is to load it.
    pub(super) filter: Option<Filter>,
    /// Whether the process changes its user in one of the steps.
    pub(super) changes_user: bool,
}

/// Lists the steps.
pub(super) fn list(
    steps: &mut Steps,
    spec: &Spec,
    process: &Process,
    identity: &Identity,
    machine: &Host,
) -> Result<Rights> {
    for (index, limit) in
        crate::rlimits::from_config(process.rlimits().as_deref().unwrap_or_default())?.into_iter().enumerate()
    {
        let Limit { name, resource, soft, hard } = limit;
        steps
            .push_at(format!("/process/rlimits/{index}"), Operation::SetLimit { name, resource, soft, hard });
    }
    if let Some(priority) = process.io_priority() {
        steps.push_at("/process/ioPriority", Operation::SetIoPriority(scheduling::io_priority(*priority)?));
    }
    if let Some(scheduler) = process.scheduler() {
        steps.push_at("/process/scheduler", Operation::SetScheduler(scheduling::scheduler(scheduler)?));
    }
    let linux = spec.linux().as_ref();
    if let Some(personality) = linux.and_then(|linux| linux.personality().as_ref()) {
        steps.push_at("/linux/personality", Operation::SetPersonality(scheduling::personality(personality)?));
    }
    if let Some(policy) = linux.and_then(|linux| linux.memory_policy().as_ref()) {
        steps.push_at("/linux/memoryPolicy", Operation::SetMemoryPolicy(MemoryPolicy::of(policy)?));
    }
    let profile = linux.and_then(|linux| linux.seccomp().as_ref());
    let mut filter = profile.map(seccomp::compile).transpose()?;
    // Usual profiles list the calls of all architectures. Unknown calls get the default action, so only a default that
    // allows would permit a call that a rule was to refuse.
    let lets_through = profile.is_some_and(|profile| {
        matches!(profile.default_action(), LinuxSeccompAction::ScmpActAllow | LinuxSeccompAction::ScmpActLog)
    });
    if let Some(program) = filter.as_ref().filter(|program| lets_through && !program.unknown.is_empty()) {
        let names = program.unknown.join("`, `");
        steps.warn("/linux/seccomp", format_args!("this architecture has no syscall `{names}`"));
    }
    let no_new_privileges = process.no_new_privileges().unwrap_or(false);
    if filter.as_ref().is_some_and(|program| !program.notifies())
        && profile.is_some_and(|profile| profile.listener_path().is_some())
    {
        steps.warn(
            "/linux/seccomp/listenerPath",
            "no syscall has the action `SCMP_ACT_NOTIFY`, so the agent is never notified",
        );
    }
    let requested = process.capabilities().as_ref().map(CapabilitySets::of).transpose()?.unwrap_or_default();
    // In its own user namespace a process holds every capability; elsewhere it passes on what it has.
    let held = if identity.own_user_namespace { u64::MAX } else { machine.permitted };
    let sets = requested.limit_to(held);
    if sets != requested {
        let names = requested.missing_from(held).join("`, `");
        steps.warn(
            "/process/capabilities",
            format_args!("`{names}` cannot be granted: this process does not have them"),
        );
    }
    // The first process in a user namespace starts with all of them; elsewhere a process has no more than its parent.
    let bounding = if identity.own_user_namespace {
        crate::capabilities::kernel_capabilities()?
    } else {
        machine.bounding
    };
    // Without the promise only CAP_SYS_ADMIN may load a filter. Our own calls are not to follow the profile, so the
    // right lives until the trampoline loads it, past the program's own sets.
    let loads = filter.as_mut().filter(|_| !no_new_privileges && held & SYS_ADMIN != 0);
    let extra = if loads.is_some() { SYS_ADMIN } else { 0 };
    let user = process.user();
    let ambient = sets.ambient & !sets.ineffective_ambient();
    if let Some(program) = loads {
        // The program will have the same: the kernel hides a program that gains rights from its own user.
        let own = if user.uid() == 0 { bounding & sets.bounding | sets.inheritable } else { ambient };
        let kept = own | SYS_ADMIN;
        program.rights_after =
            Some(CapabilityBits { effective: kept, permitted: kept, inheritable: sets.inheritable });
        program.rights_without =
            Some(CapabilityBits { effective: own, permitted: own, inheritable: sets.inheritable });
        if sets.bounding & SYS_ADMIN == 0 {
            // A capability outside the bounding set can no longer be made inheritable (capset of security/commoncap.c).
            let all = if identity.own_user_namespace {
                crate::capabilities::kernel_capabilities()?
            } else {
                machine.permitted
            };
            let bits = CapabilityBits { effective: all, permitted: all, inheritable: SYS_ADMIN };
            steps.push_at(
                "/linux/seccomp",
                Operation::SetCapabilities(SetCapabilities { bits, ambient: Vec::new() }),
            );
        }
    }
    // root's own capabilities come of the bounding and the inheritable set, another user's of the ambient one.
    let ambient = ambient | if user.uid() == 0 { 0 } else { extra };
    let dropped: Vec<u32> = (0..64).filter(|bit| bounding & !sets.bounding & (1 << bit) != 0).collect();
    steps.push_at("/process/capabilities/bounding", Operation::DropBounding(dropped));
    if no_new_privileges {
        steps.push_at("/process/noNewPrivileges", Operation::NoNewPrivileges);
    }
    // As with crun, which podman's `--group-add keep-groups` asks for: data that only a group may read.
    let annotations = spec.annotations().as_ref();
    let keeps_groups = annotations.is_some_and(|annotations| annotations.contains_key(KEEP_GROUPS));
    let groups = user.additional_gids().clone().filter(|_| !keeps_groups).unwrap_or_default();
    if identity.groups_denied && !groups.is_empty() {
        return Err(Error::new(
            Kind::Unenforceable,
            "supplementary groups cannot be set when only one id is mapped",
        )
        .at("/process/user/additionalGids")
        .help("ask the administrator for a range in /etc/subgid, or remove the groups"));
    }
    let is_already = !identity.own_user_namespace
        && machine.only_ids == Some((user.uid(), user.gid()))
        && groups.is_empty();
    let groups = if identity.groups_denied || keeps_groups { None } else { Some(groups) };
    let directory = c_string(process.cwd().as_os_str().as_encoded_bytes(), "/process/cwd")?;
    // As with runc: a directory that its user may not search is entered with the rights there are until then.
    let changes_user = !is_already && user.uid() != 0;
    steps.push_at(
        "/process/cwd",
        Operation::ChangeDirectory { path: directory.clone(), is_retried: changes_user },
    );
    if !is_already {
        steps.push_at("/process/user", Operation::BecomeUser { uid: user.uid(), gid: user.gid(), groups });
    }
    steps.push_at(
        "/process/capabilities",
        Operation::SetCapabilities(SetCapabilities {
            bits: CapabilityBits {
                effective: sets.effective | extra,
                permitted: sets.permitted | extra,
                inheritable: sets.inheritable | extra,
            },
            ambient: (0..64).filter(|bit| ambient & (1 << bit) != 0).collect(),
        }),
    );
    steps.push_at("/process/user/umask", Operation::SetUmask(user.umask().unwrap_or(DEFAULT_UMASK)));
    if changes_user {
        steps.push_at("/process/cwd", Operation::RetryDirectory(directory));
    }
    Ok(Rights { filter, changes_user: !is_already })
}
