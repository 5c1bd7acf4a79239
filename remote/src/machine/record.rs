//! Records of jobs as `jobc ps` and `jobc inspect` print them.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use jobc_place::job::{End, RoleCombination};
use jobc_place::metric::MetricValue;
use jobc_place::time::Time;
use serde::Deserialize;

use crate::place::{JobDetail, JobState, JobSummary, TaskCounts, TaskState, TaskStatus};

/// A job in the list of `jobc ps`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct ListedJob {
    pub(super) id: String,
    state: String,
    pub(super) submitted: Option<Time>,
    #[serde(default)]
    started: Option<Time>,
    #[serde(default)]
    ended: Option<Time>,
    /// Numbers of tasks by state.
    #[serde(default)]
    tasks: BTreeMap<String, u64>,
    #[serde(default)]
    end: Option<End>,
}

/// A job as `jobc inspect` prints it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct InspectedJob {
    pub(super) id: String,
    state: String,
    #[serde(default = "first")]
    attempt: u32,
    #[serde(default)]
    pub(super) network: String,
    submitted: Option<Time>,
    #[serde(default)]
    started: Option<Time>,
    #[serde(default)]
    ended: Option<Time>,
    #[serde(default)]
    reasons: Vec<String>,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default)]
    combinations: IndexMap<String, RoleCombination>,
    #[serde(default)]
    metrics: Vec<MetricValue>,
    pub(super) tasks: Vec<TaskStatus>,
    #[serde(default)]
    end: Option<End>,
}

fn first() -> u32 {
    1
}

impl ListedJob {
    /// The job under its id.
    pub(super) fn summary(&self) -> JobSummary {
        JobSummary {
            kind: "job".to_owned(),
            tasks: counts(self.tasks.iter().map(|(state, count)| (state.as_str(), *count))),
            submitted: self.submitted,
            started: self.started,
            ended: self.ended,
            end: self.end.clone(),
            ..JobSummary::new(&self.id, &self.id, state(&self.state))
        }
    }
}

impl InspectedJob {
    /// The job with its tasks, under the name and with the digest that `summary` has.
    pub(super) fn detail(self, summary: JobSummary) -> JobDetail {
        let tasks = counts(self.tasks.iter().map(|task| (task.state.as_str(), 1)));
        let summary = JobSummary {
            state: state(&self.state),
            tasks,
            submitted: self.submitted,
            started: self.started,
            ended: self.ended,
            end: self.end,
            is_complete: true,
            ..summary
        };
        JobDetail {
            attempt: self.attempt,
            reasons: self.reasons,
            notes: self.notes,
            facts: vec![("job there", self.id), ("network", self.network)],
            combinations: self.combinations,
            metrics: self.metrics,
            ..JobDetail::new(summary, self.tasks)
        }
    }
}

/// Whether commands can run in a task.
pub(super) fn is_running(task: &TaskStatus) -> bool {
    matches!(task.state, TaskState::Running | TaskState::Ready)
}

/// The state of a job by its word in a record; one of a later version is that of a job that has not ended.
fn state(word: &str) -> JobState {
    serde_json::from_value(word.into()).unwrap_or(JobState::Running)
}

fn counts<'a>(tasks: impl Iterator<Item = (&'a str, u64)>) -> TaskCounts {
    let mut counts = TaskCounts::default();
    for (word, count) in tasks {
        counts.wanted += count;
        match serde_json::from_value(word.into()) {
            Ok(TaskState::Succeeded) => counts.succeeded += count,
            Ok(TaskState::Failed | TaskState::Stopped) => counts.failed += count,
            Ok(state) if state.is_alive() || state == TaskState::Creating => counts.active += count,
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
            "reasons": ["failed: main-0: exit 137"],
            "tasks": [{"task": "main-0", "state": "failed", "attempt": 2, "exit_code": 137, "reason": "out of memory",
                       "earlier": [{"attempt": 1, "exit_code": 139, "signal": "SIGSEGV"}]},
                      {"task": "main-1", "state": "waiting", "attempt": 0}],
            "end": {"explanation": "failed: main-0: exit 137", "exit_code": 1}, "unknown": {}}"#;
        let job: InspectedJob = serde_json::from_str(text).unwrap();
        let listed: ListedJob = serde_json::from_str(
            r#"{"id": "a.1", "state": "running", "submitted": "2026-01-01T00:00:00Z", "tasks": {"running": 2}}"#,
        )
        .unwrap();
        let detail = job.detail(listed.summary());
        assert_eq!(detail.summary.state, JobState::Failed);
        assert_eq!(detail.summary.end_text(), "failed: main-0: exit 137");
        assert_eq!(detail.reasons, ["failed: main-0: exit 137"]);
        let [main, other] = &detail.tasks[..] else { panic!("{detail:?}") };
        assert_eq!(
            (main.attempt, main.exit_code, main.reason.as_deref()),
            (2, Some(137), Some("out of memory"))
        );
        assert_eq!(main.earlier[0].signal.as_deref(), Some("SIGSEGV"));
        assert_eq!((other.attempt, other.state), (0, TaskState::Waiting));
        assert_eq!(detail.summary.tasks, TaskCounts { wanted: 2, failed: 1, ..TaskCounts::default() });
        assert_eq!(listed.summary().tasks, TaskCounts { wanted: 2, active: 2, ..TaskCounts::default() });
    }
}
