//! What a supervisor tells of a job's course.

use std::time::Duration;

use super::task::TaskNumber;
use jobc_container::process::Exit;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Data, roots and network are there: tasks may be made. The job's time limit counts from here.
    Prepared,
    /// A task's container is made and waits to be let go.
    Created(TaskNumber),
    /// A task's program runs.
    Started(TaskNumber),
    /// A task's container could not be made, or its program not be executed. Nothing of it is left when this is told.
    NotStarted {
        /// Which.
        task: TaskNumber,
        /// 125, or 126 and 127 where the program itself is at fault.
        code: u8,
        /// Why, in words.
        why: String,
    },
    /// A task has been seen ready; with `keep` perhaps again.
    Ready(TaskNumber),
    /// A task was not ready within `ready.timeout`, which fails its attempt; or with `keep` is not any more, which is
    /// recorded and no failure.
    NotReady {
        /// Which.
        task: TaskNumber,
        /// Why, in words.
        why: String,
    },
    /// A task's first process ended. What is left of its container is gone when this is told.
    Ended {
        /// Which.
        task: TaskNumber,
        /// How.
        exit: Exit,
        /// What the machine knows of it: `memory limit 2 GiB reached`.
        note: Option<String>,
    },
    /// Somebody wants the job to end: SIGTERM now, SIGKILL after the grace period, the roles' where none is given. Said
    /// again, it can only shorten the wait.
    Stop {
        /// In place of the roles'.
        grace: Option<Duration>,
        /// Who: `interrupted`, `stopped by jobc stop`, `the client is gone`.
        why: String,
    },
    /// Somebody wants the job to end now: SIGKILL.
    Kill {
        /// Who.
        why: String,
    },
    /// Every task was frozen: no time limit runs out meanwhile, and no task is made or let go. A job that is told to end
    /// goes on by itself.
    Paused,
    /// Every task goes on.
    Resumed,
    /// The job cannot go on, for a reason that is no task's: exit code 125.
    Broken {
        /// Why, in words.
        why: String,
    },
    /// Time has passed.
    Tick,
}
