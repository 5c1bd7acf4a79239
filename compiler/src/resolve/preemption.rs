//! `preemption`: the signal and the time to leave of each role, and how tasks are resumed.

use std::collections::BTreeSet;

use jobc_schema::distributed::Members;
use jobc_schema::plan::{PreemptionPlan, RolePlan};
use jobc_schema::role::Role;
use jobc_schema::{Job, Pointer};

use crate::diagnostic::{Diagnostic, Location, Safety, Sink, codes};
use crate::suggest;

/// Without a grace period in the job file.
const GRACE_SECONDS: u64 = 30;

/// The time that the tasks of a role have to leave: the nearest that the job file names.
pub(super) fn grace_seconds(job: &Job, role: &Role) -> u64 {
    let of_contract = job.preemption.as_ref().and_then(|preemption| preemption.grace);
    role.grace_period.or(of_contract).or(job.grace_period).map_or(GRACE_SECONDS, |time| time.0)
}

/// The signal that asks the tasks of a role to leave.
pub(super) fn stop_signal(job: &Job, role: &Role) -> Option<String> {
    let of_contract = job.preemption.as_ref().and_then(|preemption| preemption.signal.as_deref());
    role.stop_signal.as_deref().or(of_contract).and_then(jobc_schema::signal::full_name)
}

/// How tasks are resumed.
pub(super) fn resolve_preemption(job: &Job, roles: &[RolePlan], sink: &mut Sink) -> Option<PreemptionPlan> {
    report_growth(job, roles, sink);
    let preemption = job.preemption.as_ref()?;
    if let Some(name) = &preemption.checkpoint {
        let at = Pointer::ROOT.keys(["preemption", "checkpoint"]);
        let is_mounted = roles.iter().flat_map(|role| &role.mounts).any(|mount| mount.volume == *name);
        let refuse = |message: String| Diagnostic::error(codes::CHECKPOINT_OUTPUT, message).at(&at, "");
        if !job.outputs.contains_key(name) {
            let diagnostic = refuse(format!("the job has no output `{name}`"));
            let known = job.outputs.keys().map(String::as_str);
            sink.push(match suggest::nearest(name, known) {
                Some(near) => diagnostic.note(format!("did you mean `{near}`?")).fix(
                    format!("write `{near}`"),
                    Location::value(&at),
                    near.to_owned(),
                    Safety::Unsafe,
                ),
                None => diagnostic.note(format!(
                    "declare where the checkpoints are kept, as in `outputs: {{{name}: {{source: ./{name}, mount: /{name}}}}}`"
                )),
            });
        } else if !is_mounted {
            sink.push(refuse(format!("no role mounts the output `{name}`")).note(format!(
                "list it in the role that saves, as in `outputs: [{name}]`, or leave the `outputs` of the role out"
            )));
        }
    }
    let exit_codes: BTreeSet<u8> = preemption.exit_codes.iter().copied().collect();
    Some(PreemptionPlan {
        exit_codes: exit_codes.into_iter().collect(),
        checkpoint: preemption.checkpoint.clone(),
    })
}

/// Reports roles that grow and cannot shrink, or that do not use what they get.
fn report_growth(job: &Job, roles: &[RolePlan], sink: &mut Sink) {
    let is_member = |name: &str| match job.distributed.as_ref().map(|distributed| &distributed.roles) {
        Some(Members::Names(names)) => names.iter().any(|member| member == name),
        Some(Members::Parts(parts)) => parts.contains_key(name),
        None => false,
    };
    for role in roles.iter().filter(|role| role.gpus().is_some_and(|gpu| gpu.grow.is_some())) {
        let at = Pointer::ROOT.keys(["roles", role.declared(), "resources", "gpu", "share", "grow"]);
        if job.preemption.is_none() {
            sink.push(
                Diagnostic::error(codes::GPU_RULES, "the job does not say how its tasks give GPUs back")
                    .at_key(&at, "")
                    .note("`preemption` says so: by its signal and in its grace the tasks save and leave, to be resumed with fewer GPUs"),
            );
        }
        if is_member(role.declared()) {
            sink.push(
                Diagnostic::error(codes::GPU_RULES, "`grow` and `distributed` exclude each other")
                    .at_key(&at, "")
                    .note("the processes of `distributed` are as many as `count`; leave the role out of it and count the GPUs in the program, as `torchrun --standalone --nproc-per-node gpu` does"),
            );
        }
    }
}
