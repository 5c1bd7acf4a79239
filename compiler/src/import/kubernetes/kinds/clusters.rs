//! Kinds of Ray, LeaderWorkerSet and Volcano.

use super::super::facts::Fact;
use super::super::rows::{Row, changed, fact, field, note, refused, setting};
use super::kind::{Kind, Name, PodGroups, Stands};
use super::shared::{CLAIM_OF_JOB, CLAIM_OF_POD, CONTROLLER, CRON, KIND, NAMES};

pub(super) static RAYJOB: Kind = Kind {
    name: "RayJob",
    groups: &["ray.io"],
    fields: &[(
        "spec",
        &[
            fact("activeDeadlineSeconds", Fact::JobTimeout),
            fact("backoffLimit", Fact::JobRetries),
            refused("clusterSelector", "a cluster of Ray that runs already", "write its pods as roles"),
            note("deletionStrategy", "a job ends with its command"),
            fact("entrypoint", Fact::Entrypoint),
            note("entrypointNumCpus", "the command runs on the head"),
            note("entrypointNumGpus", "the command runs on the head"),
            note("entrypointResources", "the command runs on the head"),
            note("jobId", "jobc names the job"),
            note("managedBy", CONTROLLER),
            note("metadata", "metadata for Ray's dashboard"),
            note("preRunningDeadlineSeconds", "a job waits for its place as long as it takes"),
            note("rayClusterSpec.autoscalerOptions", "`instances` of a job is fixed"),
            note("rayClusterSpec.enableInTreeAutoscaling", "`instances` of a job is fixed"),
            changed(
                "rayClusterSpec.authOptions",
                "Ray answers requests without a token",
                "set `RAY_AUTH_MODE` and `RAY_AUTH_TOKEN` in `env` of all roles",
            ),
            changed(
                "rayClusterSpec.gcsFaultToleranceOptions",
                "no database keeps the state of the head",
                "`retry` starts a failed job again",
            ),
            note("rayClusterSpec.managedBy", CONTROLLER),
            note("rayClusterSpec.suspend", "`suspend` of the RayJob says it"),
            note("rayClusterSpec.upgradeStrategy", "a job is not updated while it runs"),
            note("rayClusterSpec.headServiceAnnotations", CONTROLLER),
            note("rayClusterSpec.rayVersion", "that of the image"),
            fact("runtimeEnvYAML", Fact::Packages),
            note("shutdownAfterJobFinishes", "a job ends with its command"),
            note("submissionMode", "jobc runs the command on the head"),
            fact("submitterPodTemplate", Fact::Submitter),
            note("submitterConfig", "jobc runs the command on the head"),
            fact("suspend", Fact::Suspend),
            fact("ttlSecondsAfterFinished", Fact::Ttl),
        ],
    )],
    places: &[
        PodGroups {
            at: "spec.rayClusterSpec.headGroupSpec",
            name: Name::Fixed("head"),
            template: "template",
            fields: &[("", RAY_GROUP)],
            metadata: &[],
        },
        PodGroups {
            at: "spec.rayClusterSpec.workerGroupSpecs[]",
            name: Name::Field("groupName"),
            template: "template",
            fields: &[("", RAY_GROUP)],
            metadata: &[],
        },
    ],
    framework: Stands::Ordered("ray"),
    builds: Some("rayjob"),
    ..KIND
};

const RAY_GROUP: &[Row] = &[
    field("groupName", "the name of the role"),
    note("headService", CONTROLLER),
    note("enableIngress", "`resources.ports` with `publish: service` reaches the dashboard"),
    note("idleTimeoutSeconds", "`instances` of a job is fixed"),
    note("labels", "labels of Ray"),
    note("maxReplicas", "`instances` of a job is fixed"),
    note("minReplicas", "`instances` of a job is fixed"),
    fact("numOfHosts", Fact::Hosts),
    note("rayStartParams", "jobc starts Ray with the resources of the role"),
    fact("replicas", Fact::Replicas),
    note("resources", "jobc starts Ray with the resources of the role"),
    note("scaleStrategy", "`instances` of a job is fixed"),
    note("serviceType", "`resources.ports` with `publish: service` reaches the dashboard"),
    note("suspend", "the default"),
];

