//! Which tasks meet in shared memory: those of the roles with one directory in memory at /dev/shm. They also have one IPC
//! namespace, for System V shared memory, semaphores and message queues, and POSIX message queues.

use jobc_schema::plan::{JobPlan, RolePlan, VolumeSource};

/// Where programs look for POSIX shared memory.
const PLACE: &str = "/dev/shm";

/// Whether tasks of a role share an IPC namespace with others of the job.
pub(crate) fn has_role(plan: &JobPlan, role: &RolePlan) -> bool {
    let source = |volume| plan.volumes.get(volume).map(|volume| &volume.source);
    role.mounts.iter().any(|mount| {
        mount.path == PLACE && matches!(source(&mount.volume), Some(VolumeSource::Job { in_memory: true }))
    })
}

/// Whether any does.
pub(crate) fn has_job(plan: &JobPlan) -> bool {
    plan.roles.iter().any(|role| has_role(plan, role))
}
