//! The decisions of a job: which task is created, started, watched, signaled and retried, and when the job is over.
//!
//! Nothing here touches the host. The supervisor reports events as an [`Input`] with the time, and carries out the
//! returned [`Action`]s; so every rule of `needs`, gangs, thresholds, retries, time limits and stopping is tested with
//! a simulated clock. Times are durations since the supervisor's start, by a clock that never jumps.
//!
//! The rules are those of docs/guides/write-a-job.md and, for details, of docs/reference/job-lifecycle.md. A step costs
//! what it changes, not the size of the job: a job of 10,000 tasks is counted by role, never searched.
//!
//! [`transitions`] alone changes states and counts; [`advance`] draws the conclusions at the end of
//! each step; [`attempt`] is what an attempt's events mean, [`retry`] and [`ending`] what comes after a failure and at
//! the end.

mod action;
mod advance;
mod attempt;
pub(crate) mod clock;
mod combinations;
mod ending;
mod format;
mod gang;
mod input;
mod left_over;
mod outcome;
mod resume;
mod retry;
mod role;
mod task;
mod timers;
mod transitions;

use std::collections::BTreeSet;
use std::time::Duration;

use jobc_schema::plan::{GangPlan, JobPlan};

use jobc_place::state::JobState;
use jobc_place::task::TaskState;
use jobc_sys::id::TaskId;

pub use action::{Action, EndSignal};
use clock::Clock;
use combinations::Combinations;
use gang::Gang;
pub use input::{AttemptFacts, Input};
use outcome::Outcome;
use role::Role;
use task::{EndReason, RoleNumber, TaskProgress};
pub use task::{EndRequest, Task, TaskNumber};
use timers::{Timer, Timers};

/// Where the whole job is.
#[derive(Debug)]
enum Phase {
    /// Nothing may be made yet.
    Preparing,
    /// Tasks are made and run.
    Running,
    /// Everything is stopped, to be retried after the wait.
    Restarting {
        /// Whether it is.
        due: bool,
    },
    /// Tasks are ended by the contract of `preemption`, to be resumed; then nothing runs.
    Suspended {
        /// Whether nothing runs.
        over: bool,
    },
    /// Everything is ended for good.
    Ending(Outcome),
    /// Nothing runs.
    Finished(JobState),
}

/// The exit code of a job that has left, to be started again.
pub const LEFT: u8 = 85;

/// The state machine of a job.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Lifecycle {
    gang: GangPlan,
    timeout: Option<Duration>,
    /// The exit codes by which a task says that it wants to be resumed.
    resume_codes: Vec<u8>,
    /// Whether the whole job leaves then, to be started again.
    leaves: bool,
    roles: Vec<Role>,
    tasks: Vec<Task>,
    progress: Vec<TaskProgress>,
    gangs: Vec<Gang>,
    /// The roles whose matrix limits how many combinations run at once.
    combinations: Vec<Combinations>,
    clock: Clock,
    timers: Timers,
    phase: Phase,
    attempt: u32,
    /// How many of the attempts of the job followed one that was to be resumed.
    resumes: u32,
    /// The tasks that the suspension of the job has ended.
    suspended: Vec<TaskNumber>,
    /// The task whose end decided how the job ends.
    deciding_task: Option<TaskNumber>,
    /// Tasks that have a process, or will have one at any moment.
    alive: usize,
    /// Tasks that are over.
    ended: usize,
    /// Whether there are tasks that only serve, and those that they serve have not ended.
    serving: bool,
    /// Tasks that others serve and that are not over.
    launching: usize,
    /// Whether any program has run.
    ran: bool,
    /// Whether Ctrl-C ended the job: its tasks get SIGINT first.
    interrupted: bool,
    /// Roles whose counts changed: those that need them may start now, or never.
    changed: BTreeSet<RoleNumber>,
    /// Roles whose needs were met in this step.
    opened: BTreeSet<RoleNumber>,
    /// Roles with tasks to make and room to make them.
    roles_with_room: BTreeSet<RoleNumber>,
    /// Roles that are stopped to be retried.
    restarting: BTreeSet<RoleNumber>,
    /// Gangs that may be complete.
    complete: BTreeSet<usize>,
    /// Tasks that may be let go.
    startable: Vec<TaskNumber>,
    /// The actions collected during a step.
    actions: Vec<Action>,
}

impl Lifecycle {
    /// A planned job, before anything has happened.
    pub fn new(plan: &JobPlan) -> Self {
        let mut roles = role::of_plan(plan);
        let (combinations, of_role) = combinations::of_plan(plan);
        roles.iter_mut().zip(of_role).for_each(|(role, place)| role.combinations = place);
        let tasks = roles.iter().enumerate().flat_map(|(role, planned)| {
            (0..planned.instances).map(move |index| Task {
                id: TaskId::new(&planned.name, index),
                role,
                state: TaskState::Waiting,
                attempt: 0,
                exit: None,
                reason: None,
                verdict: None,
            })
        });
        let tasks: Vec<Task> = tasks.collect();
        let courses: Vec<TaskProgress> =
            tasks.iter().map(|task| roles[task.role].initial_progress(task.id.index)).collect();
        Self {
            gang: plan.gang,
            timeout: plan.timeout_seconds.map(Duration::from_secs),
            resume_codes: plan.preemption.iter().flat_map(|contract| contract.exit_codes.clone()).collect(),
            leaves: false,
            roles,
            tasks,
            gangs: Vec::new(),
            combinations,
            clock: Clock::default(),
            timers: Timers::default(),
            phase: Phase::Preparing,
            attempt: 1,
            resumes: 0,
            suspended: Vec::new(),
            deciding_task: None,
            alive: 0,
            ended: 0,
            serving: courses.iter().any(|progress| progress.serves),
            launching: courses.iter().filter(|progress| progress.launches).count(),
            ran: false,
            interrupted: false,
            progress: courses,
            changed: BTreeSet::new(),
            opened: BTreeSet::new(),
            roles_with_room: BTreeSet::new(),
            restarting: BTreeSet::new(),
            complete: BTreeSet::new(),
            startable: Vec::new(),
            actions: Vec::new(),
        }
    }

