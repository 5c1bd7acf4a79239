//! The jobs that a handle names: one, or those of a sweep. The jobs of a matrix have the name of the job file and a
//! number, `lab/grid-0` to `lab/grid-7`; `lab/grid` stands for all of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use jobc_remote::place::JobSummary;
use jobc_remote::{Handle, Place};
use jobc_schema::plural;
use jobc_sys::error::{Error, Kind, Result};

use crate::runtime::commands::jobs::Failure;

/// Jobs that are changed at the same time.
const MAX_CONCURRENT: usize = 8;

/// The jobs that a handle names.
pub(super) enum Members {
    /// A job.
    Job(Box<JobSummary>),
    /// The newest run of each job of a sweep, in the order of the matrix.
    Sweep(Vec<JobSummary>),
}

impl Members {
    /// Finds the jobs of a handle.
    ///
    /// # Errors
    ///
    /// The place cannot be reached, or has no such job.
    pub(super) fn find(place: &dyn Place, handle: &Handle) -> Result<Self> {
        let error = match place.find(&handle.name) {
            Ok(job) => return Ok(Self::Job(Box::new(job))),
            Err(error) if error.kind == Kind::NotFound => error,
            Err(error) => return Err(error),
        };
        match of_sweep(&handle.name, place.list()?) {
            jobs if jobs.is_empty() => Err(error),
            jobs => Ok(Self::Sweep(jobs)),
        }
    }

    /// Finds a job; a sweep is an error.
    pub(super) fn find_one(place: &dyn Place, handle: &Handle) -> Result<JobSummary> {
        match Self::find(place, handle)? {
            Self::Job(job) => Ok(*job),
            Self::Sweep(jobs) => {
                let message = format!(
                    "`{handle}` is a sweep of {}, and this command takes one job",
                    plural(jobs.len(), "job")
                );
                Err(Error::new(Kind::Config, message)
                    .help(format!("name one of its jobs; `jobc ps {handle}` lists them")))
            }
        }
    }

    /// All of them.
    pub(super) fn into_jobs(self) -> Vec<JobSummary> {
        match self {
            Self::Job(job) => vec![*job],
            Self::Sweep(jobs) => jobs,
        }
    }
}

/// The newest run of each job of a sweep, from a list whose newest jobs come first.
fn of_sweep(sweep: &str, all: Vec<JobSummary>) -> Vec<JobSummary> {
    let number = |job: &JobSummary| job.job.strip_prefix(sweep)?.strip_prefix('-')?.parse::<u32>().ok();
    let mut jobs: Vec<(u32, JobSummary)> =
        all.into_iter().filter_map(|job| Some((number(&job)?, job))).collect();
    // Stable: the newest run of a number stays the first.
    jobs.sort_by_key(|(number, _)| *number);
    jobs.dedup_by_key(|(number, _)| *number);
    jobs.into_iter().map(|(_, job)| job).collect()
}

/// Works on several items at a time; an error does not keep the others from being done, and the first is returned.
pub(super) fn for_each<T: Sync>(
    items: &[T],
    work: &(dyn Fn(&T) -> std::result::Result<(), Failure> + Sync),
) -> std::result::Result<(), Failure> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None::<Failure>));
    std::thread::scope(|scope| {
        for _ in 0..MAX_CONCURRENT.min(items.len()) {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = work(item) {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobc_remote::place::{JobState, TaskCounts};

    #[test]
    fn a_sweep_is_the_newest_run_of_each_of_its_jobs() {
        let job = |job: &str, run: &str| JobSummary {
            name: format!("{job}-{run}"),
            job: job.to_owned(),
            kind: "Job".to_owned(),
            state: JobState::Running,
            reason: None,
            message: None,
            tasks: TaskCounts::default(),
            user: None,
            submitted: None,
            started: None,
            ended: None,
            is_complete: true,
            plan: None,
            is_short: false,
        };
        let all = [
            ("grid-10", "new"),
            ("grid-2", "new"),
            ("other", "x"),
            ("grid-2", "old"),
            ("grid-a", "x"),
            ("grid-2-1", "x"),
            ("gridded-1", "x"),
        ];
        let found = of_sweep("grid", all.map(|(name, run)| job(name, run)).to_vec());
        assert_eq!(
            found.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(),
            ["grid-2-new", "grid-10-new"]
        );
        assert!(of_sweep("nothing", found).is_empty());
    }
}
