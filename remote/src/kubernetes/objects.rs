//! The objects of jobs: found by selector or by name, with what belongs to them.

use std::cmp::Reverse;

use jobc_schema::percent::encode_segment;
use jobc_sys::error::{Error, Kind, Result};
use serde_json::Value;

use super::client::Client;
use super::kinds::{WORKLOADS, Workload};
use super::pods::{Pod, number_workers_of_ray};
use super::state::{JOB, SUBMITTED, condition, items, metadata, name, summarize, text};
use super::status::ApiError;
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
        match self.workload.pod_label {
            Some(label) => format!("labelSelector={}", encode_segment(&format!("{label}={}", self.name()))),
            None => format!("fieldSelector={}", encode_segment(&format!("metadata.name={}", self.name()))),
        }
    }
}

/// The objects of jobs that a selector chooses, the newest first; a kind that the cluster does not serve has none.
pub(crate) fn select(client: &Client, selector: &str) -> Result<Vec<ClusterJob>> {
    select_of(client, &mut WORKLOADS.iter(), selector)
}

/// The runs of a job that is submitted to the target, the newest first: of the kinds that the target may make of it.
pub(crate) fn runs_of(client: &Client, job: &str) -> Result<Vec<ClusterJob>> {
    let own = client.config().uses.workload();
    let mut kinds = WORKLOADS.iter().filter(|kind| {
        matches!(kind.kind, "Job" | "JobSet") && kind.group != "batch.volcano.sh" || Some(*kind) == own
    });
    select_of(client, &mut kinds, &format!("{JOB}={job}"))
}

fn select_of(
    client: &Client,
    kinds: &mut dyn Iterator<Item = &'static Workload>,
    selector: &str,
) -> Result<Vec<ClusterJob>> {
    let mut found = Vec::new();
    for workload in kinds {
        // Pods of other jobs have the labels of the job, but not that of a submission.
        let of_submission = if workload.pod_label.is_none() { format!(",{JOB}") } else { String::new() };
        let query = format!("labelSelector={}", encode_segment(&format!("{selector}{of_submission}")));
        match list::<Value>(client, &workload.path(&client.config().namespace), &query) {
            Ok(objects) => found.extend(objects.into_iter().map(|mut object| {
                // Items of a list have neither.
                object["kind"] = workload.kind.into();
                object["apiVersion"] = workload.api_version().into();
                ClusterJob { workload, object }
            })),
            Err(error) if is_unused(&error, workload) => {}
            Err(error) => return Err(error.into_error(&format!("list {}", workload.resource()))),
        }
    }
    found.sort_by_cached_key(|found| Reverse(age(&found.object)));
    Ok(found)
}

/// What sorts runs by age: RFC 3339 in UTC sorts as text. Of one second, what is being submitted is the newest.
fn age(object: &Value) -> (String, String) {
    let submitted = metadata(object, "annotations", SUBMITTED).unwrap_or("under way");
    (text(object, "/metadata/creationTimestamp").to_owned(), submitted.to_owned())
}

/// Whether a kind is not there for this user: the cluster does not serve it, or the target does not use it and the user
/// has no rights to it.
fn is_unused(error: &ApiError, workload: &Workload) -> bool {
    error.is(404) || (error.is(403) && !matches!(workload.group, "batch" | "jobset.x-k8s.io"))
}

/// Whether an object belongs to another job's object.
fn is_child(object: &Value) -> bool {
    items(object, "/metadata/ownerReferences")
        .any(|owner| owner.get("controller") == Some(&Value::Bool(true)) && Workload::of(owner).is_some())
}

/// The object of a run, or of the newest run of a job.
pub(crate) fn find(client: &Client, wanted: &str) -> Result<ClusterJob> {
    let namespace = &client.config().namespace;
    for workload in &WORKLOADS {
        let path = format!("{}/{wanted}", workload.path(namespace));
        match client.find::<Value>(&path) {
            // A TrainJob and a RayJob have a child of the same name.
            Ok(Some(object)) if !is_child(&object) => return Ok(ClusterJob { workload, object }),
            Ok(_) => {}
            Err(error) if is_unused(&error, workload) => {}
            Err(error) => return Err(error.into_error(&format!("read job `{wanted}`"))),
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
    let selector = encode_segment(&format!("jobset.sigs.k8s.io/jobset-name={name}"));
    list(client, &path, &format!("labelSelector={selector}")).unwrap_or_default()
}

/// The pods of a job.
pub(crate) fn pods(client: &Client, found: &ClusterJob) -> Result<Vec<Pod>> {
    let path = format!("/api/v1/namespaces/{}/pods", client.config().namespace);
    let found = list(client, &path, &found.pods_query());
    let mut pods = found.map_err(|error| error.into_error("list the pods of the job"))?;
    number_workers_of_ray(&mut pods);
    Ok(pods)
}

/// Whether a job has ended or no longer exists.
pub(crate) fn has_ended(client: &Client, found: &ClusterJob) -> Result<bool> {
    let now = client.find::<Value>(&found.path(&client.config().namespace));
    Ok(now.map_err(|error| error.into_error("read the job"))?.is_none_or(|object| {
        text(&object, "/metadata/uid") != found.uid() || summarize(found.workload, &object).state.is_final()
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(created: &str, submitted: Option<&str>) -> (String, String) {
        age(&json!({"metadata": {"creationTimestamp": created, "annotations": {SUBMITTED: submitted}}}))
    }

    #[test]
    fn runs_of_one_second_are_told_apart() {
        let second = "2026-11-28T10:00:00Z";
        let by_age = [
            at("2026-11-28T09:59:59Z", None),
            at(second, Some("2026-11-28T10:00:00.100000Z")),
            at(second, Some("2026-11-28T10:00:00.900000Z")),
            at(second, None),
            at("2026-11-28T10:00:01Z", Some("2026-11-28T10:00:01.000000Z")),
        ];
        assert!(by_age.is_sorted(), "{by_age:?}");
    }
}
