//! The groups of pods that KAI's scheduler starts together.
//!
//! It makes them itself, for the object that owns the pods (pkg/podgrouper of kai-scheduler/KAI-Scheduler d5bc503a): all
//! Jobs of a JobSet, each with the pods of its `parallelism`; of a Job each pod alone. An annotation says another number.

use jobc_schema::plan::{GangPlan, JobPlan};

use super::cluster::Cluster;
use super::settings::settings;
use super::shape::Shape;

/// The name of the scheduler.
pub(super) const SCHEDULER: &str = "kai-scheduler";
/// The label of a pod with its queue.
pub(super) const QUEUE: &str = "kai.scheduler/queue";
/// The annotation of a Job with its number of pods that start together, and of a JobSet with that of its Jobs.
const MIN_MEMBER: &str = "kai.scheduler/batch-min-member";

/// The queue of KAI, if its scheduler places the pods of the job.
pub(super) fn queue(job: &JobPlan) -> Option<&str> {
    let settings = settings(job);
    let by_provider = || settings.gpu.as_ref().and_then(|gpu| gpu.provider.as_deref()) == Some("kai");
    let by_setting = || settings.pod.scheduler.as_deref() == Some(SCHEDULER);
    settings.queue.as_ref()?.kai.as_deref().filter(|_| by_provider() || by_setting())
}

/// How many pods or Jobs of the job's object start together, where KAI would count otherwise.
pub(super) fn annotation(cluster: &Cluster<'_>) -> Option<(String, String)> {
    queue(cluster.job)?;
    let roles = &cluster.job.roles;
    let first = roles.iter().filter(|role| role.needs.is_empty()).count();
    let number = match (cluster.shape, cluster.job.gang) {
        (Shape::Job | Shape::IndexedJob, GangPlan::Required) => roles.first()?.at_once().to_string(),
        (Shape::Job | Shape::IndexedJob, GangPlan::Min(min)) => min.to_string(),
        // Jobs that come after others are not there yet.
        (Shape::JobSet, _) if first < roles.len() => first.to_string(),
        _ => return None,
    };
    Some((MIN_MEMBER.to_owned(), number))
}
