//! `budget` of a job: what its attempts use is counted, and at a limit the job ends as by `preemption`.

use std::time::{Duration, Instant};

use jobc_place::state::JobState;

use super::Supervisor;
use super::budget_watch::INTERVALS;
use crate::lifecycle::{Input, TaskNumber};
use crate::spent::Spent;

/// By then, energy that something counts is known.
const ENERGY_DELAY: Duration = Duration::from_secs(10);

impl Supervisor {
    /// When to count again, while something runs.
    pub(super) fn next_count(&self) -> Option<Instant> {
        self.budget.as_ref().filter(|_| !self.attempts.is_empty()).map(|budget| budget.next)
    }

    /// Counts the time since the last count for all attempts that run: before one begins and before one ends, too.
    pub(super) fn count_time(&mut self) {
        if self.waits_for_turn() {
            return self.skip_time();
        }
        let Some(watch) = &mut self.budget else { return };
        let now = Instant::now();
        let millis = u64::try_from(now.duration_since(watch.counted).as_millis()).unwrap_or(u64::MAX);
        // The rest of a millisecond is not lost.
        watch.counted += Duration::from_millis(millis);
        for task in self.attempts.keys().map(|&task| &self.journal.record.tasks[task]) {
            if task.started.is_some() {
                watch.spent.add_time(&watch.rates, task, millis);
            }
        }
    }

    /// Leaves out the time since the last count: the GPUs were those of another job.
    pub(super) fn skip_time(&mut self) {
        if let Some(watch) = &mut self.budget {
            watch.counted = Instant::now();
        }
    }

    /// An attempt has ended, whose energy is in the record.
    pub(super) fn count_energy(&mut self, task: TaskNumber) {
        if let Some(watch) = &mut self.budget {
            let task = &self.journal.record.tasks[task];
            watch.spent.add_energy(task, task.energy);
        }
    }

    /// Ends the job if its budget is used up.
    pub(super) fn look_at_budget(&mut self) {
        let now = Instant::now();
        if self.next_count().is_none_or(|next| next > now) {
            return;
        }
        self.count_time();
        let Some(watch) = &mut self.budget else { return };
        watch.next = now + INTERVALS[1];
        if self.lifecycle.state() == JobState::Stopping {
            return;
        }
        let (mut spent, mut in_second) = (watch.spent, Spent::default());
        for (task, used) in self.sampler.energies() {
            if let Some(task) = self.journal.record.task(&task) {
                spent.add_energy(task, used);
            }
        }
        for task in self.attempts.keys().map(|&task| &self.journal.record.tasks[task]) {
            in_second.add_time(&watch.rates, task, 1000);
        }
        let began = *watch.began.get_or_insert(now);
        let is_unknown = watch.budget.energy.is_some()
            && now.duration_since(began) >= ENERGY_DELAY
            && (spent.energy.millijoules().is_none() || spent.energy.incomplete);
        let reached = watch.reached(&spent, &in_second);
        if let Ok(wait) = reached {
            watch.next = now + wait;
        }
        if is_unknown {
            self.journal.note(
                "`energy` of the budget is not counted completely: this user cannot read a counter of some GPU or of the processors; `gpu_hours` limits the job, too",
            );
        }
        if let Err(used) = reached {
            self.step(Input::OverBudget { why: used });
        }
    }
}
