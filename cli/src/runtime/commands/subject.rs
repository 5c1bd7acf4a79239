//! What a word of a command names: a job, or a sweep with all of its jobs.

use jobc_compiler::suggest;
use jobc_job::directory::Directory;
use jobc_job::record::Record;
use jobc_job::sweep::Sweep;
use jobc_schema::plural;
use jobc_sys::error::{Error, Kind};
use jobc_sys::id::JobId;

use super::jobs::{Failure, Jobs, Result};

/// A job, or a sweep with all of its jobs.
#[derive(Clone, Debug)]
pub(crate) enum Subject {
    Job(Directory),
    Sweep(Sweep),
}

impl Subject {
    /// The sweep of a job of a sweep; otherwise the job.
    pub(crate) fn of_record(jobs: &Jobs, directory: Directory, record: &Record) -> Self {
        let sweep = record.sweep.as_ref();
        match sweep.and_then(|sweep| Sweep::of_job(jobs.directories(), &directory.id, sweep)) {
            Some(sweep) => Self::Sweep(sweep),
            None => Self::Job(directory),
        }
    }

    /// Its ID.
    pub(crate) fn id(&self) -> &JobId {
        match self {
            Self::Job(directory) => &directory.id,
            Self::Sweep(sweep) => &sweep.id,
        }
    }
}

/// The job of each combination of a sweep; none if it was removed.
pub(crate) fn members<'a>(
    jobs: &'a Jobs,
    sweep: &'a Sweep,
) -> impl Iterator<Item = Option<Directory>> + use<'a> {
    sweep.combinations.iter().map(|combination| {
        let directory = jobs.directories().job(&combination.job);
        directory.record.is_dir().then_some(directory)
    })
}

impl Jobs {
    /// The job or the sweep that a word names: an ID, or a name, which means its newest run.
    pub(crate) fn subject(&self, word: &str) -> Result<Subject> {
        let sweep = self.place.sweep(word)?;
        match (self.directories().find(word), sweep) {
            (Ok(directory), None) => Ok(Subject::Job(directory)),
            (Err(_), Some(sweep)) => Ok(Subject::Sweep(sweep)),
            (Ok(directory), Some(sweep)) => {
                // A job file that got a matrix, or lost it.
                let is_newer = directory.id.run > sweep.id.run;
                Ok(if is_newer { Subject::Job(directory) } else { Subject::Sweep(sweep) })
            }
            (Err(error), None) => Err(self.unknown(word, error)),
        }
    }

    /// The error for a word that names neither, with what may have been meant.
    fn unknown(&self, word: &str, error: Error) -> Failure {
        let mut ids = self.directories().list_sweeps().unwrap_or_default();
        ids.extend(self.directories().list().unwrap_or_default());
        let known: Vec<String> = ids.iter().flat_map(|id| [id.to_string(), id.name.clone()]).collect();
        let near = suggest::nearest(word, known.iter().map(String::as_str));
        Failure::usage_error(match near {
            Some(near) => Error { what: format!("{}; did you mean `{near}`?", error.what), ..error },
            None => error,
        })
    }
}

/// The error of a command that takes one job.
pub(super) fn not_one_job(sweep: &Sweep) -> Failure {
    let id = &sweep.id;
    let count = sweep.combinations.len();
    let jobs = plural(count, "job");
    let error =
        Error::new(Kind::State, format!("`{id}` is a sweep of {jobs}, and this command takes one job"));
    Failure::usage_error(error.help(format!("name one of its jobs; `jobc ps {id}` lists them")))
}
