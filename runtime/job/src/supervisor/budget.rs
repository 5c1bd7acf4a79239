//! `budget` of a job: what its attempts use is counted, and at a limit the job ends as by `preemption`.

use std::time::{Duration, Instant};

use jobc_place::state::JobState;
use jobc_schema::budget::Budget;
use jobc_schema::decimal::Decimal;

use super::Supervisor;
use crate::lifecycle::{Input, TaskNumber};
use crate::spent::{Rates, Spent};

/// How often it is counted, at most and at least.
const INTERVALS: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(10)];

/// How often where energy counts, which is sampled once a second.
const ENERGY_INTERVAL: Duration = Duration::from_secs(1);

/// By then, energy that something counts is known.
const ENERGY_DELAY: Duration = Duration::from_secs(10);

/// Counts what a job uses.
#[derive(Debug)]
pub(super) struct BudgetWatch {
    budget: Budget,
    rates: Rates,
    /// What was used until the last count: without the energy of attempts that run, and of earlier starts too.
    spent: Spent,
    counted: Instant,
    next: Instant,
    began: Option<Instant>,
}

impl BudgetWatch {
    /// That of a job with a budget; `earlier` is what was used before.
    pub(super) fn new(budget: Option<Budget>, rates: Option<&Rates>, earlier: Spent) -> Option<Self> {
        let (budget, rates) = (budget?, rates?.clone());
        let now = Instant::now();
        Some(Self { budget, rates, spent: earlier, counted: now, next: now, began: None })
    }

    /// How long to wait until the next count, where `running` is what is used in a second; or the limit that is reached.
    fn reached(&self, spent: &Spent, running: &Spent) -> Result<Duration, String> {
        let mut left = INTERVALS[1];
        let mut until = |limit: u64, used: u64, in_second: u64| {
            let seconds = limit.saturating_sub(used).checked_div(in_second);
            left = seconds.map_or(left, |seconds| left.min(Duration::from_secs(seconds)));
        };
        if let Some(limit) = self.budget.gpu_hours {
            // Millionths of an hour.
            let used = hours(spent.gpu_millis);
            if used >= limit.0 {
                // Less than an hour with all decimals.
                let used = Decimal(used);
                let text = if used.0 < 1_000_000 { used.to_string() } else { used.rounded() };
                return Err(format!("{text} of {limit} GPU-hours"));
            }
            until(limit.0, used, hours(running.gpu_millis).max(1));
        }
        if let Some(limit) = self.budget.cost {
            let used = self.rates.cost(spent);
            let currency = self.rates.currency.as_deref().unwrap_or_default();
            if used >= limit.0 {
                return Err(format!("{} of {} {currency}", Decimal(used).rounded(), limit.rounded()));
            }
            until(limit.0, used, self.rates.cost(running).max(1));
        }
        if let Some(limit) = self.budget.energy {
            let used = spent.energy.millijoules().unwrap_or(0);
            if used >= limit.0 {
                return Err(format!("{} of {}", spent.energy.text(), limit.rounded()));
            }
        }
        let counts_energy = self.budget.energy.is_some() || self.rates.kwh.is_some();
        let least = if counts_energy { ENERGY_INTERVAL } else { INTERVALS[1] };
        Ok(left.min(least).max(INTERVALS[0]))
    }
}

/// Milliseconds as millionths of an hour.
fn hours(millis: u64) -> u64 {
    u64::try_from(u128::from(millis) * 1_000_000 / 3_600_000).unwrap_or(u64::MAX)
}

impl Supervisor {
    /// When to count again, while something runs.
    pub(super) fn next_count(&self) -> Option<Instant> {
        self.budget.as_ref().filter(|_| !self.attempts.is_empty()).map(|budget| budget.next)
    }

    /// Counts the time since the last count for all attempts that run: before one begins and before one ends, too.
    pub(super) fn count_time(&mut self) {
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
