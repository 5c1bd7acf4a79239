//! Fields that several kinds have.

use super::super::facts::Fact;
use super::super::rows::{Row, changed, fact, field, note, setting};
use super::kind::{Kind, Name, PodGroups, Stands};

const CLEAN: &str = "jobc keeps the logs of tasks that have ended: `jobc logs` prints them";
/// Why settings of a controller are not needed.
pub(super) const CONTROLLER: &str = "a setting of the controller";

/// `spec` of a Job.
pub(super) const JOB_SPEC: &[Row] = &[
    fact("activeDeadlineSeconds", Fact::JobTimeout),
    fact("backoffLimit", Fact::Retries),
    fact("backoffLimitPerIndex", Fact::RetriesPerIndex),
    fact("completionMode", Fact::CompletionMode),
    fact("completions", Fact::Completions),
    note("managedBy", CONTROLLER),
    note("manualSelector", CONTROLLER),
    fact("maxFailedIndexes", Fact::FailedIndexes),
    fact("parallelism", Fact::Parallelism),
    fact("podFailurePolicy", Fact::PodFailures),
    note("podReplacementPolicy", "jobc starts a task again when it has ended"),
    changed("scheduling", "a scheduling policy of Kubernetes is not kept", "write `gang` in a job file"),
    note("selector", CONTROLLER),
    fact("successPolicy", Fact::SuccessRules),
    fact("suspend", Fact::Suspend),
    fact("ttlSecondsAfterFinished", Fact::Ttl),
];

/// `runPolicy` of the kinds of Kubeflow.
pub(super) const RUN_POLICY: &[Row] = &[
    fact("activeDeadlineSeconds", Fact::JobTimeout),
    fact("backoffLimit", Fact::JobRetries),
    note("cleanPodPolicy", CLEAN),
    note("managedBy", CONTROLLER),
    fact("schedulingPolicy.minAvailable", Fact::MinAvailable),
    note("schedulingPolicy.minResources", "the scheduler adds up the requests"),
    setting("schedulingPolicy.priorityClass", "kubernetes.priority_class"),
    setting("schedulingPolicy.queue", "kubernetes.queue.volcano"),
    note("schedulingPolicy.scheduleTimeoutSeconds", "a job waits for its place as long as it takes"),
    fact("suspend", Fact::Suspend),
    fact("ttlSecondsAfterFinished", Fact::Ttl),
];

/// A group of the kinds of Kubeflow.
pub(super) const REPLICA: &[Row] = &[
    note("imagePullPolicy", "Kubernetes ignores it here"),
    fact("replicas", Fact::Replicas),
    fact("restartPolicy", Fact::Restart),
];

/// Fields beside `runPolicy` in older versions of the kinds of Kubeflow.
pub(super) const OLD_POLICY: &[Row] = &[
    fact("activeDeadlineSeconds", Fact::JobTimeout),
    fact("backoffLimit", Fact::JobRetries),
    note("cleanPodPolicy", CLEAN),
    fact("ttlSecondsAfterFinished", Fact::Ttl),
];

/// What runs until it is deleted.
pub(super) const SERVES: &[Row] = &[
    note("minReadySeconds", CONTROLLER),
    note("paused", CONTROLLER),
    note("persistentVolumeClaimRetentionPolicy", CONTROLLER),
    note("podManagementPolicy", "all instances start together"),
    note("progressDeadlineSeconds", CONTROLLER),
    fact("replicas", Fact::Replicas),
    note("revisionHistoryLimit", CONTROLLER),
    note("selector", CONTROLLER),
    note("serviceName", "instances find each other by name: `${{ hosts.main[0] }}`"),
    note("strategy", "a job is not updated while it runs"),
    note("updateStrategy", "a job is not updated while it runs"),
    changed("volumeClaimTemplates", CLAIM_OF_POD, CLAIM_OF_JOB),
];

pub(super) const CLAIM_OF_POD: &str = "a claim of each pod becomes a directory that ends with the task";
pub(super) const CLAIM_OF_JOB: &str =
    "write `source: \"pvc:NAME\"` for a claim that is there before and after the job";

/// `spec` of a CronJob besides the job.
pub(super) const CRON: &[Row] = &[
    note("concurrencyPolicy", "`jobc submit` starts the job once"),
    note("failedJobsHistoryLimit", "`jobc ps` lists the jobs that have ended"),
    changed(
        "schedule",
        "the job runs when it is started, not by a schedule",
        "a timer of the host or of CI that calls `jobc submit` starts it again",
    ),
    note("startingDeadlineSeconds", "`jobc submit` starts the job once"),
    note("successfulJobsHistoryLimit", "`jobc ps` lists the jobs that have ended"),
    note("suspend", "`jobc submit` starts the job once"),
    note("timeZone", "`jobc submit` starts the job once"),
];

/// `spec` of a CronJob of Kubernetes besides the job.
pub(super) const BATCH_CRON: &[Row] = &[
    fact("concurrencyPolicy", Fact::Overlap),
    note("failedJobsHistoryLimit", "`jobc ps` lists the jobs that have ended"),
    fact("schedule", Fact::Schedule),
    note("startingDeadlineSeconds", "a late start is never skipped"),
    note("successfulJobsHistoryLimit", "`jobc ps` lists the jobs that have ended"),
    note("suspend", "a new CronJob is active; `kubectl patch` suspends it"),
    fact("timeZone", Fact::TimeZone),
];

/// Why fields of names are not needed.
pub(super) const NAMES: &str = "instances find each other by name: `${{ hosts.ROLE[0] }}`";

/// What most kinds have.
pub(super) const KIND: Kind = Kind {
    name: "",
    groups: &[""],
    fields: &[],
    places: &[],
    parts: &[],
    framework: Stands::None,
    hosts: &[],
    variables: &[],
    builds: None,
    becomes: "",
};

/// `replicatedJobs` of a JobSet.
pub(super) const REPLICATED_JOBS: PodGroups = PodGroups {
    at: "spec.replicatedJobs[]",
    name: Name::Field("name"),
    template: "template.spec.template",
    fields: &[("", REPLICATED_JOB), ("template.spec", JOB_SPEC)],
    metadata: &["template.metadata"],
};

/// An item of `replicatedJobs`.
const REPLICATED_JOB: &[Row] = &[
    fact("dependsOn", Fact::Needs),
    note("groupName", "the name of the role"),
    field("name", "the name of the role"),
    fact("replicas", Fact::Replicas),
];

/// `spec` of a JobSet.
pub(super) const JOBSET_SPEC: &[Row] = &[
    note("coordinator", "the address is a label; `${{ hosts.ROLE[0] }}` is one in the job file"),
    fact("failurePolicy.maxRestarts", Fact::JobRetries),
    note("failurePolicy.restartStrategy", "a restart stops all tasks first"),
    fact("failurePolicy.rules", Fact::JobFailures),
    note("managedBy", CONTROLLER),
    note("network", NAMES),
    fact("startupPolicy.startupPolicyOrder", Fact::Order),
    fact("successPolicy.operator", Fact::Success),
    fact("successPolicy.targetReplicatedJobs", Fact::SuccessRoles),
    fact("suspend", Fact::Suspend),
    fact("ttlSecondsAfterFinished", Fact::Ttl),
    changed(
        "volumeClaimPolicies",
        "nothing creates the claims of the JobSet",
        "create each as CLAIM-JOBSET: the names in `outputs` of the job file",
    ),
];
