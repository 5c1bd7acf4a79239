//! The events that a supervisor reports to a job's lifecycle.

use std::time::Duration;

use super::task::TaskNumber;
use jobc_container::process::Exit;
use jobc_place::verdict::NodeFault;

/// What was seen of an attempt, for the verdict on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttemptFacts {
    /// Processes of it that the kernel killed for lack of memory.
    pub oom_kills: u64,
    /// What happened to a GPU of it.
    pub fault: Option<NodeFault>,
    /// The last lines of its log, the oldest first; not needed of a success.
    pub lines: Vec<String>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Data, roots and network are ready: tasks may be created. The job's time limit starts here.
    Prepared,
    /// A task's container is created and waits to be started.
    Created(TaskNumber),
    /// A task's program runs.
    Started(TaskNumber),
    /// A task's container could not be created, or its program not be executed. It was cleaned up before this is
    /// reported.
    NotStarted {
        /// Which.
        task: TaskNumber,
        /// 125, or 126 and 127 where the program itself is at fault.
        code: u8,
        /// Why, as text.
        why: String,
    },
    /// A task has been seen ready; with `keep` perhaps again.
    Ready(TaskNumber),
    /// A task was not ready within `ready.timeout`, which fails its attempt; or with `keep` is not any more, which is
    /// recorded and no failure.
    NotReady {
        /// Which.
        task: TaskNumber,
        /// Why, as text.
        why: String,
    },
    /// A task makes no progress, and its attempt is to be ended.
    Stalled {
        /// Which.
        task: TaskNumber,
        /// Why, as text.
        why: String,
        /// Whether no retry follows.
        is_final: bool,
    },
    /// A task's first process ended. The rest of its container is removed when this is reported.
    Ended {
        /// Which.
        task: TaskNumber,
        /// How.
        exit: Exit,
        /// The cause, as known to the host: `memory limit 2 GiB reached`.
        note: Option<String>,
        /// What else was seen of it.
        seen: AttemptFacts,
    },
    /// Ctrl-C in the foreground: SIGINT now, the stop signal after half of the grace period, SIGKILL after all of it.
    Interrupt {
        /// The reason.
        why: String,
    },
    /// A request to end the job: the stop signal now, SIGKILL after the grace period, that of the roles if none is given. A
    /// repeated request can only shorten the wait.
    Stop {
        /// In place of the roles'.
        grace: Option<Duration>,
        /// The reason: `interrupted`, `stopped by jobc stop`, `the client is gone`.
        why: String,
    },
    /// A request to kill the job: SIGKILL.
    Kill {
        /// The reason.
        why: String,
    },
    /// Every task was frozen: time limits stop meanwhile, and no task is created or started. A job that is to end thaws
    /// its tasks itself.
    Paused,
    /// Every task continues.
    Resumed,
    /// A request to give the host's resources back: tasks are ended as by a stop, and [`Action::Suspended`] follows.
    Suspend,
    /// A suspended job has resources again: its tasks are resumed.
    Readmitted,
    /// The budget of the job is used up: it ends as by a stop.
    OverBudget {
        /// How much was used of what, as text.
        why: String,
    },
    /// The job cannot continue, for a reason outside of its tasks: exit code 125.
    Broken {
        /// Why, as text.
        why: String,
    },
    /// Time has passed.
    Tick,
}
