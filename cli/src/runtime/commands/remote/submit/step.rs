//! One step of a submission over all jobs: several at a time, with progress, until an error or a signal ends it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use jobc_remote::place::Problem;
use jobc_sys::signals::{Signal, Signals};

use super::problems;
use super::progress::Progress;
use crate::runtime::commands::jobs::{Failure, Result};
use crate::runtime::interruptible::{self, exit_by_signal};

/// Jobs that are checked or created concurrently. API servers allow each user a limited number of concurrent requests,
/// and answer 429 beyond that.
const MAX_CONCURRENT: usize = 8;
/// Number of jobs with errors after which checking stops.
const MAX_REFUSED: usize = 10;

/// How a step over all jobs ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing is left to do.
    Complete,
    /// Some jobs have errors, which were printed.
    Refused,
    /// A signal came.
    Interrupted(Signal),
}

/// What the threads of a step share.
pub(super) struct Step<'a> {
    pub(super) progress: Progress,
    stopped: &'a AtomicBool,
    refused: AtomicUsize,
    /// Problems that were printed: the jobs of a matrix often have the same.
    shown: Mutex<BTreeSet<String>>,
}

/// Processes several jobs at a time. After a first signal, those in progress are finished; a second signal aborts them.
pub(super) fn each(
    done: &'static str,
    jobs: &[usize],
    work: &(dyn Fn(usize, &Step<'_>) -> Result<()> + Sync),
) -> Result<End> {
    let signals = Signals::block_forwarded()?;
    let stopped = AtomicBool::new(false);
    let step = Step {
        progress: Progress::new(done, jobs.len()),
        stopped: &stopped,
        refused: AtomicUsize::new(0),
        shown: Mutex::default(),
    };
    let mut ended_by = None;
    let all = || {
        for_each(jobs, &stopped, &|index| {
            work(index, &step)?;
            step.progress.advance();
            Ok(())
        })
    };
    let result = interruptible::run(&signals, all, |signal| {
        if ended_by.replace(signal).is_some() {
            exit_by_signal(signal);
        }
        stopped.store(true, Ordering::Relaxed);
        step.progress.note("stopping after the jobs under way; Ctrl-C again stops at once");
    })?;
    let is_complete = step.progress.finish();
    result?;
    Ok(match ended_by {
        Some(signal) if !is_complete => End::Interrupted(signal),
        _ if step.refused.load(Ordering::Relaxed) > 0 => End::Refused,
        _ => End::Complete,
    })
}

impl Step<'_> {
    /// Prints the problems of a job, unless they were printed for another one.
    pub(super) fn report(&self, found: &[Problem]) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        for problem in found {
            let text = problems::text(problem);
            if shown.insert(text.clone()) {
                self.progress.print(&text);
            }
        }
        if found.iter().any(|problem| !problem.is_warning)
            && self.refused.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_REFUSED
        {
            self.stopped.store(true, Ordering::Relaxed);
        }
    }
}

/// Works on several items at a time. The first error ends it; those under way are completed.
fn for_each(
    items: &[usize],
    stopped: &AtomicBool,
    work: &(dyn Fn(usize) -> Result<()> + Sync),
) -> Result<()> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None::<Failure>));
    let one = || {
        while !stopped.load(Ordering::Relaxed)
            && let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed))
        {
            if let Err(error) = work(*item) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                stopped.store(true, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..MAX_CONCURRENT.min(items.len()) {
            scope.spawn(one);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobc_sys::error::{Error, Kind};

    #[test]
    fn an_error_ends_the_work_on_the_others() {
        let items: Vec<usize> = (0..1000).collect();
        let done = AtomicUsize::new(0);
        let stopped = AtomicBool::new(false);
        for_each(&items, &stopped, &|_| {
            done.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
        .map_err(|error| error.message())
        .unwrap();
        assert_eq!(done.load(Ordering::Relaxed), 1000);
        let result = for_each(&items, &stopped, &|item| {
            if item == 3 { Err(Error::new(Kind::System, "three").into()) } else { Ok(()) }
        });
        assert_eq!(result.unwrap_err().message(), "three");
        assert!(stopped.load(Ordering::Relaxed));
    }
}
