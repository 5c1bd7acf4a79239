//! The checks before a command, as the last init container of a pod: its state, log and exit code are apart from those
//! of the command, and its image, mounts, variables and GPUs are the same.

use jobc_schema::plan::{CheckPlan, JobPlan, RolePlan};
use jobc_schema::preflight::{JOB_AT_FAULT, NAME, NODE, NODE_AT_FAULT};
use k8s_openapi::api::batch::v1::{PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule};
use k8s_openapi::api::core::v1::{Container, PodSpec};

use crate::backend::Support::{self, Full};
use crate::backend::address::fill;
use crate::backend::preflight;

use super::address::{Expander, INDEX, PodAddress, escape};
use super::cluster::Cluster;
use super::env::{from_field, index_variable};
use super::env_file::without_devices;
use super::origins::Origins;
use super::shape::{Shape, restarts_by_jobset, shape};

/// Adds the init container, after those that it may need.
pub(super) fn add(cluster: &Cluster<'_>, role: &RolePlan, spec: &mut PodSpec, origins: &mut Origins) {
    let Some(main) = spec.containers.first().filter(|_| !role.preflight.is_empty()) else { return };
    let shell = PodAddress { cluster, role, by: Expander::Shell };
    let script =
        preflight::script(cluster.job, role).render_with(str::to_owned, |reference| fill(reference, &shell));
    let mut env = main.env.clone().unwrap_or_default();
    if role.instances > 1 && !env.iter().any(|variable| variable.name == INDEX) {
        env.insert(0, index_variable(cluster, role));
    }
    env.push(from_field(NODE, "spec.nodeName"));
    let computes = role.preflight.iter().any(|check| {
        matches!(
            check,
            CheckPlan::Gpus {}
                | CheckPlan::Driver { .. }
                | CheckPlan::Matmul {}
                | CheckPlan::Allreduce { .. }
                | CheckPlan::Run { .. }
        )
    });
    // What an init container has is free again for the next.
    let resources = main.resources.clone();
    let checks = Container {
        name: NAME.to_owned(),
        image: main.image.clone(),
        command: Some(vec!["/bin/sh".to_owned(), "-c".to_owned(), escape(&script)]),
        working_dir: main.working_dir.clone(),
        env: Some(env),
        resources: if computes { resources } else { resources.as_ref().map(without_devices) },
        security_context: main.security_context.clone(),
        // `jobc why` and `kubectl describe` show what it says.
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        volume_mounts: main.volume_mounts.clone(),
        ..Container::default()
    };
    let containers = spec.init_containers.get_or_insert_default();
    origins.spec(["initContainers", &containers.len().to_string()], &role.at().key("preflight"));
    containers.push(checks);
}

/// Whether failed checks have rules of their own in the policy of a Job.
pub(super) fn has_rules(job: &JobPlan, role: &RolePlan) -> bool {
    !role.preflight.is_empty() && role.retry.max > 0 && !counts_in_jobset(job, role)
}

/// Whether a JobSet counts the restart after a failed check: it sees `PodFailurePolicy` alone, which means that exit
/// codes are final.
fn counts_in_jobset(job: &JobPlan, role: &RolePlan) -> bool {
    restarts_by_jobset(job, role) && role.retry.has_final_codes()
}

/// What becomes of a pod of which a check failed: another one may land on another node, and none does better where the
/// job is at fault. A JobSet that restarts all Jobs does so for both, and counts the latter.
pub(super) fn rules(job: &JobPlan, role: &RolePlan) -> Vec<PodFailurePolicyRule> {
    let all = [(JOB_AT_FAULT, "FailJob"), (NODE_AT_FAULT, "Ignore")];
    let of_jobset = [(NODE_AT_FAULT, "FailJob")];
    let rules = if restarts_by_jobset(job, role) { &of_jobset[..] } else { &all };
    let written = |&(code, action): &(u8, &str)| PodFailurePolicyRule {
        action: action.to_owned(),
        on_exit_codes: Some(PodFailurePolicyOnExitCodesRequirement {
            container_name: Some(NAME.to_owned()),
            operator: "In".to_owned(),
            values: vec![i32::from(code)],
        }),
        on_pod_conditions: None,
    };
    rules.iter().map(written).collect()
}

/// Whether the pods of a job can have the checks.
pub(super) fn support(job: &JobPlan, role: Option<&RolePlan>) -> Support {
    let counts =
        |role: &RolePlan| role.retry.max > 0 && !role.preflight.is_empty() && counts_in_jobset(job, role);
    match shape(job) {
        Shape::Pod | Shape::Job | Shape::IndexedJob | Shape::JobSet | Shape::TrainJob
            if role.is_some_and(counts) =>
        {
            Support::Lossy(
                "a JobSet cannot tell failed checks from exit codes that are final, and counts their restart; leave the codes of `retry` out"
                    .to_owned(),
            )
        }
        Shape::Pod | Shape::Job | Shape::IndexedJob | Shape::JobSet | Shape::TrainJob | Shape::Volcano => Full,
        Shape::MpiJob | Shape::RayJob | Shape::LeaderWorkerSet | Shape::SharePod => Support::None(
            "the controller of this kind makes pods of its own; write `kind: jobset` for the target, or the checks in `setup`".to_owned(),
        ),
    }
}
