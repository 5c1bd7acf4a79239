//! The kinds of objects that are jobs, and how each says what became of it.

use serde_json::{Map, Value, json};

/// A kind of object that is a job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Workload {
    pub(crate) kind: &'static str,
    /// Its API group; empty for the core of Kubernetes.
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) plural: &'static str,
    /// The field that holds the job back; none if the kind cannot.
    pub(crate) suspend: Option<&'static str>,
    /// The label of its pods with its name; none if the object is the pod.
    pub(crate) pod_label: Option<&'static str>,
    /// How it says its state.
    pub(crate) status: Status,
    /// How it counts its tasks.
    pub(crate) counts: Counts,
}

/// How a kind says its state.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// By the types of conditions that are true.
    Conditions { succeeded: &'static [&'static str], failed: &'static [&'static str] },
    /// By a word in a field, with its reason and message in others.
    Phase(Phase),
}

/// The words of a field that says the state.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Phase {
    pub(crate) at: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) message: &'static str,
    pub(crate) suspended: &'static [&'static str],
    pub(crate) running: &'static [&'static str],
    pub(crate) succeeded: &'static [&'static str],
    pub(crate) failed: &'static [&'static str],
    pub(crate) stopped: &'static [&'static str],
}

/// How a kind counts its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    /// By pods, in the fields of a Job.
    Job,
    /// By child Jobs, each of which is a whole role, in a list at this place.
    ChildJobs(&'static str),
    /// By pods, in the fields of a Volcano Job.
    Volcano,
    /// By pods of each part, in the fields of an MPIJob.
    Replicas,
    /// Not at all: the state of the job is that of its tasks.
    ByState,
}

/// The label of pods with the name of their JobSet.
const JOBSET: &str = "jobset.sigs.k8s.io/jobset-name";

/// The kinds that jobc writes; those of Kubernetes and JobSet first, which most jobs are.
pub(crate) const WORKLOADS: [Workload; 8] = [
    Workload {
        kind: "Job",
        group: "batch",
        version: "v1",
        plural: "jobs",
        suspend: Some("/spec/suspend"),
        pod_label: Some("batch.kubernetes.io/job-name"),
        status: Status::Conditions { succeeded: &["Complete"], failed: &["Failed"] },
        counts: Counts::Job,
    },
    Workload {
        kind: "JobSet",
        group: "jobset.x-k8s.io",
        version: "v1alpha2",
        plural: "jobsets",
        suspend: Some("/spec/suspend"),
        pod_label: Some(JOBSET),
        status: Status::Conditions { succeeded: &["Completed"], failed: &["Failed"] },
        counts: Counts::ChildJobs("/status/replicatedJobsStatus"),
    },
    Workload {
        kind: "Pod",
        group: "",
        version: "v1",
        plural: "pods",
        suspend: None,
        pod_label: None,
        status: Status::Phase(Phase {
            at: "/status/phase",
            reason: "/status/reason",
            message: "/status/message",
            suspended: &[],
            running: &["Running"],
            succeeded: &["Succeeded"],
            failed: &["Failed"],
            stopped: &[],
        }),
        counts: Counts::ByState,
    },
    Workload {
        kind: "TrainJob",
        group: "trainer.kubeflow.org",
        version: "v1alpha1",
        plural: "trainjobs",
        suspend: Some("/spec/suspend"),
        pod_label: Some(JOBSET),
        status: Status::Conditions { succeeded: &["Complete"], failed: &["Failed"] },
        counts: Counts::ChildJobs("/status/jobsStatus"),
    },
    Workload {
        kind: "Job",
        group: "batch.volcano.sh",
        version: "v1alpha1",
        plural: "jobs",
        suspend: None,
        pod_label: Some("volcano.sh/job-name"),
        status: Status::Phase(Phase {
            at: "/status/state/phase",
            reason: "/status/state/reason",
            message: "/status/state/message",
            // An aborted job can be resumed.
            suspended: &["Aborting", "Aborted"],
            running: &["Running", "Restarting", "Completing", "Terminating"],
            succeeded: &["Completed"],
            failed: &["Failed", "Terminated"],
            stopped: &[],
        }),
        counts: Counts::Volcano,
    },
    Workload {
        kind: "MPIJob",
        group: "kubeflow.org",
        version: "v2beta1",
        plural: "mpijobs",
        suspend: Some("/spec/runPolicy/suspend"),
        pod_label: Some("training.kubeflow.org/job-name"),
        status: Status::Conditions { succeeded: &["Succeeded"], failed: &["Failed"] },
        counts: Counts::Replicas,
    },
    Workload {
        kind: "RayJob",
        group: "ray.io",
        version: "v1",
        plural: "rayjobs",
        suspend: Some("/spec/suspend"),
        // KubeRay chooses the names of its clusters.
        pod_label: Some("jobc.dev/name"),
        status: Status::Phase(Phase {
            at: "/status/jobDeploymentStatus",
            reason: "/status/reason",
            message: "/status/message",
            suspended: &["Suspending", "Suspended"],
            running: &["Running", "Retrying"],
            succeeded: &["Complete"],
            failed: &["Failed"],
            stopped: &["STOPPED"],
        }),
        counts: Counts::ByState,
    },
    Workload {
        kind: "LeaderWorkerSet",
        group: "leaderworkerset.x-k8s.io",
        version: "v1",
        plural: "leaderworkersets",
        suspend: None,
        pod_label: Some("leaderworkerset.sigs.k8s.io/name"),
        // It never ends.
        status: Status::Conditions { succeeded: &[], failed: &[] },
        counts: Counts::ByState,
    },
];

impl Workload {
    /// The kind of an object.
    pub(crate) fn of(object: &Value) -> Option<&'static Self> {
        let kind = object.get("kind").and_then(Value::as_str)?;
        let version = object.get("apiVersion").and_then(Value::as_str)?;
        let group = version.split_once('/').map_or("", |(group, _)| group);
        WORKLOADS.iter().find(|known| known.kind == kind && known.group == group)
    }

    /// Its `apiVersion`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The path of its group and version.
    pub(crate) fn root(&self) -> String {
        let root = if self.group.is_empty() { "api" } else { "apis" };
        format!("/{root}/{}", self.api_version())
    }

    /// The path of the collection in a namespace.
    pub(crate) fn path(&self, namespace: &str) -> String {
        format!("{}/namespaces/{namespace}/{}", self.root(), self.plural)
    }

    /// `jobs.batch`, as RBAC and messages write it.
    pub(crate) fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Its name for people, who may have two kinds of Jobs.
    pub(crate) fn shown(&self) -> &'static str {
        if self.group == "batch.volcano.sh" { "Volcano Job" } else { self.kind }
    }

    /// Whether every cluster of Kubernetes has it.
    pub(crate) fn is_built_in(&self) -> bool {
        matches!(self.group, "" | "batch")
    }

    /// Whether a JobSet of the same name runs it, or is it.
    pub(crate) fn has_jobset(&self) -> bool {
        self.pod_label == Some(JOBSET)
    }

    /// A merge patch that sets the field that holds the job back.
    pub(crate) fn suspension(&self, suspend: bool) -> Option<Value> {
        let mut value = json!(suspend);
        for key in self.suspend?.trim_start_matches('/').rsplit('/') {
            value = Value::Object(Map::from_iter([(key.to_owned(), value)]));
        }
        Some(value)
    }
}
