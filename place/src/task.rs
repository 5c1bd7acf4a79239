//! The tasks of a job, with their attempts.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use jobc_sys::id::TaskId;
use jobc_sys::process::Process;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::energy::EnergyUse;
use crate::exit_text;
use crate::time::Time;
use crate::verdict::{Facts, Judgment, NodeFault, judge};

/// A task and its attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskStatus {
    /// Which task.
    #[schemars(with = "String")]
    pub task: TaskId,
    /// Where it is in its life.
    pub state: TaskState,
    /// The attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// The container's name on this host, in the job's own store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Its first process, while it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub process: Option<Process>,
    /// The node of a cluster that it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The object of a cluster that it is, such as a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Where others reach it: an address of the job's network, or 127.0.0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Its ports by label: the first number of each.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub ports: IndexMap<String, u16>,
    /// Its GPUs, as the host names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<String>,
    /// Its GPUs as people call them: `0`, or `2:0` for a MIG instance.
    #[serde(skip)]
    pub gpu_numbers: Vec<String>,
    /// Its limits, for display: `cpu_millis`, `memory_bytes`, `shm_bytes`, `disk_bytes`, `pids`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, u64>,
    /// Those that are not enforced on this host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unenforced: Vec<String>,
    /// When this attempt was let go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    /// When this attempt was ready first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Time>,
    /// When this attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Time>,
    /// How this attempt ended: 0 to 255, 128 and the signal's number for a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// The signal that ended its first process, such as `SIGSEGV`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The reason, if there is more to report than code and signal: `out of memory: used 2 GiB of 2 GiB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Processes of this attempt that the kernel killed for lack of memory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub oom_kills: u64,
    /// The verdict on this attempt, once it has ended by itself or jobc has ended it for a fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Judgment>,
    /// The energy that this attempt used, once it has ended and where something counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyUse>,
    /// Attempts that ended before this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Attempt>,
}

/// An attempt that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// Its number, from 1.
    pub attempt: u32,
    /// When it was let go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Time>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// The signal that ended it, as in a [`TaskStatus`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Why, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The verdict on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Judgment>,
    /// The energy that it used, where something counted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyUse>,
}

/// Where a task is in its life.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum TaskState {
    /// Its needs are not met yet, or its gang is not complete.
    #[default]
    Waiting,
    /// It is on a cluster, and waits there for room.
    Pending,
    /// Its container is being made.
    Creating,
    /// Its container is created and waits to be started.
    Created,
    /// Its program runs.
    Running,
    /// Its program runs, and has once been ready.
    Ready,
    /// An attempt failed; the next one comes after a while.
    Retrying,
    /// It is being stopped.
    Stopping,
    /// It succeeded.
    Succeeded,
    /// It ended badly, for the last time.
    Failed,
    /// It was ended, or never began, because the job was over.
    Stopped,
}

impl TaskState {
    /// Whether this state is final.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Stopped)
    }

    /// Whether it has a process.
    pub fn is_alive(self) -> bool {
        matches!(self, Self::Created | Self::Running | Self::Ready | Self::Stopping)
    }

    /// The word records and tables use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl TaskStatus {
    /// How this attempt ended, as text; `None` if it has not ended.
    pub fn end_text(&self) -> Option<String> {
        exit_text::describe(self.exit_code, self.signal.as_deref(), self.reason.as_deref())
    }

    /// With the verdict on an attempt that has succeeded or failed, by its end and the place's word for it.
    #[must_use]
    pub fn judged(self, word: Option<&str>, lines: Vec<String>) -> Self {
        self.judged_with(word, lines, None)
    }

    /// The same with a fault of a device that the place knows.
    #[must_use]
    pub fn judged_with(mut self, word: Option<&str>, lines: Vec<String>, fault: Option<NodeFault>) -> Self {
        if self.verdict.is_none() && matches!(self.state, TaskState::Succeeded | TaskState::Failed) {
            self.verdict = Some(judge(&Facts {
                exit_code: self.exit_code,
                signal: self.signal.clone(),
                reason: self.reason.clone(),
                word: word.map(str::to_owned),
                oom_kills: self.oom_kills,
                lines,
                fault,
                ..Facts::default()
            }));
        }
        self
    }

    /// Whether the kernel killed processes of this attempt for lack of memory, and the attempt's own end does not say so.
    pub fn has_unseen_oom_kills(&self) -> bool {
        self.oom_kills > 0 && !self.reason.as_ref().is_some_and(|reason| reason.contains("out of memory"))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Attempt {
    /// How it ended, as text.
    pub fn end_text(&self) -> Option<String> {
        exit_text::describe(self.exit_code, self.signal.as_deref(), self.reason.as_deref())
    }
}

impl TaskStatus {
    /// A task of which nothing else is known.
    pub fn new(task: TaskId, state: TaskState, attempt: u32) -> Self {
        Self { task, state, attempt, ..Self::default() }
    }

    /// Its last attempt, as one that is over.
    fn last_attempt(&self) -> Attempt {
        Attempt {
            attempt: self.attempt,
            started: self.started,
            ended: self.ended,
            exit_code: self.exit_code,
            signal: self.signal.clone(),
            reason: self.reason.clone(),
            verdict: self.verdict.clone(),
            energy: self.energy,
        }
    }

    /// Its attempts up to now, in order.
    pub fn attempts(&self) -> impl Iterator<Item = Attempt> {
        let last = (self.attempt > 0).then(|| self.last_attempt());
        self.earlier.iter().cloned().chain(last)
    }

    /// Tasks by their last attempts, of a list with each attempt, the first one first.
    pub fn by_task(attempts: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for attempt in attempts {
            match found.last_mut().filter(|last| last.task == attempt.task) {
                Some(last) => {
                    let before = std::mem::replace(last, attempt);
                    let over = before.last_attempt();
                    last.earlier = before.earlier;
                    last.earlier.push(over);
                }
                None => found.push(attempt),
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_of_a_task_share_one_status() {
        let status = |task: &str, attempt, state, code| TaskStatus {
            exit_code: code,
            started: Some(Time::from_millis(1000)),
            ..TaskStatus::new(task.parse().unwrap(), state, attempt)
        };
        let found = TaskStatus::by_task([
            status("train-0", 1, TaskState::Failed, Some(1)),
            status("train-0", 2, TaskState::Failed, Some(137)),
            status("train-0", 3, TaskState::Running, None),
            status("train-1", 1, TaskState::Pending, None),
        ]);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].attempt, found[0].state), (3, TaskState::Running));
        let earlier: Vec<_> = found[0].earlier.iter().map(|one| (one.attempt, one.exit_code)).collect();
        assert_eq!(earlier, [(1, Some(1)), (2, Some(137))]);
    }
}
