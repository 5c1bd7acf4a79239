//! The table itself.

use super::clusters::{LEADERWORKERSET, RAYJOB, VOLCANO_CRONJOB, VOLCANO_JOB};
use super::kind::{Kind, Name, PodGroups};
use super::kubeflow::{MPIJOB, PYTORCHJOB, TFJOB, TRAINJOB};
use super::shared::{BATCH_CRON, JOB_SPEC, JOBSET_SPEC, KIND, REPLICATED_JOBS, SERVES};

/// Variables of an Indexed Job.
const INDEXED: &[(&str, &str)] = &[("JOB_COMPLETION_INDEX", "JOBC_INDEX")];

/// A place with one group.
const fn one(at: &'static str, template: &'static str) -> PodGroups {
    PodGroups { at, name: Name::Fixed("main"), template, fields: &[], metadata: &[] }
}

/// All kinds.
pub(in super::super) static KINDS: &[&Kind] = &[
    &POD,
    &JOB,
    &CRONJOB,
    &JOBSET,
    &PYTORCHJOB,
    &TFJOB,
    &MPIJOB,
    &TRAINJOB,
    &RAYJOB,
    &LEADERWORKERSET,
    &VOLCANO_JOB,
    &VOLCANO_CRONJOB,
    &DEPLOYMENT,
    &STATEFULSET,
];

static POD: Kind =
    Kind { name: "Pod", places: &[one("", "")], hosts: &["{job}"], builds: Some("pod"), ..KIND };

static JOB: Kind = Kind {
    name: "Job",
    groups: &["batch"],
    fields: &[("spec", JOB_SPEC)],
    places: &[one("spec", "template")],
    hosts: &["{job}-{i}"],
    variables: INDEXED,
    ..KIND
};

static CRONJOB: Kind = Kind {
    name: "CronJob",
    groups: &["batch"],
    fields: &[("spec", BATCH_CRON), ("spec.jobTemplate.spec", JOB_SPEC)],
    places: &[PodGroups {
        at: "spec.jobTemplate",
        name: Name::Fixed("main"),
        template: "spec.template",
        fields: &[],
        metadata: &["metadata"],
    }],
    variables: INDEXED,
    ..KIND
};

static JOBSET: Kind = Kind {
    name: "JobSet",
    groups: &["jobset.x-k8s.io"],
    fields: &[("spec", JOBSET_SPEC)],
    places: &[REPLICATED_JOBS],
    hosts: &["{job}-{group}-{0}-{i}", "{job}-{group}-{i}-{0}"],
    variables: INDEXED,
    builds: Some("jobset"),
    ..KIND
};

const FOREVER: &str = "a job ends when its command does, and nothing starts it again";

static DEPLOYMENT: Kind = Kind {
    name: "Deployment",
    groups: &["apps"],
    fields: &[("spec", SERVES)],
    places: &[one("spec", "template")],
    becomes: FOREVER,
    ..KIND
};

static STATEFULSET: Kind = Kind {
    name: "StatefulSet",
    groups: &["apps"],
    fields: &[("spec", SERVES)],
    places: &[one("spec", "template")],
    hosts: &["{job}-{i}"],
    becomes: FOREVER,
    ..KIND
};
