//! The Job that runs a role: alone, or in a JobSet.

use jobc_schema::plan::RolePlan;
use k8s_openapi::api::batch::v1::{Job, JobSpec};

use crate::diagnostic::Sink;

use super::cluster::Cluster;
use super::config::Configs;
use super::metadata;
use super::origins::Origins;
use super::pod;
use super::policy;
use super::shape::Shape;

/// The `spec` of the Job that runs a role; `base` is its place in the object.
pub(super) fn spec(
    cluster: &Cluster<'_>,
    configs: &Configs,
    role: &RolePlan,
    base: &jobc_schema::Pointer,
    origins: &mut Origins,
    sink: &mut Sink,
) -> JobSpec {
    let mut own = Origins::below(base.clone());
    let mut in_pod = Origins::below(base.keys(["template", "spec"]));
    let count = |n: u32| i32::try_from(n).ok();
    let mut spec =
        JobSpec { template: pod::template(cluster, configs, role, &mut in_pod, sink), ..JobSpec::default() };
    // A JobSet makes indexed Jobs by itself. Kubeflow Trainer changes the numbers, and so needs them.
    if !matches!(cluster.shape, Shape::Job | Shape::JobSet) {
        spec.completion_mode = Some("Indexed".to_owned());
        own.fallback(["completionMode"], "each instance has a number, by which it has a name");
    }
    if role.instances > 1 || cluster.shape == Shape::TrainJob {
        spec.completions = count(role.instances);
        spec.parallelism = count(role.at_once());
        own.spec(["completions"], &role.at().key("instances"));
        let at_once = if role.parallel.is_some() { "parallel" } else { "instances" };
        own.spec(["parallelism"], &role.at().key(at_once));
    }
    policy::apply(cluster, role, &mut spec, &mut own);
    origins.append(own);
    origins.append(in_pod);
    spec
}

/// The Job of a job with one role.
pub(super) fn job(
    cluster: &Cluster<'_>,
    configs: &Configs,
    role: &RolePlan,
    origins: &mut Origins,
    sink: &mut Sink,
) -> Job {
    let mut spec = spec(cluster, configs, role, &jobc_schema::Pointer::ROOT.key("spec"), origins, sink);
    spec.suspend = suspended(cluster, origins);
    if let Some(ttl) = cluster.settings.ttl {
        spec.ttl_seconds_after_finished = i32::try_from(ttl.0).ok();
        origins.target(["spec", "ttlSecondsAfterFinished"], &["ttl"]);
    }
    Job { metadata: metadata::workload(cluster), spec: Some(spec), status: None }
}

/// Whether the job waits: the target sets it.
///
/// Kueue's webhook suspends the job itself. A manifest that says so too would suspend the running job when it is applied
/// again, and Kueue then deletes its pods.
pub(super) fn suspended(cluster: &Cluster<'_>, origins: &mut Origins) -> Option<bool> {
    if !cluster.settings.suspend {
        return None;
    }
    origins.target(["spec", "suspend"], &["suspend"]);
    Some(true)
}
