//! Retries, thresholds and time limits as fields of a Job.

use jobc_schema::Pointer;
use jobc_schema::plan::{JobPlan, Launch, RolePlan};
use k8s_openapi::api::batch::v1::{
    JobSpec, PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule, SuccessPolicy, SuccessPolicyRule,
};

use super::cluster::Cluster;
use super::origins::Origins;
use super::release::POD_REPLACEMENT_POLICY;
use super::shape::{Shape, restarts_by_jobset};

/// Fills in the policies of the Job that runs a role.
pub(super) fn apply(cluster: &Cluster<'_>, role: &RolePlan, spec: &mut JobSpec, origins: &mut Origins) {
    retries(cluster, role, spec, origins);
    success(role, spec, origins);
    if let Some(seconds) = cluster.job.timeout_seconds {
        spec.active_deadline_seconds = i64::try_from(seconds).ok();
        origins.spec(["activeDeadlineSeconds"], &Pointer::ROOT.key("timeout"));
    }
}

/// How many times the Job itself may try an instance again.
fn task_retries(job: &JobPlan, role: &RolePlan) -> u32 {
    if restarts_by_jobset(job, role) { 0 } else { role.retry.max }
}

/// `backoffLimit`, or `backoffLimitPerIndex` where each instance has its own count or several may fail.
fn retries(cluster: &Cluster<'_>, role: &RolePlan, spec: &mut JobSpec, origins: &mut Origins) {
    let retry = role.at().key("retry");
    let max = task_retries(cluster.job, role);
    let limit = Some(i32::try_from(max).unwrap_or(i32::MAX));
    let per_index = uses_per_index(cluster.job, role) && cluster.shape != Shape::Job;
    let field = if per_index { "backoffLimitPerIndex" } else { "backoffLimit" };
    if max > 0 {
        origins.spec([field], &retry);
    } else {
        origins.fallback([field], "the default of jobc: nothing is tried again");
    }
    if per_index {
        spec.backoff_limit_per_index = limit;
        spec.max_failed_indexes =
            role.completion.min_failed.map(|n| i32::try_from(n.saturating_sub(1)).unwrap_or(i32::MAX));
        origins.spec(["maxFailedIndexes"], &role.at().key("completion"));
    } else {
        spec.backoff_limit = limit;
    }
    if role.retry.max > 0 && !role.retry.on_exit_codes.is_empty() {
        spec.pod_failure_policy = Some(failure_policy(role, per_index));
        origins.spec(["podFailurePolicy"], &retry.key("on_exit_codes"));
        if cluster.releases.kubernetes >= POD_REPLACEMENT_POLICY {
            // The only value that goes with a podFailurePolicy.
            spec.pod_replacement_policy = Some("Failed".to_owned());
        }
    }
}

/// Whether failures are counted per instance.
pub(super) fn uses_per_index(job: &JobPlan, role: &RolePlan) -> bool {
    role.instances > 1 && (task_retries(job, role) > 0 || role.completion.min_failed != Some(1))
}

/// Which failures are final: all exit codes but those listed.
///
/// A pod that was evicted or preempted has an exit code that is unrelated to the program, so it counts as one of the
/// attempts whatever the code.
fn failure_policy(role: &RolePlan, per_index: bool) -> PodFailurePolicy {
    let mut codes: Vec<i32> = role.retry.on_exit_codes.iter().map(|code| i32::from(*code)).collect();
    codes.sort_unstable();
    codes.dedup();
    let one_is_enough = role.completion.min_failed == Some(1);
    let disrupted = PodFailurePolicyOnPodConditionsPattern {
        type_: "DisruptionTarget".to_owned(),
        status: "True".to_owned(),
    };
    let others = PodFailurePolicyOnExitCodesRequirement {
        container_name: None,
        operator: "NotIn".to_owned(),
        values: codes,
    };
    PodFailurePolicy {
        rules: vec![
            PodFailurePolicyRule {
                action: "Count".to_owned(),
                on_exit_codes: None,
                on_pod_conditions: Some(vec![disrupted]),
            },
            PodFailurePolicyRule {
                action: if per_index && !one_is_enough { "FailIndex" } else { "FailJob" }.to_owned(),
                on_exit_codes: Some(others),
                on_pod_conditions: None,
            },
        ],
    }
}

/// When the Job has succeeded before all of its instances have.
fn success(role: &RolePlan, spec: &mut JobSpec, origins: &mut Origins) {
    let Some(enough) = success_rule(role) else { return };
    spec.success_policy = Some(SuccessPolicy { rules: vec![enough] });
    if role.completion.min_succeeded.is_some() {
        origins.spec(["successPolicy"], &role.at().keys(["completion", "min_succeeded"]));
    } else {
        origins.spec(["successPolicy"], &Pointer::ROOT.keys(["distributed", "launch"]));
    }
}

/// The rule of `successPolicy`, where a role needs one: the launching instance decides, or enough instances do.
pub(super) fn success_rule(role: &RolePlan) -> Option<SuccessPolicyRule> {
    if role.instances == 1 {
        return None;
    }
    if role.launch == Launch::First {
        return Some(SuccessPolicyRule { succeeded_indexes: Some("0".to_owned()), succeeded_count: None });
    }
    let enough = role.completion.min_succeeded.filter(|n| *n < role.instances)?;
    Some(SuccessPolicyRule { succeeded_indexes: None, succeeded_count: i32::try_from(enough).ok() })
}
