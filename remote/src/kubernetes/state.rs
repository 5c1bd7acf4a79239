//! What the object of a job says about its state.

use serde_json::Value;

use super::kinds::Workload;
use crate::place::{JobState, JobSummary, TaskCounts};

/// The label of every object with the name in the job file.
pub(crate) const JOB: &str = "jobc.dev/job";
/// The label with the digest of the plan.
pub(crate) const PLAN: &str = "jobc.dev/plan";
/// The label with the user who submitted.
pub(crate) const USER: &str = "jobc.dev/user";
/// The annotation that says that all objects of a submission are there.
pub(crate) const SUBMITTED: &str = "jobc.dev/submitted";
/// The label that jobc writes on everything.
pub(crate) const MANAGED: &str = "app.kubernetes.io/managed-by";
/// The label that puts a job into a Kueue queue.
pub(crate) const QUEUE: &str = "kueue.x-k8s.io/queue-name";

/// A label or annotation; `of` is `labels` or `annotations`.
pub(crate) fn metadata<'a>(object: &'a Value, of: &str, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get(of)?.get(key)?.as_str()
}

/// The name of an object.
pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// A text field; empty if it is absent.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The condition of one of these types that is true.
pub(crate) fn condition<'a>(object: &'a Value, kinds: &[&str]) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions
        .iter()
        .find(|condition| kinds.contains(&text(condition, "/type")) && text(condition, "/status") == "True")
}

/// The summary of an object of a kind.
pub(crate) fn summarize(workload: &Workload, object: &Value) -> JobSummary {
    let succeeded = condition(object, workload.succeeded);
    let failed = condition(object, workload.failed);
    let tasks = tasks(workload, object);
    let suspended = workload.suspend.is_some_and(|at| object.pointer(at) == Some(&Value::Bool(true)));
    let owned = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let (state, told) = match (succeeded, failed) {
        (Some(condition), _) => (JobState::Succeeded, Some(condition)),
        (None, Some(condition)) => {
            let late = text(condition, "/reason") == "DeadlineExceeded";
            (if late { JobState::TimedOut } else { JobState::Failed }, Some(condition))
        }
        _ if suspended => (JobState::Suspended, None),
        _ if tasks.active > 0 => (JobState::Running, None),
        _ => (JobState::Pending, None),
    };
    // Its pods exist; whether one runs is in `ready`, which every release since 1.24 has.
    let ready = ready(workload, object);
    let state = match (state, ready) {
        (JobState::Running, Some(0)) if tasks.succeeded == 0 => JobState::Pending,
        (state, _) => state,
    };
    let ended = owned(text(object, "/status/completionTime"))
        .or_else(|| told.and_then(|condition| owned(text(condition, "/lastTransitionTime"))));
    JobSummary {
        name: name(object).to_owned(),
        job: metadata(object, "labels", JOB).unwrap_or_else(|| name(object)).to_owned(),
        kind: workload.kind.to_owned(),
        state,
        reason: told.and_then(|condition| owned(text(condition, "/reason"))),
        message: told.and_then(|condition| owned(text(condition, "/message"))),
        tasks,
        user: metadata(object, "labels", USER).map(str::to_owned),
        submitted: owned(text(object, "/metadata/creationTimestamp")),
        started: owned(text(object, "/status/startTime")),
        ended: ended.filter(|_| state.is_final()),
        is_complete: metadata(object, "labels", PLAN).is_none()
            || metadata(object, "annotations", SUBMITTED).is_some(),
        plan: metadata(object, "labels", PLAN).map(str::to_owned),
    }
}

fn number(object: &Value, pointer: &str) -> Option<u64> {
    object.pointer(pointer).and_then(Value::as_u64)
}

fn tasks(workload: &Workload, object: &Value) -> TaskCounts {
    if workload.kind == "Job" {
        return TaskCounts {
            wanted: number(object, "/spec/completions").unwrap_or(1),
            active: number(object, "/status/active").unwrap_or_default(),
            succeeded: number(object, "/status/succeeded").unwrap_or_default(),
            failed: number(object, "/status/failed").unwrap_or_default(),
        };
    }
    let list = |pointer: &str| object.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let size = |role: &Value| {
        number(role, "/replicas").unwrap_or(1) * number(role, "/template/spec/completions").unwrap_or(1)
    };
    let roles: Vec<(&str, u64)> =
        list("/spec/replicatedJobs").map(|role| (text(role, "/name"), size(role))).collect();
    let mut counts = TaskCounts { wanted: roles.iter().map(|(_, size)| size).sum(), ..TaskCounts::default() };
    // A JobSet counts child Jobs; each of ours is a whole role.
    for status in list("/status/replicatedJobsStatus") {
        let size = roles.iter().find(|(name, _)| *name == text(status, "/name")).map_or(1, |(_, size)| *size);
        counts.active += number(status, "/active").unwrap_or_default() * size;
        counts.succeeded += number(status, "/succeeded").unwrap_or_default() * size;
        counts.failed += number(status, "/failed").unwrap_or_default();
    }
    counts
}

/// How many pods or child Jobs are ready, as far as the object says.
fn ready(workload: &Workload, object: &Value) -> Option<u64> {
    if workload.kind == "Job" {
        return number(object, "/status/ready");
    }
    // A JobSet's `ready` counts child Jobs of which every pod is ready or has succeeded: it says nothing about one.
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(kind: &str, spec: &Value, status: &Value) -> (JobState, TaskCounts, u8) {
        let version = if kind == "Job" { "batch/v1" } else { "jobset.x-k8s.io/v1alpha2" };
        let object = json!({"kind": kind, "apiVersion": version, "metadata": {"name": "x"}, "spec": spec, "status": status});
        let summary = summarize(Workload::of(&object).unwrap(), &object);
        (summary.state, summary.tasks, summary.state.exit_code())
    }

    #[test]
    fn the_state_of_a_job() {
        let condition = |kind: &str, reason: &str| json!({"conditions": [{"type": kind, "status": "True", "reason": reason}]});
        for (spec, status, state, code) in [
            (json!({"suspend": true}), json!({}), JobState::Suspended, 0),
            (json!({}), json!({}), JobState::Pending, 0),
            (json!({}), json!({"active": 2, "ready": 0}), JobState::Pending, 0),
            (json!({}), json!({"active": 2, "ready": 1}), JobState::Running, 0),
            (json!({}), condition("SuccessCriteriaMet", ""), JobState::Pending, 0),
            (json!({}), condition("Complete", ""), JobState::Succeeded, 0),
            (json!({}), condition("Failed", "BackoffLimitExceeded"), JobState::Failed, 1),
            (json!({"suspend": true}), condition("Failed", "DeadlineExceeded"), JobState::TimedOut, 124),
        ] {
            let (found, _, exit) = check("Job", &spec, &status);
            assert_eq!((found, exit), (state, code), "{status}");
        }
    }

    #[test]
    fn the_tasks_of_a_jobset_are_those_of_its_roles() {
        let spec = json!({"replicatedJobs": [
            {"name": "ps", "template": {"spec": {"completions": 2}}},
            {"name": "worker", "replicas": 1, "template": {"spec": {"completions": 8}}},
        ]});
        let status = json!({"replicatedJobsStatus": [
            {"name": "ps", "active": 1}, {"name": "worker", "succeeded": 1},
        ]});
        let (state, tasks, _) = check("JobSet", &spec, &status);
        assert_eq!(state, JobState::Running);
        assert_eq!(tasks, TaskCounts { wanted: 10, active: 2, succeeded: 8, failed: 0 });
    }
}
