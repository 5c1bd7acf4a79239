//! Jobs in lists and in full.

use std::ops::ControlFlow;
use std::path::PathBuf;

use indexmap::IndexMap;
use jobc_schema::Scalar;
use jobc_sys::id::{JobId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::MetricValue;
use crate::progress::Progress;
use crate::state::JobState;
use crate::task::TaskStatus;
use crate::time::Time;
use crate::verdict::Judgment;

/// Gets each state of a job that differs from the one before, and can end the wait for more.
pub type JobProgress<'a> = &'a mut dyn FnMut(&JobSummary) -> ControlFlow<()>;

/// Numbers of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
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
    #[serde(skip)]
    pub tasks: TaskCounts,
    /// The user who submitted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// When it was created.
    pub submitted: Option<Time>,
    /// When its first task started.
    pub started: Option<Time>,
    /// When it ended.
    pub ended: Option<Time>,
    /// Whether its submission is complete; otherwise the same `jobc submit` completes it.
    pub is_complete: bool,
    /// How it ended, where the place says more than [`Self::reason`].
    pub end: Option<End>,
    /// One line of description, from the job file.
    pub description: Option<String>,
    /// The job file, where it is known.
    pub source: Option<PathBuf>,
    /// How far it is, of a job that says so and of which the place keeps it: the role that is the least far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// The sweep that it is a combination of, where that has a name of its own.
    #[schemars(with = "Option<String>")]
    pub sweep: Option<JobId>,
    /// The number of tasks in each state, where they are known better than in [`Self::tasks`].
    #[serde(skip)]
    pub states: Vec<(&'static str, u64)>,
    /// The digest of its plan, as in the label.
    #[serde(skip)]
    pub plan: Option<String>,
    /// Whether it runs, but not all of its tasks do that should: [`reasons`](crate::Place::reasons) may say why.
    #[serde(skip)]
    pub is_short: bool,
    /// What was kept of its plan, as the place has it.
    #[serde(skip)]
    pub outline: Option<String>,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct End {
    /// One line: `failed: worker-3: out of memory: used 2 GiB of 2 GiB`.
    pub explanation: String,
    /// The exit code of `jobc run`: 0; 1 failed; 124 timed out; 125 could not start; 130 interrupted.
    pub exit_code: u8,
    /// The task that decided it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub task: Option<TaskId>,
    /// The verdict on the attempt that decided it, or on the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Judgment>,
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
        Self { name: name.into(), job: job.into(), state, is_complete: true, ..Self::default() }
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

/// A role that is a combination of a role's matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleCombination {
    /// The role in the job file.
    pub role: String,
    /// The values of the axes.
    pub values: IndexMap<String, Scalar>,
}

/// A job in full.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobDetail {
    /// The job.
    pub summary: JobSummary,
    /// Which attempt of the whole job this is, from 1.
    pub attempt: u32,
    /// Why it does not run, or ended: one sentence each.
    pub reasons: Vec<String>,
    /// Notes for the user: limits that nothing enforces, roles scaled down.
    pub notes: Vec<String>,
    /// What this place alone knows, for people: what it is, and its text.
    pub facts: Vec<(&'static str, String)>,
    /// The base directory of relative paths in the job file, where this host runs the job.
    pub directory: Option<PathBuf>,
    /// The roles that are combinations of a role's matrix, by role.
    pub combinations: IndexMap<String, RoleCombination>,
    /// The last values of its metrics, by role and metric, in the order in which they came first.
    pub metrics: Vec<MetricValue>,
    /// Its tasks.
    pub tasks: Vec<TaskStatus>,
}

impl JobDetail {
    /// A job of which nothing else is known.
    pub fn new(summary: JobSummary, tasks: Vec<TaskStatus>) -> Self {
        Self { summary, attempt: 1, tasks, ..Self::default() }
    }

    /// What this place alone knows, by what it is.
    pub fn fact(&self, what: &str) -> Option<&str> {
        self.facts.iter().find(|(known, _)| *known == what).map(|(_, text)| text.as_str())
    }

    /// The state of a task as shown: a task of a paused job is paused, whatever it did before.
    pub fn state_of(&self, task: &TaskStatus) -> &'static str {
        state_of(self.summary.state, task)
    }

    /// The last value of a metric, of any role.
    pub fn metric(&self, name: &str) -> Option<&MetricValue> {
        self.metrics.iter().filter(|metric| metric.name == name).max_by_key(|metric| metric.time)
    }

    /// A task.
    pub fn task(&self, task: &TaskId) -> Option<&TaskStatus> {
        self.tasks.iter().find(|known| known.task == *task)
    }
}

/// The state of a task as shown, of a job in this state.
pub fn state_of(job: JobState, task: &TaskStatus) -> &'static str {
    if job == JobState::Paused && task.state.is_alive() { job.as_str() } else { task.state.as_str() }
}
