//! The state in the object of a job.

use jobc_place::time::Time;
use serde_json::{Value, json};

use super::counts;
use super::kinds::{Counts, Status, Workload};
use crate::place::{JobState, JobSummary};

/// The label of every object with the name in the job file.
pub(crate) const JOB: &str = "jobc.dev/job";
/// The label with the digest of the plan.
pub(crate) const PLAN: &str = "jobc.dev/plan";
/// The label with the user who submitted.
pub(crate) const USER: &str = "jobc.dev/user";
/// The annotation of a job whose objects have all been created.
pub(crate) const SUBMITTED: &str = "jobc.dev/submitted";
/// The annotation of a job that its user stopped, with the time.
pub(crate) const STOPPED: &str = "jobc.dev/stopped";
/// The annotation with the roles and their instances: `ps=2,worker=8`.
pub(crate) const ROLES: &str = "jobc.dev/roles";
/// The annotation with what is kept of the plan.
pub(crate) const OUTLINE: &str = "jobc.dev/outline";
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

/// The items of a list field; none if it is absent.
pub(crate) fn items<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// The reference that makes the cluster remove an object with the job. `blockOwnerDeletion` would need more rights.
pub(crate) fn owner_reference(owner: &Value) -> Value {
    json!([{
        "apiVersion": text(owner, "/apiVersion"),
        "kind": text(owner, "/kind"),
        "name": name(owner),
        "uid": text(owner, "/metadata/uid"),
    }])
}

/// The condition of one of these types that is true.
pub(crate) fn condition<'a>(object: &'a Value, kinds: &[&str]) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions
        .iter()
        .find(|condition| kinds.contains(&text(condition, "/type")) && text(condition, "/status") == "True")
}

/// A condition of an object, with the reason and the message.
fn state<'a>(workload: &Workload, object: &'a Value) -> (Option<JobState>, &'a str, &'a str) {
    let of = |late: bool, state: JobState| if late { JobState::TimedOut } else { state };
    match &workload.status {
        Status::Conditions { succeeded, failed } => {
            let succeeded = condition(object, succeeded);
            let Some(found) = succeeded.or_else(|| condition(object, failed)) else { return (None, "", "") };
            let reason = text(found, "/reason");
            let ended = if succeeded.is_some() { JobState::Succeeded } else { JobState::Failed };
            let late = succeeded.is_none() && reason == "DeadlineExceeded";
            (Some(of(late, ended)), reason, text(found, "/message"))
        }
        Status::Phase(phase) => {
            let word = text(object, phase.at);
            let (reason, message) = (text(object, phase.reason), text(object, phase.message));
            let is = |words: &[&str]| words.contains(&word);
            let state = if phase.stopped.contains(&text(object, "/status/jobStatus")) {
                JobState::Stopped
            } else if is(phase.succeeded) {
                JobState::Succeeded
            } else if is(phase.failed) {
                of(reason == "DeadlineExceeded", JobState::Failed)
            } else if is(phase.suspended) {
                JobState::Suspended
            } else if is(phase.running) {
                JobState::Running
            } else {
                return (None, "", "");
            };
            (Some(state), reason, message)
        }
    }
}

