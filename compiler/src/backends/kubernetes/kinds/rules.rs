//! Entries of the table that depend on the job.

use jobc_schema::distributed::MemberPart;
use jobc_schema::plan::{GangPlan, JobPlan, Launch, NeedPlan, RolePlan};
use jobc_schema::role::{RetryScope, UNLIMITED_RETRIES};

use crate::backend::Support::{self, Full, Lossy};

/// `restartPolicy: OnFailure`, which counts nothing.
pub(super) fn pod_retry(_: &JobPlan, role: Option<&RolePlan>) -> Support {
    match role.map(|role| role.retry.max) {
        Some(UNLIMITED_RETRIES) | None => Full,
        // A policy that only retries disruptions.
        Some(0) => Support::None(
            "a Pod that is evicted does not come back; write `kind: job` for the target".to_owned(),
        ),
        Some(_) => Support::None(
            "the kubelet restarts the container of a Pod without counting; write `max: unlimited`, or `kind: job` for the target"
                .to_owned(),
        ),
    }
}

/// `activeDeadlineSeconds` of a Pod, which counts from its start.
pub(super) fn pod_timeout(_: &JobPlan, role: Option<&RolePlan>) -> Support {
    if role.is_none_or(|role| role.retry.max == 0) {
        return Full;
    }
    Lossy(
        "a Pod has one time limit for all restarts of its container; use `timeout` of the job, or `kind: job` of the target"
            .to_owned(),
    )
}

/// Volcano's group of a TrainJob has all of its pods.
pub(super) fn gang_of_trainjob(job: &JobPlan, _: Option<&RolePlan>) -> Support {
    if job.roles.iter().all(|role| role.needs.is_empty()) {
        return Full;
    }
    Support::None(
        "Volcano starts no pod before all are there, and roles with `needs` come later; leave `gang` out"
            .to_owned(),
    )
}

/// `minAvailable` of a task is one number for all roles that need it.
pub(super) fn volcano_needs_min(job: &JobPlan, role: Option<&RolePlan>) -> Support {
    let different = |need: &NeedPlan| {
        let all = job.roles.iter().flat_map(|role| &role.needs);
        all.filter(|other| other.role == need.role).any(|other| other.min != need.min)
    };
    match role.and_then(|role| role.needs.iter().find(|need| different(need))) {
        Some(need) => Support::None(format!(
            "all roles that need `{}` wait for the same number of instances; write the same `min` for all",
            need.role
        )),
        None => Full,
    }
}

/// `minSuccess` counts the pods of all roles; that all of a role have succeeded, an event says.
pub(super) fn volcano_min_succeeded(job: &JobPlan, role: Option<&RolePlan>) -> Support {
    let all = role.is_some_and(|role| role.completion.min_succeeded == Some(role.instances));
    if job.roles.len() == 1 || all {
        return Full;
    }
    Support::None(
        "a Volcano Job counts the successes of all roles together; leave `min_succeeded` out, or write `kind: jobset` for the target"
            .to_owned(),
    )
}

/// `maxRetry` counts the restarts of the whole job.
pub(super) fn volcano_retry(job: &JobPlan, role: Option<&RolePlan>) -> Support {
    let Some(role) = role else { return Full };
    let counted: Vec<u32> = job.roles.iter().filter(|r| r.retry.max > 0).map(|r| r.retry.max).collect();
    let same_for_all =
        role.retry.scope == RetryScope::Job && counted.iter().all(|max| *max == role.retry.max);
    let alone = counted.len() == 1 && (role.retry.scope != RetryScope::Task || role.instances == 1);
    if same_for_all || alone {
        return Full;
    }
    Lossy(
        "Volcano counts the restarts of all roles and instances together, up to the greatest `max` of any; write `scope: job` with the same `max` for all roles"
            .to_owned(),
    )
}

/// `minAvailable` of the job, which must not count roles that come later.
pub(super) fn volcano_gang(job: &JobPlan, _: Option<&RolePlan>) -> Support {
    let first: u32 = job.roles.iter().filter(|role| role.needs.is_empty()).map(|role| role.instances).sum();
    match job.gang {
        GangPlan::Min(min) if min <= first => Full,
        _ if job.roles.iter().all(|role| role.needs.is_empty()) => Full,
        _ => Support::None(
            "Volcano starts no pod before the gang is complete, and roles with `needs` come later; leave `gang` out, or `needs`"
                .to_owned(),
        ),
    }
}

pub(super) fn mpi_needs(_: &JobPlan, role: Option<&RolePlan>) -> Support {
    if role.is_some_and(|role| role.launch == Launch::None) {
        return Support::None(
            "in an MPIJob only the launcher waits for the workers; write `needs` on the launcher".to_owned(),
        );
    }
    Full
}

pub(super) fn mpi_of_launcher(_: &JobPlan, role: Option<&RolePlan>) -> Support {
    match role {
        Some(role) if role.launch == Launch::None => Support::None(
            "the launcher of an MPIJob alone decides how the job ends; write it on the launcher, or `kind: jobset` for the target"
                .to_owned(),
        ),
        _ => Full,
    }
}

/// The head's end is the job's end, which is what the framework resolves to.
pub(super) fn ray_completion(_: &JobPlan, role: Option<&RolePlan>) -> Support {
    let Some(role) = role else { return Full };
    let decides = role.launch != Launch::None;
    let all = role.completion.min_succeeded.is_none_or(|n| n == role.instances);
    if role.completion.min_succeeded.is_none() || (decides && all) {
        return Full;
    }
    Support::None(
        "the driver of a RayJob alone decides how the job ends; leave `completion` out, or write `kind: jobset` for the target"
            .to_owned(),
    )
}

/// `backoffLimit` is one number for the job.
pub(super) fn ray_retry(job: &JobPlan, role: Option<&RolePlan>) -> Support {
    let Some(role) = role else { return Full };
    if job.roles.iter().any(|other| other.retry.max != role.retry.max) {
        return Lossy(
            "a RayJob counts its restarts as a whole, up to the greatest `max` of any role; write the same `max` for all roles"
                .to_owned(),
        );
    }
    Full
}

/// It ends with nothing. That a Ray job ends with its head is the rule of `framework: ray`, and not of the user.
pub(super) fn lws_min_succeeded(job: &JobPlan, role: Option<&RolePlan>) -> Support {
    let members = job.distributed.iter().flat_map(|distributed| &distributed.members);
    let mut heads = members.filter(|member| member.part == MemberPart::Head);
    if role.is_some_and(|role| heads.any(|head| head.role == role.name)) {
        return Full;
    }
    Support::None(NEVER_ENDS.to_owned())
}

/// What ends a LeaderWorkerSet.
pub(super) const NEVER_ENDS: &str =
    "a LeaderWorkerSet serves until it is deleted; leave it out, or write `kind: jobset` for the target";

/// Workers may wait for the leader: `startupPolicy: LeaderReady`.
pub(super) fn lws_needs(job: &JobPlan, role: Option<&RolePlan>) -> Support {
    let leader = job.roles.first().map(|role| role.name.as_str());
    let Some(role) = role else { return Full };
    if role.needs.iter().any(|need| Some(need.role.as_str()) != leader) {
        return Support::None(
            "in a LeaderWorkerSet only the workers wait for the leader, which is the first role".to_owned(),
        );
    }
    Full
}
