//! A job's course, decided: which task is made, let go, watched, signalled and tried again, and when the job is over.
//!
//! Nothing here touches the machine. The supervisor tells what happened as an [`Input`] with the time, and carries out the
//! [`Action`]s that come back; so every rule of `needs`, gangs, thresholds, retries, time limits and stopping is tested
//! with a made-up clock. Times are durations since the supervisor began, by a clock that never jumps.
//!
//! The rules are those of docs/spec.md; where that is silent, of docs/runtime.md, "The course of a job".

use std::time::Duration;

use jobc_schema::plan::JobPlan;

use crate::job::TaskId;
use crate::job::record::{End, JobState, TaskState};
use crate::process::Exit;
use crate::signals::Signal;

/// A task's number: tasks are counted through the job, role after role in the plan's order.
pub type TaskNumber = usize;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Data, roots and network are there: tasks may be made.
    Prepared,
    /// A task's container is made and waits to be let go.
    Created(TaskNumber),
    /// A task's program runs.
    Started(TaskNumber),
    /// A task's container could not be made, or its program not be executed (exit code 125, 126 or 127).
    NotStarted {
        /// Which.
        task: TaskNumber,
        /// 125, or 126 and 127 where the program itself is at fault.
        code: u8,
        /// Why, in words.
        why: String,
    },
    /// A task has been seen ready.
    Ready(TaskNumber),
    /// A task was not ready within `ready.timeout`, or with `keep` is not any more.
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
    /// Somebody wants the job to end: SIGTERM now, SIGKILL after the grace period, the plan's where none is given.
    Stop {
        /// In place of the plan's.
        grace: Option<Duration>,
        /// Who: `interrupted`, `stopped by jobc stop`, `the client is gone`.
        why: String,
    },
    /// Somebody wants the job to end now: SIGKILL.
    Kill {
        /// Who.
        why: String,
    },
    /// Every task was frozen: no time limit runs out meanwhile.
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
    /// Send a signal to a task: `TERM` or `KILL`. One that waits to be let go is removed.
    Signal(TaskNumber, Signal),
    /// A task, role or job is tried again.
    Retried {
        /// What one attempt covers: `task`, `role` or `job`.
        scope: jobc_schema::role::RetryScope,
        /// The task whose failure it was.
        task: TaskNumber,
        /// The attempt that comes, from 2.
        attempt: u32,
        /// How long until then.
        backoff: Duration,
        /// Why, in words.
        why: String,
    },
    /// The job is being ended: said once, before the signals.
    Stopping {
        /// Why, in words.
        why: String,
    },
    /// Nothing runs and nothing will: the last action.
    End(JobState, End),
}

/// A task, as records show it.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its name.
    pub id: TaskId,
    /// The role's place in the plan.
    pub role: usize,
    /// Where it is in its life.
    pub state: TaskState,
    /// The attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// How the last attempt ended.
    pub exit: Option<Exit>,
    /// Why, in words.
    pub reason: Option<String>,
}

/// A job's course.
#[derive(Debug)]
pub struct Lifecycle {
    tasks: Vec<Task>,
}

impl Lifecycle {
    /// The course of a planned job, before anything has happened.
    pub fn new(plan: &JobPlan) -> Self {
        let tasks = plan.roles.iter().enumerate().flat_map(|(role, planned)| {
            (0..planned.instances).map(move |index| Task {
                id: TaskId::new(&planned.name, index),
                role,
                state: TaskState::Waiting,
                attempt: 0,
                exit: None,
                reason: None,
            })
        });
        Self { tasks: tasks.collect() }
    }

    /// Takes in what happened at a time, and says what to do, in order.
    pub fn step(&mut self, _now: Duration, _input: Input) -> Vec<Action> {
        Vec::new()
    }

    /// When a [`Input::Tick`] is wanted next.
    pub fn next_tick(&self) -> Option<Duration> {
        None
    }

    /// The tasks by number.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Where the job is in its life: running, paused, stopping, or how it ended.
    pub fn state(&self) -> JobState {
        JobState::Preparing
    }

    /// Which attempt of the whole job this is, from 1.
    pub fn attempt(&self) -> u32 {
        1
    }
}
