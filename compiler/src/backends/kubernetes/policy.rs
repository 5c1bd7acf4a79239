//! Retries, thresholds and time limits as fields of a Job.

use std::collections::BTreeSet;

use jobc_schema::Pointer;
use jobc_schema::plan::{JobPlan, Launch, RolePlan};
use jobc_schema::role::Disruptions;
use k8s_openapi::api::batch::v1::{
    JobSpec, PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule, SuccessPolicy, SuccessPolicyRule,
};

use super::cluster::Cluster;
use super::origins::Origins;
use super::preflight;
use super::release::POD_REPLACEMENT_POLICY;
use super::shape::{Shape, restarts_by_jobset};

/// Fills in the policies of the Job that runs a role.
pub(super) fn apply(cluster: &Cluster<'_>, role: &RolePlan, spec: &mut JobSpec, origins: &mut Origins) {
    retries(cluster, role, spec, origins);
    success(role, spec, origins);
    // A TrainJob has its own time limit.
    if let Some((seconds, at)) = cluster.deadline().filter(|_| cluster.shape != Shape::TrainJob) {
        spec.active_deadline_seconds = i64::try_from(seconds).ok();
        origins.spec(["activeDeadlineSeconds"], &at);
    }
}

/// A number of retries as Kubernetes counts them: `unlimited` is its greatest number, as its own defaults write it.
pub(super) fn restarts(max: u32) -> i32 {
    i32::try_from(max).unwrap_or(i32::MAX)
}

/// How many times the Job itself may try an instance again.
fn task_retries(job: &JobPlan, role: &RolePlan) -> u32 {
    if restarts_by_jobset(job, role) { 0 } else { role.retry.max }
}

/// `backoffLimit`, or `backoffLimitPerIndex` where each instance has its own count or several may fail.
fn retries(cluster: &Cluster<'_>, role: &RolePlan, spec: &mut JobSpec, origins: &mut Origins) {
    let retry = role.at().key("retry");
    let max = task_retries(cluster.job, role);
    let limit = Some(restarts(max));
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
    if let Some(policy) = failure_policy(cluster.job, role, per_index) {
        let at = match () {
            () if role.retry.has_final_codes() => retry.key(role.retry.codes_key()),
            () if cluster.job.preemption.is_some() => Pointer::ROOT.key("preemption"),
            () if role.retry.disruptions == Disruptions::Ignore => retry.key("disruptions"),
            () => role.at().key("preflight"),
        };
        spec.pod_failure_policy = Some(policy);
        origins.spec(["podFailurePolicy"], &at);
        if cluster.releases.kubernetes >= POD_REPLACEMENT_POLICY {
            // The only value allowed with a podFailurePolicy.
            spec.pod_replacement_policy = Some("Failed".to_owned());
        }
    }
}

/// Whether failures are counted per instance.
pub(super) fn uses_per_index(job: &JobPlan, role: &RolePlan) -> bool {
    role.instances > 1 && (task_retries(job, role) > 0 || role.completion.min_failed != Some(1))
}

/// Which failures are final by their exit codes, and which do not count.
///
/// A pod that was evicted or preempted has an exit code that is unrelated to the program, so it counts as one of the
/// attempts whatever the code, or with `disruptions: ignore` as none. Where the JobSet restarts more than the pod, the
/// Job fails for a reason that the JobSet does not count.
fn failure_policy(job: &JobPlan, role: &RolePlan, per_index: bool) -> Option<PodFailurePolicy> {
    let ignores = role.retry.disruptions == Disruptions::Ignore;
    let resumed = job.preemption.as_ref().map(|preemption| &preemption.exit_codes[..]).unwrap_or_default();
    let has_checks = preflight::has_rules(job, role);
    if !ignores && !role.retry.has_final_codes() && resumed.is_empty() && !has_checks {
        return None;
    }
    let disrupted = PodFailurePolicyOnPodConditionsPattern {
        type_: "DisruptionTarget".to_owned(),
        status: Some("True".to_owned()),
    };
    let uncounted = if restarts_by_jobset(job, role) { "FailJob" } else { "Ignore" };
    let mut rules = vec![PodFailurePolicyRule {
        action: if ignores { uncounted } else { "Count" }.to_owned(),
        on_exit_codes: None,
        on_pod_conditions: Some(vec![disrupted]),
    }];
    if has_checks {
        rules.extend(preflight::rules(job, role));
    }
    if !resumed.is_empty() {
        rules.push(PodFailurePolicyRule {
            action: uncounted.to_owned(),
            on_exit_codes: Some(PodFailurePolicyOnExitCodesRequirement {
                container_name: None,
                operator: "In".to_owned(),
                values: resumed.iter().copied().map(i32::from).collect(),
            }),
            on_pod_conditions: None,
        });
    }
    if role.retry.has_final_codes() {
        let never = &role.retry.never_on_exit_codes;
        let (operator, codes) =
            if never.is_empty() { ("NotIn", &role.retry.on_exit_codes) } else { ("In", never) };
        // A plan of another program may have them in any order; the API server takes them sorted.
        let mut codes: BTreeSet<u8> = codes.iter().copied().collect();
        if codes.is_empty() {
            // Kinds of failures alone, which are disruptions: every failure of the program is final.
            codes.insert(0);
        }
        let is_final = PodFailurePolicyOnExitCodesRequirement {
            container_name: None,
            operator: operator.to_owned(),
            values: codes.into_iter().map(i32::from).collect(),
        };
        let one_is_enough = role.completion.min_failed == Some(1);
        rules.push(PodFailurePolicyRule {
            action: if per_index && !one_is_enough { "FailIndex" } else { "FailJob" }.to_owned(),
            on_exit_codes: Some(is_final),
            on_pod_conditions: None,
        });
    }
    Some(PodFailurePolicy { rules })
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
