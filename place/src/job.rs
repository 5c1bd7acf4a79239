//! Jobs in lists and in full.

use std::path::PathBuf;

use jobc_sys::id::{JobId, TaskId};
use serde::{Deserialize, Serialize};

use crate::state::JobState;

/// Numbers of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TaskCounts {
    /// How many the job has.
    pub wanted: u64,
    /// How many have pods that have not ended.
    pub active: u64,
    /// How many have succeeded.
    pub succeeded: u64,
    /// How many pods have failed.
    pub failed: u64,
}

/// A job in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobSummary {
    /// The name of the run.
    pub name: String,
    /// The name in the job file.
    pub job: String,
    /// The kind of its object; empty where a job is not an object of a cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Its state.
    pub state: JobState,
    /// The reason of the state, in the cluster's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The cluster's explanation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Its tasks.
    pub tasks: TaskCounts,
    /// The user who submitted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// When it was created (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted: Option<String>,
    /// When its first task started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Whether its submission is complete; otherwise the same `jobc submit` completes it.
    pub is_complete: bool,
    /// How it ended, where the place says more than [`Self::reason`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// One line of description, from the job file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The job file, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<PathBuf>,
    /// The sweep that it is a combination of, where that has a name of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<JobId>,
    /// The number of tasks in each state, where they are known better than in [`Self::tasks`].
    #[serde(skip)]
    pub states: Vec<(&'static str, u64)>,
    /// The digest of its plan, as in the label.
    #[serde(skip)]
    pub plan: Option<String>,
    /// Whether it runs, but not all of its tasks do that should: [`reasons`](crate::JobControl::reasons) may say why.
    #[serde(skip)]
    pub is_short: bool,
    /// What was kept of its plan, as the place has it.
    #[serde(skip)]
    pub outline: Option<String>,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// One line: `failed: worker-3: out of memory: used 2 GiB of 2 GiB`.
    pub explanation: String,
    /// The exit code of `jobc run`: 0; 1 failed; 124 timed out; 125 could not start; 130 interrupted.
    pub exit_code: u8,
    /// The task that decided it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
}

impl End {
    /// The explanation without the state, for tables that have a column for it.
    pub fn cause(&self, state: JobState) -> &str {
        let words = match state {
            JobState::TimedOut => "timed out ",
            JobState::Succeeded => "succeeded: ",
            JobState::Failed => "failed: ",
            JobState::Stopped => "stopped: ",
            JobState::Lost => "lost: ",
            _ => "",
        };
        self.explanation.strip_prefix(words).unwrap_or(&self.explanation)
    }
}

impl JobSummary {
    /// A job of which nothing else is known.
    pub fn new(name: impl Into<String>, job: impl Into<String>, state: JobState) -> Self {
        Self {
            name: name.into(),
            job: job.into(),
            kind: String::new(),
            state,
            reason: None,
            message: None,
            tasks: TaskCounts::default(),
            user: None,
            submitted: None,
            started: None,
            ended: None,
            is_complete: true,
            end: None,
            description: None,
            source: None,
            sweep: None,
            states: vec![],
            plan: None,
            is_short: false,
            outline: None,
        }
    }

    /// The exit code of `jobc wait`.
    pub fn exit_code(&self) -> u8 {
        self.end.as_ref().map_or_else(|| self.state.exit_code(), |end| end.exit_code)
    }

    /// How it ended, in one line: `failed: BackoffLimitExceeded: Job has reached the specified backoff limit`.
    pub fn end_text(&self) -> String {
        if let Some(end) = &self.end {
            return end.explanation.clone();
        }
        let mut text = self.state.as_str().to_owned();
        if matches!(self.state, JobState::Failed | JobState::TimedOut) {
            for part in [&self.reason, &self.message].into_iter().flatten() {
                text += &format!(": {part}");
            }
        }
        text
    }

    /// The reason of its state, for a column of a table.
    pub fn cause(&self) -> &str {
        match &self.end {
            Some(end) => end.cause(self.state),
            None => self.reason.as_deref().unwrap_or_default(),
        }
    }

    /// Its tasks: `3 active, 1 succeeded of 4`, or `1 succeeded, 3 running`.
    pub fn tasks_text(&self) -> String {
        let (of, parts) = if self.states.is_empty() {
            let tasks = self.tasks;
            let parts =
                vec![("active", tasks.active), ("succeeded", tasks.succeeded), ("failed", tasks.failed)];
            (format!(" of {}", tasks.wanted), parts)
        } else {
            (String::new(), self.states.clone())
        };
        let parts: Vec<String> = parts
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(what, count)| format!("{count} {what}"))
            .collect();
        match self.tasks.wanted {
            0 => String::new(),
            wanted if parts.is_empty() => wanted.to_string(),
            _ => parts.join(", ") + &of,
        }
    }
}

/// A task of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskStatus {
    /// `train-0`.
    pub task: String,
    /// Which try of the task it is, from 1.
    pub attempt: u32,
    /// `pending`, `starting`, `running`, `succeeded`, `failed`.
    pub state: &'static str,
    /// The pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Its node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The exit code of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// When the program started (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// When the program ended (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Why it is in that state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A job in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobDetail {
    /// The job.
    #[serde(flatten)]
    pub summary: JobSummary,
    /// Its namespace, on Kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Why it does not run, or ended: one sentence each.
    pub reasons: Vec<String>,
    /// Its tasks by name and attempt.
    #[serde(rename = "task_list")]
    pub task_list: Vec<TaskStatus>,
}
