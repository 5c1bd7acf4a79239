//! The kinds of objects that are jobs, and how each says what became of it.

use serde_json::Value;

/// A kind of object that is a job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Workload {
    pub(crate) kind: &'static str,
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) plural: &'static str,
    /// The field that holds the job back; none if the kind cannot.
    pub(crate) suspend: Option<&'static str>,
    /// The label of its pods with its name.
    pub(crate) pod_label: &'static str,
    /// Condition types that mean success.
    pub(crate) succeeded: &'static [&'static str],
    /// Condition types that mean failure.
    pub(crate) failed: &'static [&'static str],
}

/// The kinds that jobc writes.
pub(crate) const WORKLOADS: [Workload; 2] = [
    Workload {
        kind: "Job",
        group: "batch",
        version: "v1",
        plural: "jobs",
        suspend: Some("/spec/suspend"),
        pod_label: "batch.kubernetes.io/job-name",
        succeeded: &["Complete"],
        failed: &["Failed"],
    },
    Workload {
        kind: "JobSet",
        group: "jobset.x-k8s.io",
        version: "v1alpha2",
        plural: "jobsets",
        suspend: Some("/spec/suspend"),
        pod_label: "jobset.sigs.k8s.io/jobset-name",
        succeeded: &["Completed"],
        failed: &["Failed"],
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

    /// The path of the collection in a namespace.
    pub(crate) fn path(&self, namespace: &str) -> String {
        format!("/apis/{}/{}/namespaces/{namespace}/{}", self.group, self.version, self.plural)
    }

    /// `jobs.batch`, as RBAC and messages write it.
    pub(crate) fn resource(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }
}
