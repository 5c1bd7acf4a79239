//! The names of runs: the same job is the same run when submitted again.

use std::collections::{BTreeMap, BTreeSet};

use jobc_remote::identity::Identity;
use jobc_remote::place::{JobState, JobSummary, RemotePlace};
use jobc_sys::error::{Error, Kind};

use crate::runtime::commands::jobs::{Failure, Result};

/// Maximum number of names that are tried for a run.
const MAX_NAMES: u64 = 20;

/// A job to submit, and its state on the cluster.
pub(super) struct Run {
    pub(super) identity: Identity,
    pub(super) name: String,
    /// The existing run of the same job.
    pub(super) existing: Option<JobSummary>,
}

/// The existing runs on the cluster.
pub(super) enum Known<'a> {
    /// The cluster is queried for each job.
    Asked(&'a dyn RemotePlace),
    /// All jobs were listed once.
    Listed {
        /// The newest run by job and label of the plan.
        runs: BTreeMap<(String, String), JobSummary>,
        /// The names of all runs.
        names: BTreeSet<String>,
    },
}

impl<'a> Known<'a> {
    /// Queries the existing runs, with one list request for several jobs.
    pub(super) fn of(place: &'a dyn RemotePlace, jobs: usize) -> Result<Self> {
        if jobs <= 1 {
            return Ok(Self::Asked(place));
        }
        let all = place.list()?;
        let names = all.iter().map(|run| run.name.clone()).collect();
        let mut runs = BTreeMap::new();
        // The newest comes first.
        for run in all {
            if let Some(plan) = run.plan.clone() {
                runs.entry((run.job.clone(), plan)).or_insert(run);
            }
        }
        Ok(Self::Listed { runs, names })
    }

    fn run_of(&self, identity: &Identity) -> Result<Option<JobSummary>> {
        match self {
            Self::Asked(place) => Ok(place.runs_of(identity)?.into_iter().next()),
            Self::Listed { runs, .. } => {
                Ok(runs.get(&(identity.job.clone(), identity.label().to_owned())).cloned())
            }
        }
    }

    fn is_taken(&self, name: &str) -> Result<bool> {
        match self {
            Self::Asked(place) => place.is_taken(name).map_err(Failure::from),
            Self::Listed { names, .. } => Ok(names.contains(name)),
        }
    }

    /// Finds the run of this job that exists, or a free name for a new one; `is_new` asks for a new one, and `resumes` for
    /// one if the newest did not succeed.
    pub(super) fn choose(&self, identity: Identity, is_new: bool, resumes: bool) -> Result<Run> {
        let existing = if is_new { None } else { self.run_of(&identity)? };
        let has_failed = |run: &JobSummary| run.state.is_final() && run.state != JobState::Succeeded;
        let is_new = is_new || resumes && existing.as_ref().is_some_and(has_failed);
        if let Some(existing) = existing.filter(|_| !is_new) {
            return Ok(Run { identity, name: existing.name.clone(), existing: Some(existing) });
        }
        let first = if is_new { Identity::random_salt() } else { 0 };
        for salt in (0..MAX_NAMES).map(|number| first.wrapping_add(number)) {
            let name = identity.run_name(salt);
            if !self.is_taken(&name)? {
                return Ok(Run { identity, name, existing: None });
            }
        }
        let error =
            Error::new(Kind::State, format!("there is no free name for another run of `{}`", identity.job));
        Err(error.help("remove old runs with `jobc rm`").into())
    }
}
