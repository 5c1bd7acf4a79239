//! Whether tasks are ready: probes by the `ready` of their roles, repeated.
//!
//! [`Schedule`] decides, by a clock that is stopped while the job is frozen, when to probe and what the result means.
//! Threads run the probes, since a probe may be slow and a supervisor must not block. There are as many as concurrent
//! probes, up to [`MAX_PROBES`]; a task that is not due costs an entry in a heap.

mod check;
mod command;
mod probe;
mod schedule;

use std::fmt;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub use check::{Probe, ReadinessCheck, render};
pub use command::run;
pub(crate) use command::run_with_output;
use schedule::{DueProbe, NextStep, Schedule};

use crate::lifecycle::TaskNumber;
use jobc_container::process::Exit;
use jobc_sys::error::Result;
use jobc_sys::parallel::lock;

/// The maximum number of concurrent probes. With more tasks that take all of `try_timeout` to respond, each is probed
/// less often.
const MAX_PROBES: usize = 16;

/// The stack of a probing thread, in bytes.
const STACK_BYTES: usize = 512 << 10;

/// The result for a task: it is ready; or it was not ready in time, or with `keep` is no longer ready, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The task.
    pub task: TaskNumber,
    /// Its attempt.
    pub attempt: u32,
    /// The result.
    pub ready: std::result::Result<(), String>,
}

/// Where the tasks are.
pub trait TaskAccess: Send + Sync {
    /// A TCP socket from which a task is reached, neither blocking nor connected, and the task's address.
    fn socket(&self, task: TaskNumber) -> Result<(OwnedFd, IpAddr)>;

    /// Runs a command in an attempt's container; `None` if it timed out and was killed.
    fn run(
        &self,
        task: TaskNumber,
        attempt: u32,
        arguments: &[String],
        within: Duration,
    ) -> Result<Option<Exit>>;
}

/// Checks whether tasks are ready, and reports it.
pub struct Prober {
    shared: Arc<SharedState>,
}

struct SharedState {
    access: Box<dyn TaskAccess>,
    report: Box<dyn Fn(Report) + Send + Sync>,
    began: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    schedule: Schedule,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl Prober {
    /// Nothing is watched and no thread runs yet. `report` is called in one of the threads.
    pub fn new(place: Box<dyn TaskAccess>, report: Box<dyn Fn(Report) + Send + Sync>) -> Self {
        let state = State { schedule: Schedule::default(), threads: 0, idle: 0, closed: false };
        let shared = SharedState {
            access: place,
            report,
            began: Instant::now(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Begins to watch an attempt of a task, instead of an earlier one.
    pub fn watch(&self, watched: ReadinessCheck) {
        let mut state = lock(&self.shared.state);
        let now = self.shared.began.elapsed();
        state.schedule.watch(now, watched);
        self.shared.wake(&mut state);
    }

    /// Stops to watch a task. A report about it may be on its way.
    pub fn unwatch(&self, task: TaskNumber) {
        lock(&self.shared.state).schedule.unwatch(task);
    }

    /// A line that an attempt has written, without its end; reports at once if that makes the task ready.
    pub fn line(&self, task: TaskNumber, attempt: u32, line: &[u8]) {
        let report = lock(&self.shared.state).schedule.line(task, attempt, line);
        if let Some(report) = report {
            (self.shared.report)(report);
        }
    }

    /// Whether the lines of a task are to be passed on.
    pub fn wants_lines(&self, task: TaskNumber) -> bool {
        lock(&self.shared.state).schedule.wants_lines(task)
    }

    /// The tasks are frozen: probes and timeouts are suspended.
    pub fn pause(&self) {
        lock(&self.shared.state).schedule.pause(self.shared.began.elapsed());
    }

    /// The tasks go on.
    pub fn resume(&self) {
        let mut state = lock(&self.shared.state);
        state.schedule.resume(self.shared.began.elapsed());
        self.shared.changed.notify_all();
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        // A thread in the middle of a try ends after it.
        lock(&self.shared.state).closed = true;
        self.shared.changed.notify_all();
    }
}

impl fmt::Debug for Prober {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prober").finish_non_exhaustive()
    }
}

impl SharedState {
    /// Starts a thread for the schedule if needed.
    fn wake(self: &Arc<Self>, state: &mut State) {
        if state.idle > 0 {
            self.changed.notify_one();
        } else if state.threads < MAX_PROBES {
            let shared = Arc::clone(self);
            let thread = thread::Builder::new().name("ready".to_owned()).stack_size(STACK_BYTES);
            // Without a new thread those that are there do it, later; without any the next one to be watched starts
            // one.
            state.threads += usize::from(thread.spawn(move || shared.run_thread()).is_ok());
        }
    }

    /// The main function of each thread.
    fn run_thread(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        while !state.closed {
            let report = match state.schedule.next(self.began.elapsed()) {
                NextStep::Report(report) => Some(report),
                NextStep::Probe(due) => {
                    // While this thread is busy, another follows the schedule.
                    self.wake(&mut state);
                    drop(state);
                    let result = probe::probe_once(&*self.access, &due);
                    state = lock(&self.state);
                    state.schedule.record_result(self.began.elapsed(), &due, result)
                }
                NextStep::Wait(until) => {
                    state.idle += 1;
                    state = match until.map(|until| until.saturating_sub(self.began.elapsed())) {
                        Some(time) => {
                            self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
                        }
                        None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                    };
                    state.idle -= 1;
                    None
                }
            };
            if let Some(report) = report {
                drop(state);
                (self.report)(report);
                state = lock(&self.state);
            }
        }
        state.threads -= 1;
    }
}

#[cfg(test)]
mod tests;