pub(super) static LEADERWORKERSET: Kind = Kind {
    name: "LeaderWorkerSet",
    groups: &["leaderworkerset.x-k8s.io"],
    fields: &[(
        "spec",
        &[
            note("leaderWorkerTemplate.restartPolicy", "the first failure ends the job; `retry` repeats it"),
            note("leaderWorkerTemplate.resourceClaimTemplates", "the pods claim devices themselves"),
            fact("leaderWorkerTemplate.size", Fact::Size),
            note("leaderWorkerTemplate.subGroupPolicy", "a group is placed as a whole"),
            changed("leaderWorkerTemplate.volumeClaimTemplates", CLAIM_OF_POD, CLAIM_OF_JOB),
            note("networkConfig", NAMES),
            fact("replicas", Fact::Groups),
            note("rolloutStrategy", "a job is not updated while it runs"),
            note("startupPolicy", "`needs` of the worker orders the start"),
        ],
    )],
    places: &[
        PodGroups {
            at: "spec.leaderWorkerTemplate.leaderTemplate",
            name: Name::Fixed("leader"),
            template: "",
            fields: &[],
            metadata: &[],
        },
        PodGroups {
            at: "spec.leaderWorkerTemplate.workerTemplate",
            name: Name::Fixed("worker"),
            template: "",
            fields: &[],
            metadata: &[],
        },
    ],
    hosts: &[],
    variables: &[("LWS_WORKER_INDEX", "JOBC_RANK"), ("LWS_GROUP_SIZE", "JOBC_WORLD_SIZE")],
    builds: Some("leaderworkerset"),
    ..KIND
};

pub(super) static VOLCANO_JOB: Kind = Kind {
    name: "Job",
    groups: VOLCANO,
    fields: &[("spec", VOLCANO_SPEC)],
    places: &[PodGroups { at: "spec.tasks[]", ..VOLCANO_TASKS }],
    hosts: &["{job}-{group}-{i}"],
    variables: VOLCANO_VARIABLES,
    builds: Some("volcano"),
    ..KIND
};

pub(super) static VOLCANO_CRONJOB: Kind = Kind {
    name: "CronJob",
    groups: VOLCANO,
    fields: &[("spec", CRON), ("spec.jobTemplate.spec", VOLCANO_SPEC)],
    places: &[PodGroups { at: "spec.jobTemplate.spec.tasks[]", ..VOLCANO_TASKS }],
    variables: VOLCANO_VARIABLES,
    becomes: "a Volcano Job",
    ..KIND
};

const VOLCANO: &[&str] = &["batch.volcano.sh"];
const VOLCANO_VARIABLES: &[(&str, &str)] =
    &[("VC_TASK_INDEX", "JOBC_INDEX"), ("VK_TASK_INDEX", "JOBC_INDEX")];

/// The tasks of a Volcano Job.
const VOLCANO_TASKS: PodGroups = PodGroups {
    at: "",
    name: Name::Field("name"),
    template: "template",
    fields: &[("", VOLCANO_TASK)],
    metadata: &[],
};

const VOLCANO_SPEC: &[Row] = &[
    fact("maxRetry", Fact::MaxRetry),
    fact("minAvailable", Fact::MinAvailable),
    note("minSuccess", "`completion.min_succeeded` of a role"),
    changed(
        "networkTopology",
        "a topology of Volcano is not kept",
        "write `queue.topology` of a target with Kueue",
    ),
    field("plugins", "`kubernetes.volcano_plugins` of a target, besides `svc`"),
    fact("policies", Fact::Policies),
    setting("priorityClassName", "kubernetes.priority_class"),
    setting("queue", "kubernetes.queue.volcano"),
    note("runningEstimate", "the scheduler's own estimate"),
    field("schedulerName", "`kubernetes.scheduler` of a target; `volcano` comes with the kind"),
    fact("ttlSecondsAfterFinished", Fact::Ttl),
    refused("volumes", "claims of the job", "write `data` with `source: \"pvc:NAME\"`"),
];

const VOLCANO_TASK: &[Row] = &[
    fact("dependsOn.name", Fact::Needs),
    note("dependsOn.iteration", "the role waits for all of them"),
    fact("maxRetry", Fact::MaxRetry),
    fact("minAvailable", Fact::MinAvailable),
    field("name", "the name of the role"),
    changed(
        "partitionPolicy",
        "a topology of Volcano is not kept",
        "write `queue.topology` of a target with Kueue",
    ),
    fact("policies", Fact::Policies),
    fact("replicas", Fact::Replicas),
    note("topologyPolicy", "a setting of the kubelet"),
];
