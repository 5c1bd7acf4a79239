//! The actions that a job's lifecycle requests of its supervisor.

use std::time::Duration;

use jobc_schema::role::RetryScope;

use super::task::TaskNumber;
use jobc_place::job::End;
use jobc_place::state::JobState;

/// The signals that end a task, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndSignal {
    /// SIGINT, as by Ctrl-C.
    Interrupt,
    /// The task's stop signal.
    Stop,
    /// SIGKILL.
    Kill,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Make the container of a task's next attempt, held before its program.
    Create {
        /// The task.
        task: TaskNumber,
        /// The attempt, from 1.
        attempt: u32,
        /// Its memory in bytes, where that is not the plan's.
        memory_bytes: Option<u64>,
    },
    /// Start a created task. Tasks of one gang come in one list of actions.
    Start(TaskNumber),
    /// Start to check whether a task is ready, by its role's `ready`.
    Watch(TaskNumber),
    /// Ask a task to end, or kill it. A task that waits for its start is removed; its end is reported like any other.
    Signal(TaskNumber, EndSignal),
    /// A task, role or job is retried.
    Retried {
        /// What one attempt covers: `task`, `role` or `job`.
        scope: RetryScope,
        /// The task whose failure it was.
        task: TaskNumber,
        /// The attempt that comes, from 2: of the task, of the role, or of the job.
        attempt: u32,
        /// How long until then, at least: what still runs of it is ended first.
        backoff: Duration,
        /// Why, as text.
        why: String,
    },
    /// Nothing runs now, after [`Input::Suspend`](super::Input::Suspend).
    Suspended,
    /// The job is ending: returned once, before the signals. Frozen tasks must be thawed, so that they can react.
    Stopping {
        /// Why, as text.
        why: String,
    },
    /// Nothing runs and nothing will: the last action.
    End(JobState, End),
}
