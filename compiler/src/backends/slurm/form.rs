//! Which form the script of a group has: that of a user of Slurm, or one that runs jobc.
//!
//! Slurm starts, signals, limits and requeues the tasks of one role by itself: such a group is one `srun`
//! ([`direct`](super::direct)). What else a job asks for is decided by jobc on the nodes ([`node`](super::node)).
//! docs/reference/slurm.md has the table.

use jobc_schema::Pointer;
use jobc_schema::plan::{CODE, JobPlan, Launch, MountPlan, RetryPlan, RolePlan, VolumeSource};
use jobc_schema::role::{RetryScope, Security};
use jobc_schema::target::SlurmContainer;

use crate::diagnostic::{Diagnostic, Location, Sink, codes};

use super::command::{self, Command};
use super::group::Group;
use super::header::Request;
use super::limit;
use super::parts::Parts;
use super::{contained, header, run};

/// How the tasks of a group are run.
pub(super) enum Form<'a> {
    /// By one `srun`, which replaces the shell of the script.
    Direct(Direct<'a>),
    /// By jobc on the nodes, for this reason.
    Node(&'static str),
}

/// What a direct script is made of.
pub(super) struct Direct<'a> {
    pub(super) role: &'a RolePlan,
    pub(super) command: Command,
    /// What runs the containers of the role: nothing for the files of the node.
    pub(super) container: SlurmContainer,
}

/// The form of a group; `groups` are all of the job.
pub(super) fn of<'a>(parts: &Parts<'_>, groups: &[Group<'_>], group: &Group<'a>) -> Form<'a> {
    by_slurm(parts, groups, group).map_or_else(Form::Node, Form::Direct)
}

/// What a direct script is made of, or why Slurm alone does not run the tasks.
fn by_slurm<'a>(
    parts: &Parts<'_>,
    groups: &[Group<'_>],
    group: &Group<'a>,
) -> Result<Direct<'a>, &'static str> {
    let [role] = group.roles[..] else {
        return Err("several roles share the allocation");
    };
    if let Some(reason) = needs_more(parts, groups, role) {
        return Err(reason);
    }
    let container = container(parts, role);
    if container == SlurmContainer::Jobc {
        let command = Command { exports: vec![], words: contained::command(parts, role) };
        return Ok(Direct { role, command, container });
    }
    command::of(parts, role).map(|command| Direct { role, command, container })
}

/// Whether tasks of a group run in containers.
pub(super) fn has_container(parts: &Parts<'_>, groups: &[Group<'_>], group: &Group<'_>) -> bool {
    match of(parts, groups, group) {
        Form::Direct(Direct { container, .. }) => container != SlurmContainer::None,
        Form::Node(_) => parts.container() != SlurmContainer::None,
    }
}

/// Reports checks that no script makes, because no role waits for them, and what `scancel` does not leave.
pub(super) fn check(parts: &Parts<'_>, groups: &[Group<'_>], sink: &mut Sink) {
    check_grace(parts, sink);
    for group in groups {
        if parts.settings.program().is_none() {
            check_without_jobc(parts, groups, group, sink);
        }
        if let Form::Direct(Direct { role, .. }) = of(parts, groups, group)
            && role.ready.is_some()
        {
            let message = format!("no role waits for `{}`, so nothing checks whether it is ready", role.name);
            sink.push(Diagnostic::info(codes::SLURM_READY, message).at_key(&role.at().key("ready"), ""));
        }
    }
}

/// Warns of the time that `scancel` and a preemption leave: Slurm itself knows none of the job's.
fn check_grace(parts: &Parts<'_>, sink: &mut Sink) {
    let wait = parts.settings.kill_wait.map_or(30, |wait| wait.0);
    let Some(role) = parts.job.roles.iter().max_by_key(|role| role.grace_period_seconds) else { return };
    if role.grace_period_seconds > wait {
        let message = format!(
            "`scancel` leaves role `{}` {wait} s, not its {} s",
            role.name, role.grace_period_seconds
        );
        sink.push(
            Diagnostic::warning(codes::SLURM_GRACE, message).at(&role.at().key("grace_period"), "").note(
                "the time limit and `jobc stop` leave all of it; where the `KillWait` of the cluster is longer, write it as `kill_wait` of the target",
            ),
        );
    }
}

/// Reports what needs jobc on the nodes of a target that has none.
fn check_without_jobc(parts: &Parts<'_>, groups: &[Group<'_>], group: &Group<'_>, sink: &mut Sink) {
    let role = group.roles[0];
    let form = of(parts, groups, group);
    if let Form::Node(reason) = form {
        let message = format!("Slurm alone does not run `{}`: {reason}", role.name);
        let key = ["retry", "completion", "files", "run"].into_iter().find(|key| match *key {
            "retry" => reason.contains("retr"),
            "completion" => reason.contains("completion"),
            "files" => reason.starts_with("files"),
            _ => reason.contains("script"),
        });
        let at = key.filter(|_| group.roles.len() == 1).map_or_else(|| role.at(), |key| role.at().key(key));
        sink.push(
            Diagnostic::error(codes::SLURM_WITHOUT_JOBC, message).at_key(&at, "").note(
                "the target has `jobc: none`; leave this out, or let jobc run on the nodes: `jobc: auto`",
            ),
        );
    } else if let Form::Direct(Direct { container: SlurmContainer::Jobc, .. }) = form {
        let message = "`container: jobc` runs jobc on the nodes, and the target has `jobc: none`".to_owned();
        let at = Pointer::ROOT.keys(["targets", &parts.job.target.name, "slurm", "jobc"]);
        sink.push(
            Diagnostic::error(codes::SLURM_WITHOUT_JOBC, message)
                .at_place(Location::target(&at), "")
                .note("choose `pyxis`, `apptainer` or `none` as its `container`"),
        );
    }
}

