//! What a supervisor is to do in a job's course.

use std::time::Duration;

use jobc_schema::role::RetryScope;

use super::task::TaskNumber;
use crate::record::{End, JobState};
use jobc_sys::signals::Signal;

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Make the container of a task's next attempt, held before its program.
    Create {
        /// Which.
        task: TaskNumber,
        /// The attempt, from 1.
        attempt: u32,
    },
    /// Let a made task go. Tasks of one gang come in one list of actions.
    Start(TaskNumber),
    /// Begin to look whether a task is ready, as its role's `ready` says.
    Watch(TaskNumber),
    /// Send a signal to a task: `TERM` or `KILL`. One that waits to be let go is removed; its end is told as any other's.
    Signal(TaskNumber, Signal),
    /// A task, role or job is tried again.
    Retried {
        /// What one attempt covers: `task`, `role` or `job`.
        scope: RetryScope,
        /// The task whose failure it was.
        task: TaskNumber,
        /// The attempt that comes, from 2: of the task, of the role, or of the job.
        attempt: u32,
        /// How long until then, at least: what still runs of it is ended first.
        backoff: Duration,
        /// Why, in words.
        why: String,
    },
    /// The job is being ended: said once, before the signals. Whatever is frozen must go on, so that it can obey.
    Stopping {
        /// Why, in words.
        why: String,
    },
    /// Nothing runs and nothing will: the last action.
    End(JobState, End),
}
