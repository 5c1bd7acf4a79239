//! Jobs as the server describes them, in the words of every place.

use std::time::{Duration, SystemTime};

use super::api::{Detail, JobStatus, Summary};
use super::names;
use super::why;
use crate::place::{JobState, JobSummary, TaskCounts};

/// What `inspect` shows as the kind.
const KIND: &str = "OpenPAI job";
/// The exit code of `timeout`, by which the limit of a role ends a task.
const TIMEOUT_EXIT_CODE: i64 = 124;
/// A pod exceeded its deadline (pai, `src/k8s-job-exit-spec/config/k8s-job-exit-spec.yaml`).
const DEADLINE_EXIT_CODE: i64 = -1004;

/// The state of a job (pai, `convertState` of `src/rest-server/src/models/v2/utils/frameworkConverter.js`).
///
/// A job in `STOPPING` still has containers. `UNKNOWN` is a job that its controller has not seen yet.
pub(crate) fn job_state(state: &str, exit_code: Option<i64>) -> JobState {
    match state {
        "RUNNING" | "STOPPING" => JobState::Running,
        "SUCCEEDED" => JobState::Succeeded,
        "STOPPED" => JobState::Stopped,
        "FAILED" if matches!(exit_code, Some(TIMEOUT_EXIT_CODE | DEADLINE_EXIT_CODE)) => JobState::TimedOut,
        "FAILED" => JobState::Failed,
        _ => JobState::Pending,
    }
}

/// The state of a task.
pub(crate) fn task_state(state: &str) -> &'static str {
    match state {
        "RUNNING" => "running",
        "STOPPING" => "stopping",
        "SUCCEEDED" => "succeeded",
        "FAILED" => "failed",
        "STOPPED" => "stopped",
        _ => "pending",
    }
}

/// A job of a list. Its tasks are not in there.
pub(crate) fn of_list(job: &Summary) -> JobSummary {
    let state = job_state(&job.state, job.app_exit_code);
    JobSummary {
        name: job.name.clone(),
        job: names::job_of(&job.name).to_owned(),
        kind: KIND.to_owned(),
        state,
        reason: stopping(&job.state),
        message: None,
        tasks: TaskCounts { wanted: job.total_task_number, ..TaskCounts::default() },
        user: Some(job.username.clone()).filter(|user| !user.is_empty()),
        submitted: time(job.submission_time.or(job.created_time)),
        started: time(job.launched_time),
        ended: time(job.completed_time).filter(|_| state.is_final()),
        is_complete: names::is_complete(job.tags.as_deref()),
        plan: names::plan_of(job.tags.as_deref()),
    }
}

/// A job with its tasks.
pub(crate) fn of_detail(job: &Detail) -> JobSummary {
    let status = &job.job_status;
    let state = job_state(&status.state, why::exit_code(status));
    JobSummary {
        name: job.name.clone(),
        job: names::job_of(&job.name).to_owned(),
        kind: KIND.to_owned(),
        state,
        reason: stopping(&status.state).or_else(|| phrase(status)),
        message: why::end(status),
        tasks: counts(job),
        user: Some(status.username.clone()).filter(|user| !user.is_empty()),
        submitted: time(status.submission_time.or(status.created_time)),
        started: time(status.launched_time.or(status.app_launched_time)),
        ended: time(status.completed_time).filter(|_| state.is_final()),
        is_complete: names::is_complete(job.tags.as_deref()),
        plan: names::plan_of(job.tags.as_deref()),
    }
}

fn stopping(state: &str) -> Option<String> {
    (state == "STOPPING").then(|| "Stopping".to_owned())
}

/// The server's word for the end of a job that did not succeed.
fn phrase(status: &JobStatus) -> Option<String> {
    let spec = status.app_exit_spec.as_ref().filter(|_| status.state == "FAILED")?;
    Some(spec.phrase.clone()).filter(|phrase| !phrase.is_empty())
}

fn counts(job: &Detail) -> TaskCounts {
    let tasks = || job.task_roles.values().flat_map(|role| &role.task_statuses);
    let count =
        |states: &[&str]| tasks().filter(|task| states.contains(&task.task_state.as_str())).count() as u64;
    TaskCounts {
        wanted: tasks().count() as u64,
        active: count(&["RUNNING", "STOPPING"]),
        succeeded: count(&["SUCCEEDED"]),
        failed: count(&["FAILED"]),
    }
}

/// A time in RFC 3339; 0 is how some releases write that there is none.
pub(crate) fn time(millis: Option<i64>) -> Option<String> {
    let millis = u64::try_from(millis?).ok().filter(|millis| *millis > 0)?;
    let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis))?;
    Some(humantime::format_rfc3339_seconds(at).to_string())
}

/// A time as databases write it (`2026-01-01T00:00:00.000Z`), in seconds.
pub(crate) fn time_of(text: &str) -> String {
    match text.split_once('.') {
        Some((second, rest)) if rest.ends_with('Z') => format!("{second}Z"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn states_have_the_exit_codes_of_wait() {
        for (state, code, expected, exit) in [
            ("WAITING", None, JobState::Pending, 0),
            ("RUNNING", None, JobState::Running, 0),
            ("STOPPING", None, JobState::Running, 0),
            ("SUCCEEDED", Some(0), JobState::Succeeded, 0),
            ("FAILED", Some(255), JobState::Failed, 1),
            ("FAILED", Some(124), JobState::TimedOut, 124),
            ("FAILED", Some(-1004), JobState::TimedOut, 124),
            ("STOPPED", Some(-210), JobState::Stopped, 130),
            ("UNKNOWN", None, JobState::Pending, 0),
        ] {
            let found = job_state(state, code);
            assert_eq!((found, found.exit_code()), (expected, exit), "{state}");
        }
    }

    #[test]
    fn a_list_has_what_tables_show() {
        let job = json!({
            "name": "gpt-7f4k2", "username": "alice", "state": "SUCCEEDED", "tags": ["mine", "jobc-plan-ab"],
            "submissionTime": 1_600_000_000_000_i64, "createdTime": null, "launchedTime": 1_600_000_060_000_i64,
            "completedTime": 1_600_000_120_000_i64, "totalTaskNumber": 4, "appExitCode": 0,
        });
        let job = of_list(&serde_json::from_value(job).unwrap());
        assert_eq!((job.name.as_str(), job.job.as_str()), ("gpt-7f4k2", "gpt"));
        assert_eq!(job.submitted.as_deref(), Some("2020-09-13T12:26:40Z"));
        assert_eq!(job.ended.as_deref(), Some("2020-09-13T12:28:40Z"));
        assert_eq!((job.plan.as_deref(), job.is_complete, job.tasks.wanted), (Some("ab"), true, 4));
        // Of a release without tags nothing can be missing; without its tag, a submission was broken off.
        let bare = |tags| of_list(&Summary { tags, ..Summary::default() }).is_complete;
        assert_eq!((bare(None), bare(Some(vec![]))), (true, false));
    }

    #[test]
    fn zero_and_null_are_no_times() {
        assert_eq!((time(Some(0)), time(None), time(Some(-1))), (None, None, None));
    }
}
