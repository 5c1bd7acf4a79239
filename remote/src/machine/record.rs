//! Records of jobs as `jobc ps` and `jobc inspect` print them.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::place::{JobDetail, JobState, JobSummary, TaskCounts, TaskStatus};

/// A job in the list of `jobc ps`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct ListedJob {
    pub(super) id: String,
    state: String,
    pub(super) submitted: String,
    #[serde(default)]
    started: Option<String>,
    #[serde(default)]
    ended: Option<String>,
    /// Numbers of tasks by state.
    #[serde(default)]
    tasks: BTreeMap<String, u64>,
    #[serde(default)]
    end: Option<End>,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct End {
    #[serde(default)]
    explanation: Option<String>,
}

/// A job as `jobc inspect` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct InspectedJob {
    pub(super) id: String,
    pub(super) state: String,
    #[serde(default)]
    pub(super) network: String,
    pub(super) submitted: String,
    #[serde(default)]
    started: Option<String>,
    #[serde(default)]
    ended: Option<String>,
    #[serde(default)]
    notes: Vec<String>,
    pub(super) tasks: Vec<InspectedTask>,
    #[serde(default)]
    end: Option<End>,
}

/// A task of a job.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct InspectedTask {
    pub(super) task: String,
    pub(super) state: String,
    #[serde(default)]
    attempt: u32,
    #[serde(default)]
    pub(super) address: Option<String>,
    #[serde(default)]
    pub(super) ports: BTreeMap<String, u16>,
    #[serde(default)]
    started: Option<String>,
    #[serde(default)]
    ended: Option<String>,
    #[serde(default)]
    exit_code: Option<i64>,
    #[serde(default)]
    signal: Option<String>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    earlier: Vec<Attempt>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Attempt {
    #[serde(rename = "attempt")]
    number: u32,
    #[serde(default)]
    started: Option<String>,
    #[serde(default)]
    ended: Option<String>,
    #[serde(default)]
    exit_code: Option<i64>,
    #[serde(default)]
    signal: Option<String>,
    #[serde(default)]
    reason: Option<String>,
}

impl ListedJob {
    /// The job under its id.
    pub(super) fn summary(&self) -> JobSummary {
        let explanation = self.end.as_ref().and_then(|end| end.explanation.clone());
        JobSummary {
            kind: "job".to_owned(),
            message: explanation,
            tasks: counts(self.tasks.iter().map(|(state, count)| (state.as_str(), *count))),
            submitted: Some(self.submitted.clone()),
            started: self.started.clone(),
            ended: self.ended.clone(),
            ..JobSummary::new(&self.id, &self.id, state(&self.state))
        }
    }
}

impl InspectedJob {
    /// The job with its tasks, under the name and with the digest that `summary` has.
    pub(super) fn detail(&self, summary: JobSummary) -> JobDetail {
        let explanation = self.end.as_ref().and_then(|end| end.explanation.clone());
        let queued =
            (self.state == "queued").then(|| "it waits for free resources of the machine".to_owned());
        let reasons = explanation.iter().cloned().chain(queued).chain(self.notes.iter().cloned()).collect();
        let summary = JobSummary {
            state: state(&self.state),
            message: explanation,
            tasks: counts(self.tasks.iter().map(|task| (task.state.as_str(), 1))),
            submitted: Some(self.submitted.clone()),
            started: self.started.clone(),
            ended: self.ended.clone(),
            is_complete: true,
            ..summary
        };
        let task_list = self.tasks.iter().flat_map(InspectedTask::statuses).collect();
        JobDetail { summary, namespace: None, reasons, task_list }
    }
}

impl InspectedTask {
    /// Whether commands can run in it.
    pub(super) fn is_running(&self) -> bool {
        task_state(&self.state) == "running"
    }

    /// Its attempts, the first one first.
    fn statuses(&self) -> Vec<TaskStatus> {
        let with_signal =
            |reason: &Option<String>, signal: &Option<String>| reason.clone().or_else(|| signal.clone());
        let earlier = self.earlier.iter().map(|attempt| TaskStatus {
            task: self.task.clone(),
            attempt: attempt.number,
            state: if attempt.exit_code == Some(0) { "succeeded" } else { "failed" },
            pod: None,
            node: None,
            exit_code: attempt.exit_code,
            started: attempt.started.clone(),
            ended: attempt.ended.clone(),
            reason: with_signal(&attempt.reason, &attempt.signal),
        });
        let last = TaskStatus {
            task: self.task.clone(),
            attempt: self.attempt,
            state: task_state(&self.state),
            pod: None,
            node: None,
            exit_code: self.exit_code,
            started: self.started.clone(),
            ended: self.ended.clone(),
            reason: with_signal(&self.reason, &self.signal),
        };
        earlier.chain([last]).collect()
    }
}

/// The state of a job by its word in a record; one of a later version is that of a job that has not ended.
fn state(word: &str) -> JobState {
    serde_json::from_value(word.into()).unwrap_or(JobState::Running)
}

fn task_state(word: &str) -> &'static str {
    match word {
        "running" | "ready" => "running",
        "succeeded" => "succeeded",
        "stopping" => "stopping",
        "creating" | "created" => "starting",
        "failed" | "stopped" => "failed",
        _ => "pending",
    }
}

fn counts<'a>(tasks: impl Iterator<Item = (&'a str, u64)>) -> TaskCounts {
    let mut counts = TaskCounts::default();
    for (word, count) in tasks {
        counts.wanted += count;
        match task_state(word) {
            "running" | "starting" | "stopping" => counts.active += count,
            "succeeded" => counts.succeeded += count,
            "failed" => counts.failed += count,
            _ => {}
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_and_reasons_are_those_of_the_record() {
        let text = r#"{"id": "a.1", "state": "failed", "network": "host", "submitted": "2026-01-01T00:00:00Z",
            "tasks": [{"task": "main-0", "state": "failed", "attempt": 2, "exit_code": 137, "reason": "out of memory",
                       "earlier": [{"attempt": 1, "exit_code": 139, "signal": "SIGSEGV"}]},
                      {"task": "main-1", "state": "waiting", "attempt": 0}],
            "end": {"explanation": "failed: main-0: exit 137", "exit_code": 1}, "unknown": {}}"#;
        let job: InspectedJob = serde_json::from_str(text).unwrap();
        let listed: ListedJob = serde_json::from_str(
            r#"{"id": "a.1", "state": "running", "submitted": "x", "tasks": {"running": 2}}"#,
        )
        .unwrap();
        let detail = job.detail(listed.summary());
        assert_eq!(detail.summary.state, JobState::Failed);
        assert_eq!(detail.reasons, ["failed: main-0: exit 137"]);
        let tasks: Vec<_> = detail
            .task_list
            .iter()
            .map(|task| {
                (task.task.as_str(), task.attempt, task.state, task.exit_code, task.reason.as_deref())
            })
            .collect();
        assert_eq!(
            tasks,
            [
                ("main-0", 1, "failed", Some(139), Some("SIGSEGV")),
                ("main-0", 2, "failed", Some(137), Some("out of memory")),
                ("main-1", 0, "pending", None, None),
            ]
        );
        assert_eq!(listed.summary().tasks, TaskCounts { wanted: 2, active: 2, ..TaskCounts::default() });
    }
}