/// What the header of a group's script asks for beside resources.
pub(super) fn request(parts: &Parts<'_>, groups: &[Group<'_>], group: &Group<'_>) -> Request {
    let is_direct = matches!(of(parts, groups, group), Form::Direct(_));
    Request {
        retries: header::job_retries(group, is_direct),
        resumes: parts.job.preemption.is_some(),
        limit: limit::of(parts.job, group, is_direct),
        // What Slurm runs in containers of its own gets the signal by itself.
        tells_script: !is_direct && parts.container() != SlurmContainer::Oci,
    }
}

/// Why a role needs more than Slurm, before its texts are looked at.
fn needs_more(parts: &Parts<'_>, groups: &[Group<'_>], role: &RolePlan) -> Option<&'static str> {
    if role.launch != Launch::All || run::reaches_others(parts.job, role) {
        return Some("one instance starts processes on the others");
    }
    if !role.preflight.is_empty() && role.retry.max > 0 {
        return Some("checks before the command use up no retries");
    }
    if let Some(reason) = of_retry(&role.retry, role.instances) {
        return Some(reason);
    }
    if role.stop_signal.as_deref().is_some_and(|signal| signal != "SIGTERM") {
        return Some("Slurm ends tasks with SIGTERM, whatever its `stop_signal`");
    }
    if parts.job.budget.is_some() {
        return Some("what it uses is counted for its budget");
    }
    // Slurm writes to files what a program prints, as it is.
    if run::uses_secrets(role) && parts.settings.program().is_some() {
        return Some("values of secrets are left out of its output");
    }
    let completion = &role.completion;
    if completion.min_failed != Some(1) || completion.min_succeeded.is_some_and(|min| min < role.instances) {
        return Some("`completion` counts the tasks that have ended");
    }
    match container(parts, role) {
        SlurmContainer::Oci => return Some("each instance of `container: oci` has a bundle of its own"),
        // Their bundles have the files.
        SlurmContainer::Jobc => {}
        _ if !role.files.is_empty() || reads_provided_files(parts.job, role) => {
            return Some("files are written for each task");
        }
        SlurmContainer::None | SlurmContainer::Pyxis | SlurmContainer::Apptainer => {}
    }
    for mount in &role.mounts {
        match parts.job.volumes.get(&mount.volume).map(|volume| &volume.source) {
            Some(VolumeSource::Instance { .. } | VolumeSource::Job { .. }) => {
                return Some("a directory is made for the run");
            }
            Some(VolumeSource::Code { .. }) if groups.len() > 1 => {
                return Some("several Slurm jobs share the code of the run");
            }
            _ => {}
        }
    }
    None
}

/// Whether a role reads files of jobc. A step that Slurm starts for MPI needs no file of its hosts.
fn reads_provided_files(job: &JobPlan, role: &RolePlan) -> bool {
    !role.provided_files.is_empty() && !run::is_mpi_step(job, role)
}

/// Why retries need more: Slurm starts a whole job again, when it likes.
fn of_retry(retry: &RetryPlan, instances: u32) -> Option<&'static str> {
    if retry.max == 0 {
        return None;
    }
    if !retry.on.is_empty() {
        return Some("`retry` depends on the kind of failure");
    }
    if retry.has_final_codes() {
        return Some("`retry` depends on exit codes");
    }
    if retry.backoff_seconds.is_some() {
        return Some("`retry` has a `backoff`");
    }
    (retry.scope == RetryScope::Task && instances > 1).then_some("single tasks are retried")
}

/// What runs the containers of a role. `image: host` needs none unless something is mounted or limited in it.
fn container(parts: &Parts<'_>, role: &RolePlan) -> SlurmContainer {
    let is_host = run::is_host(parts.job, role);
    if parts.container() == SlurmContainer::Jobc && is_host && !needs_container(parts, role) {
        return SlurmContainer::None;
    }
    parts.container()
}

/// Whether a role asks for what the node itself does not have.
fn needs_container(parts: &Parts<'_>, role: &RolePlan) -> bool {
    let is_moved = |mount: &MountPlan| {
        let Some(volume) = parts.job.volumes.get(&mount.volume) else { return true };
        if mount.volume == CODE {
            return false;
        }
        let path = match (parts.settings.storage.get(&mount.volume), &volume.source) {
            (Some(path), _) | (None, VolumeSource::Path { path }) => Some(path),
            _ => None,
        };
        mount.subpath.is_some() || path != Some(&mount.path)
    };
    role.mounts.iter().any(is_moved)
        || !role.files.is_empty()
        || role.user.is_some()
        || role.resources.shm_bytes.is_some()
        || !role.resources.devices.is_empty()
        || role.security != Security::default()
}
