//! The fields of a JobSet that jobc writes: jobset.x-k8s.io/v1alpha2, a custom resource and so not in k8s-openapi.

use k8s_openapi::api::batch::v1::JobSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::Value;

/// A JobSet.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobSet {
    /// `jobset.x-k8s.io/v1alpha2`.
    pub api_version: &'static str,
    /// `JobSet`.
    pub kind: &'static str,
    /// Its name and labels.
    pub metadata: ObjectMeta,
    /// Its spec.
    pub spec: Spec,
}

impl JobSet {
    /// The object as it is written.
    pub(crate) fn into_value(mut self) -> Value {
        let replicated_jobs = std::mem::take(&mut self.spec.replicated_jobs);
        let mut value = serde_json::to_value(self).expect("a typed object is plain JSON");
        value["spec"]["replicatedJobs"] = Value::Array(replicated_jobs);
        value
    }
}

impl Spec {
    /// The spec as it is written.
    pub(crate) fn into_value(mut self) -> Value {
        let replicated_jobs = std::mem::take(&mut self.replicated_jobs);
        let mut value = serde_json::to_value(self).expect("a typed object is plain JSON");
        value["replicatedJobs"] = Value::Array(replicated_jobs);
        value
    }
}

/// What a JobSet runs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec {
    /// Whether it is suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// How long it is kept after it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<u64>,
    /// When it has succeeded; `None`: when all roles have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_policy: Option<SuccessPolicy>,
    /// What a failure restarts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// The roles, [`ReplicatedJob`]s that are values already: thousands of typed ones next to their values would double
    /// the memory. [`JobSet::into_value`] puts them in.
    #[serde(skip)]
    pub replicated_jobs: Vec<Value>,
}

/// When a JobSet has succeeded.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SuccessPolicy {
    /// `All` or `Any` of the targets.
    pub operator: &'static str,
    /// The roles that decide.
    pub target_replicated_jobs: Vec<String>,
}

/// What a failure restarts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FailurePolicy {
    /// How many restarts there may be.
    pub max_restarts: i32,
    /// The first matching rule decides; without one, everything is restarted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<FailureRule>,
}

/// What a failure of some roles, for some reasons, does.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FailureRule {
    name: &'static str,
    action: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    on_job_failure_reasons: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    on_job_failure_message_patterns: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    target_replicated_jobs: Vec<String>,
}

/// What the Job controller says of a Job that a rule for `DisruptionTarget` ends: `Pod ml/a-0-x has condition
/// DisruptionTarget matching FailJob rule at index 0` (pkg/controller/job/pod_failure_policy.go of k8s.io/kubernetes).
const DISRUPTED: &str = "has condition DisruptionTarget matching";

impl FailureRule {
    fn new(name: &'static str, action: &'static str, roles: Vec<String>) -> Self {
        let (on_job_failure_reasons, on_job_failure_message_patterns) = (vec![], vec![]);
        Self {
            name,
            action,
            on_job_failure_reasons,
            on_job_failure_message_patterns,
            target_replicated_jobs: roles,
        }
    }

    /// Ends the JobSet when a role's Job fails for a reason; no names: any role.
    pub(crate) fn fail(name: &'static str, reason: &'static str, roles: Vec<String>) -> Self {
        Self { on_job_failure_reasons: vec![reason], ..Self::new(name, "FailJobSet", roles) }
    }

    /// Ends the JobSet when the Job of one of the roles fails.
    pub(crate) fn fail_any(name: &'static str, roles: Vec<String>) -> Self {
        Self::new(name, "FailJobSet", roles)
    }

    /// Restarts the JobSet, or the Job alone, without counting it, when the Job of one of the roles ended by its
    /// `podFailurePolicy`, which the disruption of a pod does; `by_message` if an exit code does so, too.
    pub(crate) fn ignore_disruption(
        name: &'static str,
        restart: Restart,
        by_message: bool,
        roles: Vec<String>,
    ) -> Self {
        let action = match restart {
            Restart::JobSet => "RestartJobSetAndIgnoreMaxRestarts",
            Restart::Job => "RestartJobAndIgnoreMaxRestarts",
        };
        let on_job_failure_message_patterns = if by_message { vec![DISRUPTED] } else { vec![] };
        let on_job_failure_reasons = vec!["PodFailurePolicy"];
        Self { on_job_failure_reasons, on_job_failure_message_patterns, ..Self::new(name, action, roles) }
    }

    /// Recreates the Job of one of the roles when it fails.
    pub(crate) fn restart_job(name: &'static str, roles: Vec<String>) -> Self {
        Self::new(name, "RestartJob", roles)
    }
}

/// What is recreated after a failure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Restart {
    /// All Jobs.
    JobSet,
    /// The Job that failed.
    Job,
}

/// One role of a JobSet.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplicatedJob {
    /// The role's name.
    pub name: String,
    /// The number of Jobs; 1, as by default, because the instances are the Job's indexes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// The roles that must reach a state first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<DependsOn>,
    /// The Job.
    pub template: JobTemplate,
}

/// The state that an earlier role must have reached.
#[derive(Serialize)]
pub(crate) struct DependsOn {
    /// The role.
    pub name: String,
    /// `Complete` or `Ready`.
    pub status: &'static str,
}

/// The Job that each restart makes.
#[derive(Serialize)]
pub(crate) struct JobTemplate {
    /// Its labels, where it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// Its spec.
    pub spec: JobSpec,
}
