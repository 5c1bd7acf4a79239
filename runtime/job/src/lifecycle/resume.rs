//! The contract of `preemption`: attempts that leave are resumed, and do not count as retries.

use std::time::Duration;

use super::action::Action;
use super::retry::backoff_delay;
use super::task::{EndReason, TaskNumber};
use super::{Lifecycle, Phase};
use jobc_container::process::Exit;
use jobc_place::task::TaskState;

/// After an attempt that ran for so long, the wait is that of the first.
const LONG_ATTEMPT: Duration = Duration::from_mins(1);

impl Lifecycle {
    /// Whether an attempt that has ended is to be resumed: it says so, or was ended by a suspension.
    ///
    /// With exit codes for that, a success is one even if the task was asked to leave. Without them nothing tells a task
    /// that has saved and left from one that was done.
    pub(super) fn asks_to_be_resumed(&self, purpose: Option<&EndReason>, exit: Exit) -> bool {
        let says_so = matches!(exit, Exit::Code(code) if self.resume_codes.contains(&code));
        match purpose {
            None => says_so,
            Some(EndReason::Suspended) => exit != Exit::Code(0) || self.resume_codes.is_empty(),
            Some(_) => false,
        }
    }

    /// An attempt asked to be resumed: another one comes, which does not count.
    pub(super) fn resume(&mut self, time: Duration, number: TaskNumber) {
        if self.leaves {
            return self.leave(time, number);
        }
        if !matches!(self.phase, Phase::Running) {
            // A job that is suspended resumes it with the others.
            return self.suspended(number);
        }
        let progress = &mut self.progress[number];
        let was_long = progress.started_at.is_some_and(|began| time.saturating_sub(began) >= LONG_ATTEMPT);
        progress.quick_resumes = if was_long { 1 } else { progress.quick_resumes + 1 };
        let resumes = progress.quick_resumes;
        let first = self.roles[self.tasks[number].role].retry.backoff_seconds;
        self.try_again(time, number, backoff_delay(first, resumes), false);
    }

    /// Ends what runs, to be resumed; what is frozen was thawed for that.
    pub(super) fn suspend(&mut self, time: Duration) {
        if !matches!(self.phase, Phase::Running) {
            return;
        }
        self.clock.resume();
        self.phase = Phase::Suspended { over: false };
        for task in 0..self.tasks.len() {
            let state = self.tasks[task].state;
            if state.is_alive() || state == TaskState::Creating {
                self.end_task(time, task, EndReason::Suspended, None);
            }
        }
    }

    /// A task has left.
    pub(super) fn suspended(&mut self, number: TaskNumber) {
        self.set_state(number, TaskState::Retrying);
        self.suspended.push(number);
    }

    /// Says once that nothing runs. The time until the job is resumed is not the job's.
    pub(super) fn check_suspended(&mut self) {
        if let Phase::Suspended { over } = &mut self.phase
            && self.alive == 0
            && !std::mem::replace(over, true)
        {
            self.clock.pause();
            self.actions.push(Action::Suspended);
        }
    }

    /// There is room again: what was ended is made again.
    pub(super) fn readmitted(&mut self) {
        if !matches!(self.phase, Phase::Suspended { over: true }) {
            return;
        }
        self.phase = Phase::Running;
        self.clock.resume();
        for task in std::mem::take(&mut self.suspended) {
            self.forget_attempt(task);
            self.requeue_task(task);
        }
    }
}
