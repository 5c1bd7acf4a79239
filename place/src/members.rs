//! The jobs that a name stands for: one, or those of a sweep.
//!
//! The jobs of a matrix have the name of the job file and a number, `lab/grid-0` to `lab/grid-7`; `lab/grid` stands for
//! all of them. On this host a sweep has a file of its own.

use jobc_schema::plural;
use jobc_sys::error::{Error, Kind, Result};

use crate::job::JobSummary;

/// The jobs that a name stands for.
#[derive(Clone, Debug)]
pub enum Members {
    /// A job.
    Job(Box<JobSummary>),
    /// The newest run of each job of a sweep, in the order of the matrix.
    Sweep {
        /// The name of the sweep at the place.
        name: String,
        /// Its jobs.
        jobs: Vec<JobSummary>,
    },
}

impl Members {
    /// All of them.
    pub fn jobs(&self) -> &[JobSummary] {
        match self {
            Self::Job(job) => std::slice::from_ref(job),
            Self::Sweep { jobs, .. } => jobs,
        }
    }

    /// The job; a sweep is an error. `word` is what the user wrote.
    pub fn one(&self, word: &str) -> Result<&JobSummary> {
        match self {
            Self::Job(job) => Ok(job),
            Self::Sweep { jobs, .. } => {
                let message = format!(
                    "`{word}` is a sweep of {}, and this command takes one job",
                    plural(jobs.len(), "job")
                );
                Err(Error::new(Kind::Config, message)
                    .help(format!("name one of its jobs; `jobc ps {word}` lists them")))
            }
        }
    }
}

/// The jobs of a name at a place that knows sweeps by the names of their jobs alone.
pub(crate) fn by_name(
    name: &str,
    find: impl FnOnce() -> Result<JobSummary>,
    list: impl FnOnce() -> Result<Vec<JobSummary>>,
) -> Result<Members> {
    let error = match find() {
        Ok(job) => return Ok(Members::Job(Box::new(job))),
        Err(error) if error.kind == Kind::NotFound => error,
        Err(error) => return Err(error),
    };
    match of_sweep(name, list()?) {
        jobs if jobs.is_empty() => Err(error),
        jobs => Ok(Members::Sweep { name: name.to_owned(), jobs }),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::JobState;

    #[test]
    fn a_sweep_is_the_newest_run_of_each_of_its_jobs() {
        let job = |job: &str, run: &str| JobSummary::new(format!("{job}-{run}"), job, JobState::Running);
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
        let names: Vec<&str> = found.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["grid-2-new", "grid-10-new"]);
        assert!(of_sweep("nothing", found).is_empty());
    }
}