    /// The same where a task that asks to be resumed ends the job, with the exit code [`LEFT`]: what started the
    /// supervisor starts it again.
    pub fn leaving(plan: &JobPlan) -> Self {
        Self { leaves: true, ..Self::new(plan) }
    }

    /// Processes an event at a time, and returns the actions, in order.
    ///
    /// Impossible events (such as a ready report of a task that does not run) are ignored, so late reports do no harm.
    pub fn step(&mut self, now: Duration, input: Input) -> Vec<Action> {
        if matches!(self.phase, Phase::Finished(_)) {
            return Vec::new();
        }
        let time = self.clock.at(now);
        match input {
            Input::Prepared => self.start_job(time),
            Input::Created(task) => self.created(time, task),
            Input::Started(task) => self.started(time, task),
            Input::NotStarted { task, code, why } => self.not_started(time, task, code, why),
            Input::Ready(task) => self.ready(task),
            Input::NotReady { task, why } => self.not_ready(time, task, why),
            Input::Stalled { task, why, is_final } => self.stalled(time, task, why, is_final),
            Input::Ended { task, exit, note, seen } => self.ended(time, task, exit, note, seen),
            Input::Stop { grace, why } => self.stop(time, grace, &why),
            Input::Interrupt { why } => self.interrupt(time, &why),
            Input::Kill { why } => self.kill(time, &why),
            Input::OverBudget { why } => self.over_budget(time, &why),
            Input::Broken { why } => self.broken(time, &why),
            Input::Paused if matches!(self.phase, Phase::Ending(_) | Phase::Suspended { .. }) => {}
            Input::Resumed if matches!(self.phase, Phase::Suspended { .. }) => {}
            Input::Paused => self.clock.pause(),
            Input::Resumed => self.clock.resume(),
            Input::Suspend => self.suspend(time),
            Input::Readmitted => self.readmitted(),
            Input::Tick => {}
        }
        while let Some(timer) = self.timers.take_due(time) {
            self.handle_timer(time, timer);
        }
        self.advance(time);
        std::mem::take(&mut self.actions)
    }

    /// When an [`Input::Tick`] is wanted next, by the clock of [`Lifecycle::step`].
    pub fn next_tick(&self) -> Option<Duration> {
        self.timers.next().and_then(|time| self.clock.when(time))
    }

    /// The tasks by number.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Where the job is in its life: preparing, running, paused, stopping, or how it ended.
    pub fn state(&self) -> JobState {
        match &self.phase {
            Phase::Finished(state) => *state,
            Phase::Ending(_) => JobState::Stopping,
            Phase::Suspended { .. } => JobState::Suspended,
            _ if self.clock.is_paused() => JobState::Paused,
            Phase::Preparing => JobState::Preparing,
            Phase::Running | Phase::Restarting { .. } => JobState::Running,
        }
    }

    /// Whether the job is suspended, and nothing runs.
    pub fn is_suspended(&self) -> bool {
        matches!(self.phase, Phase::Suspended { over: true })
    }

    /// The task whose end decided how the job ends, once that is decided.
    pub fn deciding_task(&self) -> Option<TaskNumber> {
        self.deciding_task
    }

    /// Why a running attempt is being ended, if it is.
    pub fn end_request(&self, task: TaskNumber) -> Option<EndRequest<'_>> {
        Some(match self.progress[task].ending.as_ref()? {
            EndReason::Failed { why, .. } => EndRequest::Failure(why),
            EndReason::Restart | EndReason::Served | EndReason::JobEnded | EndReason::Suspended => {
                EndRequest::Stop
            }
        })
    }

    /// The number of this attempt of the whole job, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Begins to make tasks.
    fn start_job(&mut self, time: Duration) {
        if !matches!(self.phase, Phase::Preparing) {
            return;
        }
        self.phase = Phase::Running;
        if let Some(timeout) = self.timeout {
            self.timers.set(Timer::Job, time + timeout);
        }
        self.open_independent_roles();
    }

    /// The meaning of an expired timer.
    fn handle_timer(&mut self, time: Duration, timer: Timer) {
        match timer {
            Timer::Attempt(task) => self.attempt_timed_out(time, task),
            Timer::Stop(task) => self.stop_interrupted(task),
            Timer::Kill(task) => self.kill_task(task),
            Timer::TaskRetry(task) => self.requeue_task(task),
            Timer::RoleRetry(role) => self.roles[role].due = true,
            Timer::JobRetry => {
                if let Phase::Restarting { due } = &mut self.phase {
                    *due = true;
                }
            }
            Timer::Job => self.timed_out(time),
        }
    }
}

#[cfg(test)]
mod tests;
