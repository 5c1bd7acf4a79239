//! The objects of jobs: found by selector or by name, with what belongs to them.

use jobc_sys::error::{Error, Kind, Result};
use serde_json::Value;

use super::client::{Client, encode};
use super::kinds::{WORKLOADS, Workload};
use super::pods::Pod;
use super::state::{JOB, condition, name, summarize, text};
use super::watch::list;
use crate::place::{JobState, JobSummary};

/// The object of a job.
pub(crate) struct ClusterJob {
    pub(crate) workload: &'static Workload,
    pub(crate) object: Value,
}

impl ClusterJob {
    /// The name of the run.
    pub(crate) fn name(&self) -> &str {
        name(&self.object)
    }

    pub(crate) fn uid(&self) -> &str {
        text(&self.object, "/metadata/uid")
    }

    /// The path of the object.
    pub(crate) fn path(&self, namespace: &str) -> String {
        format!("{}/{}", self.workload.path(namespace), self.name())
    }

    /// The query that selects its pods.
    pub(crate) fn pods_query(&self) -> String {
        format!("labelSelector={}", encode(&format!("{}={}", self.workload.pod_label, self.name())))
    }
}

/// The objects of jobs that a selector chooses, the newest first; a kind that the cluster does not serve has none.
pub(crate) fn select(client: &Client, selector: &str) -> Result<Vec<ClusterJob>> {
    let query = format!("labelSelector={}", encode(selector));
    let mut found = Vec::new();
    for workload in &WORKLOADS {
        match list::<Value>(client, &workload.path(&client.config().namespace), &query) {
            Ok(objects) => found.extend(objects.into_iter().map(|mut object| {
                // Items of a list have neither.
                object["kind"] = workload.kind.into();
                object["apiVersion"] = format!("{}/{}", workload.group, workload.version).into();
                ClusterJob { workload, object }
            })),
            Err(error) if error.is(404) => {}
            Err(error) => return Err(error.into_error(&format!("list {}", workload.resource()))),
        }
    }
    // RFC 3339 in UTC sorts as text.
    found.sort_by(|a, b| {
        let key = |found: &ClusterJob| text(&found.object, "/metadata/creationTimestamp").to_owned();
        key(b).cmp(&key(a))
    });
    Ok(found)
}

/// The object of a run, or of the newest run of a job.
pub(crate) fn find(client: &Client, wanted: &str) -> Result<ClusterJob> {
    let namespace = &client.config().namespace;
    for workload in &WORKLOADS {
        let path = format!("{}/{wanted}", workload.path(namespace));
        let found = client.find::<Value>(&path);
        if let Some(object) = found.map_err(|error| error.into_error(&format!("read job `{wanted}`")))? {
            return Ok(ClusterJob { workload, object });
        }
    }
    let is_label = wanted.len() <= 63 && wanted.ends_with(|c: char| c.is_ascii_alphanumeric());
    let runs = if is_label { select(client, &format!("{JOB}={wanted}"))? } else { vec![] };
    runs.into_iter().next().ok_or_else(|| {
        Error::new(Kind::NotFound, format!("there is no job `{wanted}` in the namespace `{namespace}`"))
            .help("it may have been removed; `jobc ps --target TARGET --all` lists the jobs")
    })
}

/// The summary of a job, with what only the objects below it say.
pub(crate) fn summary(client: &Client, found: &ClusterJob) -> JobSummary {
    let mut summary = summarize(found.workload, &found.object);
    // A JobSet says only that a Job of it failed.
    if summary.state == JobState::Failed && found.workload.kind == "JobSet" {
        let late = children(client, &summary.name).iter().any(|child| {
            condition(child, &["Failed"]).is_some_and(|failed| text(failed, "/reason") == "DeadlineExceeded")
        });
        if late {
            summary.state = JobState::TimedOut;
        }
    }
    summary
}

/// The Jobs of a JobSet; none if they cannot be read.
pub(crate) fn children(client: &Client, name: &str) -> Vec<Value> {
    let path = WORKLOADS[0].path(&client.config().namespace);
    let selector = encode(&format!("jobset.sigs.k8s.io/jobset-name={name}"));
    list(client, &path, &format!("labelSelector={selector}")).unwrap_or_default()
}

/// The pods of a job.
pub(crate) fn pods(client: &Client, found: &ClusterJob) -> Result<Vec<Pod>> {
    let path = format!("/api/v1/namespaces/{}/pods", client.config().namespace);
    list(client, &path, &found.pods_query()).map_err(|error| error.into_error("list the pods of the job"))
}

/// Whether a job has ended or does not exist any more.
pub(crate) fn has_ended(client: &Client, found: &ClusterJob) -> Result<bool> {
    let now = client.find::<Value>(&found.path(&client.config().namespace));
    Ok(now.map_err(|error| error.into_error("read the job"))?.is_none_or(|object| {
        text(&object, "/metadata/uid") != found.uid() || summarize(found.workload, &object).state.is_final()
    }))
}
