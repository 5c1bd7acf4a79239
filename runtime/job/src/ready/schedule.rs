//! When to probe, and what the result means. Nothing here probes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use jobc_schema::Seconds;

use super::{Probe, ReadinessCheck, Report};
use crate::lifecycle::TaskNumber;
use crate::lifecycle::clock::Clock;

/// The number of consecutive failures after which a ready task is no longer ready, as in Kubernetes' readiness probes.
const FAILURE_THRESHOLD: u32 = 3;

/// The watched tasks and their pending timers.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    clock: Clock,
    /// How often the clock was stopped: a probe during a stop does not count.
    pauses: u64,
    /// The pending timers. An entry with an outdated number is ignored.
    due: BinaryHeap<Reverse<(Duration, TaskNumber, u64)>>,
    entries: BTreeMap<TaskNumber, Entry>,
    numbers: u64,
}

/// A task that is watched.
#[derive(Debug)]
struct Entry {
    check: Arc<ReadinessCheck>,
    number: u64,
    /// When it must be ready.
    deadline: Duration,
    readiness: Readiness,
    /// Why the last try failed.
    why: Option<String>,
}

/// The state of a task.
#[derive(Debug, PartialEq)]
enum Readiness {
    /// It has not been ready.
    NotYet,
    /// It is ready, with this number of consecutive failures since.
    Ready(u32),
    /// It is no longer ready.
    Lost,
}

/// The current step.
#[derive(Debug)]
pub(super) enum NextStep {
    /// Probe, and report to [`Schedule::record_result`].
    Probe(DueProbe),
    /// Tell what is known without a try.
    Report(Report),
    /// Nothing until then, or until something changes.
    Wait(Option<Duration>),
}

/// A try.
#[derive(Debug)]
pub(super) struct DueProbe {
    /// What.
    pub(super) check: Arc<ReadinessCheck>,
    /// How long it may take.
    pub(super) within: Duration,
    number: u64,
    pauses: u64,
}

impl Schedule {
    /// Begins to watch an attempt of a task, instead of an earlier one.
    pub(super) fn watch(&mut self, now: Duration, watched: ReadinessCheck) {
        let time = self.clock.at(now);
        self.numbers += 1;
        let deadline = time + watched.timeout;
        let first = if matches!(watched.probe, Probe::Log(_)) { deadline } else { time + watched.delay };
        self.due.push(Reverse((first.min(deadline), watched.task, self.numbers)));
        let entry = Entry {
            number: self.numbers,
            deadline,
            readiness: Readiness::NotYet,
            why: None,
            check: Arc::new(watched),
        };
        self.entries.insert(entry.check.task, entry);
    }

    /// Stops to watch a task.
    pub(super) fn unwatch(&mut self, task: TaskNumber) {
        self.entries.remove(&task);
    }

    /// The tasks are frozen.
    pub(super) fn pause(&mut self, now: Duration) {
        self.clock.at(now);
        self.clock.pause();
        self.pauses += 1;
    }

    /// The tasks go on.
    pub(super) fn resume(&mut self, now: Duration) {
        self.clock.at(now);
        self.clock.resume();
    }

    /// Returns the steps for a time.
    pub(super) fn next(&mut self, now: Duration) -> NextStep {
        let time = self.clock.at(now);
        if self.clock.is_paused() {
            return NextStep::Wait(None);
        }
        while let Some(&Reverse((at, task, number))) = self.due.peek() {
            if at > time {
                return NextStep::Wait(self.clock.when(at));
            }
            self.due.pop();
            let Some(entry) = self.entries.get(&task).filter(|entry| entry.number == number) else {
                continue;
            };
            let left = match entry.readiness {
                Readiness::NotYet => entry.deadline.saturating_sub(time),
                Readiness::Ready(_) | Readiness::Lost => entry.check.try_timeout,
            };
            if left.is_zero() {
                let why = entry.timeout_reason();
                let report = entry.report(Err(why));
                self.entries.remove(&task);
                return NextStep::Report(report);
            }
            let (watched, within) = (Arc::clone(&entry.check), left.min(entry.check.try_timeout));
            return NextStep::Probe(DueProbe { check: watched, within, number, pauses: self.pauses });
        }
        NextStep::Wait(None)
    }

    /// Takes in what came of a try.
    pub(super) fn record_result(
        &mut self,
        now: Duration,
        tried: &DueProbe,
        result: Result<(), String>,
    ) -> Option<Report> {
        let time = self.clock.at(now);
        let task = tried.check.task;
        let entry = self.entries.get_mut(&task).filter(|entry| entry.number == tried.number)?;
        let mut next = time + entry.check.every;
        if entry.readiness == Readiness::NotYet {
            next = next.min(entry.deadline);
        }
        self.due.push(Reverse((next, task, entry.number)));
        if tried.pauses != self.pauses {
            return None;
        }
        let report = entry.update(result);
        if !entry.check.keep && entry.readiness != Readiness::NotYet {
            self.entries.remove(&task);
        }
        report
    }

    /// Takes in a line of a task's output.
    pub(super) fn line(&mut self, task: TaskNumber, attempt: u32, line: &[u8]) -> Option<Report> {
        let entry = self.entries.get(&task).filter(|entry| entry.check.attempt == attempt)?;
        let Probe::Log(pattern) = &entry.check.probe else { return None };
        let report = pattern.is_match(line).then(|| entry.report(Ok(())))?;
        // A written line stays: with `keep` there is nothing more to check.
        self.entries.remove(&task);
        Some(report)
    }

    /// Whether lines of a task are matched.
    pub(super) fn wants_lines(&self, task: TaskNumber) -> bool {
        self.entries.get(&task).is_some_and(|entry| matches!(entry.check.probe, Probe::Log(_)))
    }
}

impl Entry {
    fn report(&self, ready: Result<(), String>) -> Report {
        Report { task: self.check.task, attempt: self.check.attempt, ready }
    }

    /// The state of a task after a probe; a report if it has changed.
    fn update(&mut self, result: Result<(), String>) -> Option<Report> {
        match (result, &mut self.readiness) {
            (Ok(()), Readiness::NotYet | Readiness::Lost) => {
                self.readiness = Readiness::Ready(0);
                Some(self.report(Ok(())))
            }
            (Ok(()), Readiness::Ready(misses)) => {
                *misses = 0;
                None
            }
            (Err(why), Readiness::Ready(misses)) if *misses + 1 >= FAILURE_THRESHOLD => {
                self.readiness = Readiness::Lost;
                Some(self.report(Err(format!("no longer ready: {why}"))))
            }
            (Err(_), Readiness::Ready(misses)) => {
                *misses += 1;
                None
            }
            (Err(why), Readiness::NotYet) => {
                self.why = Some(why);
                None
            }
            (Err(_), Readiness::Lost) => None,
        }
    }

    /// Why a task that was not ready in time was not.
    fn timeout_reason(&self) -> String {
        let why = match (&self.why, &self.check.probe) {
            (Some(why), _) => why.clone(),
            (None, Probe::Log(pattern)) => format!("no line matches `{pattern}`"),
            (None, _) => "not probed yet".to_owned(),
        };
        format!("not ready within {}: {why}", Seconds(self.check.timeout.as_secs()))
    }
}

#[cfg(test)]
mod tests;
