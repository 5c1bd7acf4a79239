//! A task's state and what is counted of it, always together.

use super::Lifecycle;
use super::task::{EndReason, TaskNumber};
use super::timers::Timer;
use jobc_place::task::TaskState;

/// Whether a task in this state counts against `parallel`: it has a process, or will have one at any moment.
fn occupies(state: TaskState) -> bool {
    state.is_alive() || state == TaskState::Creating
}

impl Lifecycle {
    /// Changes a task's state. Nothing else writes it, so the counts are right.
    pub(super) fn set_state(&mut self, number: TaskNumber, state: TaskState) {
        let task = &mut self.tasks[number];
        let before = std::mem::replace(&mut task.state, state);
        if before == state {
            return;
        }
        let progress = &self.progress[number];
        let role = &mut self.roles[task.role];
        match (occupies(before), occupies(state)) {
            (false, true) => {
                role.counts.alive += 1;
                self.alive += 1;
            }
            (true, false) => {
                role.counts.alive -= 1;
                self.alive -= 1;
                self.roles_with_room.insert(task.role);
            }
            _ => {}
        }
        // A finished task can start again when its role or job is retried.
        for (state, begins) in [(before, false), (state, true)] {
            if !state.is_final() {
                continue;
            }
            let by = |count: &mut usize, counts: bool| match (counts, begins) {
                (true, true) => *count += 1,
                (true, false) => *count -= 1,
                (false, _) => {}
            };
            by(&mut self.ended, true);
            by(&mut role.counts.ended, true);
            by(&mut role.counts.succeeded, state == TaskState::Succeeded);
            by(&mut role.counts.failed, state == TaskState::Failed);
            by(&mut role.counts.never_started, !progress.started);
            by(&mut role.counts.never_ready, !progress.ready);
            match (progress.launches, begins) {
                (true, true) => self.launching -= 1,
                (true, false) => self.launching += 1,
                (false, _) => {}
            }
            self.changed.insert(task.role);
        }
    }

    /// Notes that a task's latest attempt runs.
    pub(super) fn note_started(&mut self, number: TaskNumber) {
        let role = self.tasks[number].role;
        self.ran = true;
        if !std::mem::replace(&mut self.progress[number].started, true) {
            self.roles[role].counts.started += 1;
            self.changed.insert(role);
        }
    }

    /// Notes that a task's latest attempt has once been ready.
    pub(super) fn note_ready(&mut self, number: TaskNumber) {
        let role = self.tasks[number].role;
        if !std::mem::replace(&mut self.progress[number].ready, true) {
            self.roles[role].counts.ready += 1;
            self.changed.insert(role);
        }
    }

    /// Resets the progress of a task's latest attempt before another one. The task must no longer be finished.
    pub(super) fn forget_attempt(&mut self, number: TaskNumber) {
        debug_assert!(!self.tasks[number].state.is_final(), "its counts would be wrong");
        let progress = &mut self.progress[number];
        let counts = &mut self.roles[self.tasks[number].role].counts;
        counts.started -= usize::from(std::mem::take(&mut progress.started));
        counts.ready -= usize::from(std::mem::take(&mut progress.ready));
        progress.is_final = false;
        progress.start_requested = false;
        progress.counted_by_gang = false;
        progress.ending = None;
    }

    /// The end of a task's process: its timers are removed.
    pub(super) fn process_gone(&mut self, number: TaskNumber) -> Option<EndReason> {
        self.timers.cancel(Timer::Attempt(number));
        self.timers.cancel(Timer::Stop(number));
        self.timers.cancel(Timer::Kill(number));
        self.progress[number].ending.take()
    }
}
