//! The jobs that words of the command line name, with their places: one path for what is done to jobs here and at
//! targets.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use jobc_place::Place;
use jobc_place::job::JobSummary;
use jobc_place::job_ref::{Handle, JobRef};
use jobc_place::members::Members;
use jobc_place::state::JobState;
use jobc_sys::parallel::{self, lock};

use super::jobs::{Failure, Result, id, open_local, unknown};
use super::target_table::open_target;
use crate::args::FormatArg;
use crate::runtime::kept;
use crate::terminal;

/// Jobs that are changed at the same time.
const MAX_CONCURRENT: usize = 8;

/// A job or a sweep, and where it is.
pub(crate) struct NamedJobs {
    /// The target; none for this host.
    target: Option<String>,
    pub(crate) place: Arc<dyn Place>,
    pub(crate) members: Members,
}

impl NamedJobs {
    /// What a user calls a job of it: `train.3`, `lab/train-7f3k2`.
    pub(crate) fn id_of(&self, job: &JobSummary) -> String {
        id(self.target.as_deref(), &job.name)
    }

    /// What a user calls it.
    pub(crate) fn id(&self) -> String {
        match &self.members {
            Members::Job(job) => self.id_of(job),
            Members::Sweep { name, .. } => id(self.target.as_deref(), name),
        }
    }

    /// The handle of a job of it; none on this host.
    pub(crate) fn handle_of(&self, job: &JobSummary) -> Option<Handle> {
        self.target.as_ref().map(|target| Handle { target: target.clone(), name: job.name.clone() })
    }

    /// Keeps the reasons of a job of a cluster for its time line.
    pub(crate) fn note_reasons(&self, job: &JobSummary, reasons: &[String]) {
        if let Some(handle) = self.handle_of(job) {
            kept::note_reasons(&handle, job, reasons);
        }
    }

    /// A job that its place cannot find now, but may know.
    pub(crate) fn assumed(handle: &Handle) -> Result<Self> {
        let place = Places::default().open(Some(&handle.target))?;
        let job = JobSummary::new(&handle.name, &handle.name, JobState::Running);
        Ok(Self { target: Some(handle.target.clone()), place, members: Members::Job(Box::new(job)) })
    }

    /// The job; a sweep is an error.
    pub(crate) fn job(&self) -> Result<&JobSummary> {
        self.members.one(&self.id()).map_err(Failure::from)
    }

    /// The target; none for this host.
    pub(crate) fn target(&self) -> Option<&str> {
        self.target.as_deref()
    }

    pub(crate) fn is_elsewhere(&self) -> bool {
        self.target.is_some()
    }

    pub(crate) fn is_sweep(&self) -> bool {
        matches!(self.members, Members::Sweep { .. })
    }
}

/// Places that were opened, by target; that of this host without one.
#[derive(Default)]
pub(crate) struct Places(BTreeMap<Option<String>, Arc<dyn Place>>);

impl Places {
    /// The place of a target, or this host.
    pub(crate) fn open(&mut self, target: Option<&str>) -> Result<Arc<dyn Place>> {
        let place = match self.0.entry(target.map(str::to_owned)) {
            Entry::Occupied(known) => return Ok(Arc::clone(known.get())),
            Entry::Vacant(place) => place,
        };
        Ok(Arc::clone(place.insert(match target {
            Some(target) => Arc::from(open_target(target)?),
            None => Arc::new(open_local()?),
        })))
    }

    /// Finds what a word names.
    pub(crate) fn find(&mut self, word: &JobRef) -> Result<NamedJobs> {
        let (target, name) = match word {
            JobRef::Local(name) => (None, name),
            JobRef::Remote(handle) => (Some(handle.target.clone()), &handle.name),
        };
        let place = self.open(target.as_deref())?;
        let members =
            place.members(name).map_err(|error| unknown(&*place, target.as_deref(), name, error))?;
        Ok(NamedJobs { target, place, members })
    }
}

/// Finds everything that words name, before anything is changed.
pub(crate) fn find(words: &[JobRef]) -> Result<Vec<NamedJobs>> {
    let mut places = Places::default();
    words.iter().map(|word| places.find(word)).collect()
}

/// Does something to the jobs of all words. Those that wait come first, so that none of them starts when another one
/// ends, and the last ones of a sweep before the first. `done` gets each word with the results of its jobs, in their order.
pub(crate) fn change<T: Send>(
    found: &[NamedJobs],
    work: &(dyn Fn(&NamedJobs, &JobSummary) -> Result<T> + Sync),
    done: &(dyn Fn(&NamedJobs, Vec<T>) + Sync),
) -> Result<()> {
    let results: Vec<Mutex<Vec<(usize, T)>>> = found.iter().map(|_| Mutex::default()).collect();
    let all = found.iter().zip(&results).flat_map(|(one, results)| {
        one.members.jobs().iter().enumerate().rev().map(move |(number, job)| (one, number, job, results))
    });
    let (waiting, running): (Vec<_>, Vec<_>) = all.partition(|(_, _, job, _)| job.state.is_waiting());
    for batch in [waiting, running] {
        for_each(&batch, &|(one, number, job, results)| {
            let result = work(one, job)?;
            let mut results = lock(results);
            results.push((*number, result));
            if results.len() == one.members.jobs().len() {
                results.sort_by_key(|(number, _)| *number);
                done(one, results.drain(..).map(|(_, result)| result).collect());
            }
            Ok(())
        })?;
    }
    for one in found.iter().filter(|one| one.members.jobs().is_empty()) {
        done(one, vec![]);
    }
    Ok(())
}

/// Works on several items at a time; an error does not keep the others from being done, and the first is returned.
pub(crate) fn for_each<T: Sync>(items: &[T], work: &(dyn Fn(&T) -> Result<()> + Sync)) -> Result<()> {
    let failed = Mutex::new(None::<Failure>);
    let _ = parallel::for_each(items, MAX_CONCURRENT, |item, _| {
        if let Err(error) = work(item) {
            lock(&failed).get_or_insert(error);
        }
        Ok::<_, ()>(())
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Prints what was done to a job or a sweep: its ID and a word for people, an object for programs.
pub(crate) fn print_done(format: FormatArg, id: &str, what: &str) {
    if format == FormatArg::Json {
        let line = serde_json::json!({"id": id, "done": what});
        terminal::print(&format!("{line}\n"));
    } else {
        terminal::print(&format!("{id}: {what}\n"));
    }
}