/// The summary of an object of a kind.
pub(crate) fn summarize(workload: &Workload, object: &Value) -> JobSummary {
    let (told, reason, message) = state(workload, object);
    let mut tasks = counts::tasks(workload, object);
    let suspended = workload.suspend.is_some_and(|at| object.pointer(at) == Some(&Value::Bool(true)));
    let owned = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let stopped = metadata(object, "annotations", STOPPED);
    let state = match told {
        Some(state) if state.is_final() => state,
        _ if stopped.is_some() => JobState::Stopped,
        Some(state) => state,
        None if suspended => JobState::Suspended,
        None if condition(object, &["Available"]).is_some() && workload.counts == Counts::ByState => {
            JobState::Running
        }
        None if tasks.active > 0 => JobState::Running,
        None => JobState::Pending,
    };
    // Its pods exist; whether one runs is in `ready`, which every release since 1.24 has.
    let ready = counts::ready(workload, object);
    let state = match (state, ready) {
        (JobState::Running, Some(0)) if tasks.succeeded == 0 => JobState::Pending,
        (state, _) => state,
    };
    if workload.counts == Counts::ByState {
        tasks = counts::by_state(tasks.wanted, state);
    }
    let told = condition(
        object,
        match &workload.status {
            Status::Conditions { succeeded, .. } if state == JobState::Succeeded => succeeded,
            Status::Conditions { failed, .. } => failed,
            Status::Phase(_) => &[],
        },
    );
    let times = ["/status/completionTime", "/status/endTime", "/status/state/lastTransitionTime"];
    let ended = times
        .iter()
        .find_map(|at| owned(text(object, at)))
        .or_else(|| told.and_then(|condition| owned(text(condition, "/lastTransitionTime"))))
        .or_else(|| owned(text(object, "/status/containerStatuses/0/state/terminated/finishedAt")))
        .or_else(|| stopped.map(str::to_owned));
    JobSummary {
        kind: workload.shown().to_owned(),
        reason: owned(reason).filter(|_| state.is_final()),
        message: owned(message).filter(|_| state.is_final()),
        tasks,
        user: metadata(object, "labels", USER).map(str::to_owned),
        submitted: Time::parse(text(object, "/metadata/creationTimestamp")),
        started: Time::parse(text(object, "/status/startTime")),
        ended: ended.filter(|_| state.is_final()).and_then(|time| Time::parse(&time)),
        is_short: state == JobState::Running && counts::is_short(workload, object),
        is_complete: metadata(object, "labels", PLAN).is_none()
            || metadata(object, "annotations", SUBMITTED).is_some(),
        plan: metadata(object, "labels", PLAN).map(str::to_owned),
        outline: metadata(object, "annotations", OUTLINE).map(str::to_owned),
        ..JobSummary::new(
            name(object),
            metadata(object, "labels", JOB).unwrap_or_else(|| name(object)),
            state,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::TaskCounts;

    fn check(version: &str, kind: &str, spec: &Value, status: &Value) -> (JobState, TaskCounts, u8) {
        let object = json!({"kind": kind, "apiVersion": version, "spec": spec, "status": status,
            "metadata": {"name": "x", "annotations": {ROLES: "ps=2,worker=8"}}});
        let summary = summarize(Workload::of(&object).unwrap(), &object);
        (summary.state, summary.tasks, summary.state.exit_code())
    }

    fn condition(kind: &str, reason: &str) -> Value {
        json!({"conditions": [{"type": kind, "status": "True", "reason": reason}]})
    }

    #[test]
    fn the_state_of_a_job() {
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
            let (found, _, exit) = check("batch/v1", "Job", &spec, &status);
            assert_eq!((found, exit), (state, code), "{status}");
        }
    }

    #[test]
    fn a_job_that_was_stopped_is_suspended_for_good() {
        let at = "2026-01-01T00:00:00Z";
        let of = |status: Value| {
            let metadata = json!({"name": "x", "annotations": {STOPPED: at}});
            let object = json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": metadata, "spec": {"suspend": true}, "status": status});
            let summary = summarize(Workload::of(&object).unwrap(), &object);
            (summary.state, summary.ended)
        };
        assert_eq!(of(json!({})), (JobState::Stopped, Time::parse(at)));
        assert_eq!(of(condition("Complete", "")).0, JobState::Succeeded, "it had ended before");
    }

    #[test]
    fn the_state_of_other_kinds() {
        let (trainer, volcano, mpi) =
            ("trainer.kubeflow.org/v1alpha1", "batch.volcano.sh/v1alpha1", "kubeflow.org/v2beta1");
        let (ray, group) = ("ray.io/v1", "leaderworkerset.x-k8s.io/v1");
        let phase = |phase: &str| json!({"state": {"phase": phase, "reason": "", "message": "m"}});
        let ray_status = |deployment: &str, job: &str, reason: &str| json!({"jobDeploymentStatus": deployment, "jobStatus": job, "reason": reason});
        for (version, kind, spec, status, state) in [
            ("v1", "Pod", json!({}), json!({"phase": "Pending"}), JobState::Pending),
            ("v1", "Pod", json!({}), json!({"phase": "Running"}), JobState::Running),
            ("v1", "Pod", json!({}), json!({"phase": "Succeeded"}), JobState::Succeeded),
            ("v1", "Pod", json!({}), json!({"phase": "Failed", "reason": "Evicted"}), JobState::Failed),
            (
                "v1",
                "Pod",
                json!({}),
                json!({"phase": "Failed", "reason": "DeadlineExceeded"}),
                JobState::TimedOut,
            ),
            (
                trainer,
                "TrainJob",
                json!({"suspend": true}),
                condition("Suspended", "Suspended"),
                JobState::Suspended,
            ),
            (
                trainer,
                "TrainJob",
                json!({}),
                json!({"jobsStatus": [{"name": "worker", "active": 1}]}),
                JobState::Running,
            ),
            (trainer, "TrainJob", json!({}), condition("Complete", "JobsCompleted"), JobState::Succeeded),
            (trainer, "TrainJob", json!({}), condition("Failed", "FailedJobs"), JobState::Failed),
            (trainer, "TrainJob", json!({}), condition("Failed", "DeadlineExceeded"), JobState::TimedOut),
            (volcano, "Job", json!({}), phase("Pending"), JobState::Pending),
            (volcano, "Job", json!({}), phase("Running"), JobState::Running),
            (volcano, "Job", json!({}), phase("Restarting"), JobState::Running),
            (volcano, "Job", json!({}), phase("Completed"), JobState::Succeeded),
            (volcano, "Job", json!({}), phase("Terminated"), JobState::Failed),
            (volcano, "Job", json!({}), phase("Failed"), JobState::Failed),
            (volcano, "Job", json!({}), phase("Aborted"), JobState::Suspended),
            (mpi, "MPIJob", json!({"runPolicy": {"suspend": true}}), json!({}), JobState::Suspended),
            (
                mpi,
                "MPIJob",
                json!({}),
                json!({"replicaStatuses": {"Worker": {"active": 2}}}),
                JobState::Running,
            ),
            (mpi, "MPIJob", json!({}), condition("Succeeded", "MPIJobSucceeded"), JobState::Succeeded),
            (mpi, "MPIJob", json!({}), condition("Failed", "MPIJobFailed"), JobState::Failed),
            (ray, "RayJob", json!({"suspend": true}), ray_status("Suspended", "", ""), JobState::Suspended),
            (ray, "RayJob", json!({}), ray_status("Initializing", "", ""), JobState::Pending),
            (ray, "RayJob", json!({}), ray_status("Running", "RUNNING", ""), JobState::Running),
            (ray, "RayJob", json!({}), ray_status("Complete", "SUCCEEDED", ""), JobState::Succeeded),
            (ray, "RayJob", json!({}), ray_status("Complete", "STOPPED", ""), JobState::Stopped),
            (ray, "RayJob", json!({}), ray_status("Failed", "FAILED", "AppFailed"), JobState::Failed),
            (
                ray,
                "RayJob",
                json!({}),
                ray_status("Failed", "RUNNING", "DeadlineExceeded"),
                JobState::TimedOut,
            ),
            (group, "LeaderWorkerSet", json!({}), json!({}), JobState::Pending),
            (
                group,
                "LeaderWorkerSet",
                json!({}),
                condition("Available", "AllGroupsReady"),
                JobState::Running,
            ),
        ] {
            assert_eq!(check(version, kind, &spec, &status).0, state, "{kind} {status}");
        }
    }

    #[test]
    fn the_tasks_of_other_kinds() {
        let counts = |wanted, active, succeeded, failed| TaskCounts { wanted, active, succeeded, failed };
        for (version, kind, spec, status, expected) in [
            (
                "trainer.kubeflow.org/v1alpha1",
                "TrainJob",
                json!({}),
                json!({"jobsStatus": [{"name": "ps", "active": 1}, {"name": "worker", "succeeded": 1}]}),
                counts(10, 2, 8, 0),
            ),
            (
                "batch.volcano.sh/v1alpha1",
                "Job",
                json!({"tasks": [{"replicas": 2}, {"replicas": 3}]}),
                json!({"pending": 1, "running": 2, "succeeded": 1, "failed": 1}),
                counts(5, 3, 1, 1),
            ),
            (
                "kubeflow.org/v2beta1",
                "MPIJob",
                json!({"mpiReplicaSpecs": {"Launcher": {"replicas": 1}, "Worker": {"replicas": 4}}}),
                json!({"replicaStatuses": {"Launcher": {"active": 1}, "Worker": {"active": 4, "failed": 1}}}),
                counts(5, 5, 0, 1),
            ),
            ("v1", "Pod", json!({}), json!({"phase": "Running"}), counts(10, 10, 0, 0)),
            (
                "ray.io/v1",
                "RayJob",
                json!({}),
                json!({"jobDeploymentStatus": "Complete"}),
                counts(10, 0, 10, 0),
            ),
        ] {
            assert_eq!(check(version, kind, &spec, &status).1, expected, "{kind}");
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
        let (state, tasks, _) = check("jobset.x-k8s.io/v1alpha2", "JobSet", &spec, &status);
        assert_eq!(state, JobState::Running);
        assert_eq!(tasks, TaskCounts { wanted: 10, active: 2, succeeded: 8, failed: 0 });
    }
}
