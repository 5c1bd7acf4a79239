//! One step of a submission over all jobs: several at a time, with progress, until an error or a signal ends it.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use jobc_remote::place::Problem;
use jobc_sys::parallel::{self, lock};
use jobc_sys::signals::{Signal, Signals};

use super::problems;
use super::progress::Progress;
use crate::runtime::commands::jobs::Result;
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
    let all = || -> Result<()> {
        parallel::for_each(jobs, MAX_CONCURRENT, |index, _| {
            if !stopped.load(Ordering::Relaxed) {
                work(*index, &step)?;
                step.progress.advance();
            }
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
        let mut shown = lock(&self.shown);
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
