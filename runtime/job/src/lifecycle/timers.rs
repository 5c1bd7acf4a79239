//! Times at which something is due, each of which can be taken back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::task::{RoleNumber, TaskNumber};

/// The types of timers. Timers that expire at the same time are handled in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// The job's time limit.
    Job,
    /// An attempt's time limit.
    Attempt(TaskNumber),
    /// The end of the time that a task has after SIGINT.
    Stop(TaskNumber),
    /// The end of a grace period.
    Kill(TaskNumber),
    /// A task's next attempt.
    TaskRetry(TaskNumber),
    /// A role's next attempt.
    RoleRetry(RoleNumber),
    /// The job's next attempt.
    JobRetry,
}

/// The pending timers; each has one time.
#[derive(Debug, Default)]
pub(super) struct Timers {
    order: BTreeSet<(Duration, Timer)>,
    times: BTreeMap<Timer, Duration>,
}

impl Timers {
    /// Sets a time, instead of an earlier setting.
    pub(super) fn set(&mut self, timer: Timer, time: Duration) {
        self.cancel(timer);
        self.times.insert(timer, time);
        self.order.insert((time, timer));
    }

    /// Sets a time unless an earlier one is set.
    pub(super) fn set_at_most(&mut self, timer: Timer, time: Duration) {
        if self.times.get(&timer).is_none_or(|set| time < *set) {
            self.set(timer, time);
        }
    }

    /// Takes a time back.
    pub(super) fn cancel(&mut self, timer: Timer) {
        if let Some(time) = self.times.remove(&timer) {
            self.order.remove(&(time, timer));
        }
    }

    /// Takes back every time but those to keep.
    pub(super) fn retain(&mut self, keep: impl Fn(Timer) -> bool) {
        self.times.retain(|timer, _| keep(*timer));
        self.order.retain(|(_, timer)| keep(*timer));
    }

    /// Takes out the first that is due.
    pub(super) fn take_due(&mut self, now: Duration) -> Option<Timer> {
        let (time, timer) = *self.order.first()?;
        if time > now {
            return None;
        }
        self.cancel(timer);
        Some(timer)
    }

    /// The first time of all.
    pub(super) fn next(&self) -> Option<Duration> {
        self.order.first().map(|(time, _)| *time)
    }
}
