//! When to probe, and what the result means. Nothing here probes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use jobc_schema::Seconds;

use super::{Probe, Report, Watched};
use crate::lifecycle::TaskNumber;
use crate::lifecycle::clock::Clock;

/// The number of consecutive failures after which a ready task is no longer ready, as in Kubernetes' readiness probes.
const MISSES: u32 = 3;

/// What is watched, and when something is due for it.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    clock: Clock,
    /// How often the clock was stopped: a probe during a stop does not count.
    pauses: u64,
    /// What is due when. An entry whose number is not its task's any more counts for nothing.
    due: BinaryHeap<Reverse<(Duration, TaskNumber, u64)>>,
    watched: BTreeMap<TaskNumber, Entry>,
    numbers: u64,
}

/// A task that is watched.
#[derive(Debug)]
struct Entry {
    watched: Arc<Watched>,
    number: u64,
    /// When it must be ready.
    deadline: Duration,
    standing: Standing,
    /// Why the last try failed.
    why: Option<String>,
}

/// The state of a task.
#[derive(Debug, PartialEq)]
enum Standing {
    /// It has not been ready.
    NotYet,
    /// It is ready, with this number of consecutive failures since.
    Ready(u32),
    /// It is not ready any more.
    Lost,
}

/// What to do now.
#[derive(Debug)]
pub(super) enum Next {
    /// Probe, and report to [`Schedule::done`].
    Try(Try),
    /// Tell what is known without a try.
    Tell(Report),
    /// Nothing until then, or until something changes.
    Wait(Option<Duration>),
}

/// A try.
#[derive(Debug)]
pub(super) struct Try {
    /// What.
    pub(super) watched: Arc<Watched>,
    /// How long it may take.
    pub(super) within: Duration,
    number: u64,
    pauses: u64,
}

impl Schedule {
    /// Begins to watch an attempt of a task, in place of an earlier one.
    pub(super) fn watch(&mut self, now: Duration, watched: Watched) {
        let time = self.clock.at(now);
        self.numbers += 1;
        let deadline = time + watched.timeout;
        let first = if matches!(watched.probe, Probe::Log(_)) { deadline } else { time + watched.delay };
        self.due.push(Reverse((first.min(deadline), watched.task, self.numbers)));
        let entry = Entry {
            number: self.numbers,
            deadline,
            standing: Standing::NotYet,
            why: None,
            watched: Arc::new(watched),
        };
        self.watched.insert(entry.watched.task, entry);
    }

    /// Stops to watch a task.
    pub(super) fn forget(&mut self, task: TaskNumber) {
        self.watched.remove(&task);
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

    /// What to do at a time.
    pub(super) fn next(&mut self, now: Duration) -> Next {
        let time = self.clock.at(now);
        if self.clock.is_paused() {
            return Next::Wait(None);
        }
        while let Some(&Reverse((at, task, number))) = self.due.peek() {
            if at > time {
                return Next::Wait(self.clock.when(at));
            }
            self.due.pop();
            let Some(entry) = self.watched.get(&task).filter(|entry| entry.number == number) else {
                continue;
            };
            let left = match entry.standing {
                Standing::NotYet => entry.deadline.saturating_sub(time),
                Standing::Ready(_) | Standing::Lost => entry.watched.try_timeout,
            };
            if left.is_zero() {
                let why = entry.too_late();
                let report = entry.report(Err(why));
                self.watched.remove(&task);
                return Next::Tell(report);
            }
            let (watched, within) = (Arc::clone(&entry.watched), left.min(entry.watched.try_timeout));
            return Next::Try(Try { watched, within, number, pauses: self.pauses });
        }
        Next::Wait(None)
    }

    /// Takes in what came of a try.
    pub(super) fn done(&mut self, now: Duration, tried: &Try, result: Result<(), String>) -> Option<Report> {
        let time = self.clock.at(now);
        let task = tried.watched.task;
        let entry = self.watched.get_mut(&task).filter(|entry| entry.number == tried.number)?;
        let mut next = time + entry.watched.every;
        if entry.standing == Standing::NotYet {
            next = next.min(entry.deadline);
        }
        self.due.push(Reverse((next, task, entry.number)));
        if tried.pauses != self.pauses {
            return None;
        }
        let report = entry.judge(result);
        if !entry.watched.keep && entry.standing != Standing::NotYet {
            self.watched.remove(&task);
        }
        report
    }

    /// Takes in a line of a task's output.
    pub(super) fn line(&mut self, task: TaskNumber, attempt: u32, line: &[u8]) -> Option<Report> {
        let entry = self.watched.get(&task).filter(|entry| entry.watched.attempt == attempt)?;
        let Probe::Log(pattern) = &entry.watched.probe else { return None };
        let report = pattern.is_match(line).then(|| entry.report(Ok(())))?;
        // What is written stays written: with `keep` there is nothing more to see.
        self.watched.remove(&task);
        Some(report)
    }

    /// Whether lines of a task are matched.
    pub(super) fn wants_lines(&self, task: TaskNumber) -> bool {
        self.watched.get(&task).is_some_and(|entry| matches!(entry.watched.probe, Probe::Log(_)))
    }
}

impl Entry {
    fn report(&self, ready: Result<(), String>) -> Report {
        Report { task: self.watched.task, attempt: self.watched.attempt, ready }
    }

    /// The state of a task after a probe; a report if it has changed.
    fn judge(&mut self, result: Result<(), String>) -> Option<Report> {
        match (result, &mut self.standing) {
            (Ok(()), Standing::NotYet | Standing::Lost) => {
                self.standing = Standing::Ready(0);
                Some(self.report(Ok(())))
            }
            (Ok(()), Standing::Ready(misses)) => {
                *misses = 0;
                None
            }
            (Err(why), Standing::Ready(misses)) if *misses + 1 >= MISSES => {
                self.standing = Standing::Lost;
                Some(self.report(Err(format!("no longer ready: {why}"))))
            }
            (Err(_), Standing::Ready(misses)) => {
                *misses += 1;
                None
            }
            (Err(why), Standing::NotYet) => {
                self.why = Some(why);
                None
            }
            (Err(_), Standing::Lost) => None,
        }
    }

    /// Why a task that was not ready in time was not.
    fn too_late(&self) -> String {
        let why = match (&self.why, &self.watched.probe) {
            (Some(why), _) => why.clone(),
            (None, Probe::Log(pattern)) => format!("no line matches `{pattern}`"),
            (None, _) => "not probed yet".to_owned(),
        };
        format!("not ready within {}: {why}", Seconds(self.watched.timeout.as_secs()))
    }
}

#[cfg(test)]
mod tests;
