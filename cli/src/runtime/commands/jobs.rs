//! Shared by the commands about jobs: finding a job, reporting errors, and the text of times.

use std::process::ExitCode;

use jobc_compiler::suggest;
use jobc_job::directory::{Directory, JobDirectories};
use jobc_job::local_place::LocalPlace;
use jobc_job::record::Record;
use jobc_place::Place;
use jobc_place::job_ref::JobRef;
use jobc_place::members::Members;
use jobc_sys::error::{Error, Kind};

pub(crate) use jobc_place::time::{format_ago, format_duration};

use crate::args::FormatArg;
use crate::outcome::Outcome;
use crate::runtime::message::{container_error, container_warning};
use crate::table::Table;
use crate::terminal;

/// The jobs of this user.
pub(crate) struct Jobs {
    pub(crate) place: LocalPlace,
}

/// The error of a command about jobs.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    error: Error,
}

/// A result of a command about jobs.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { code: error.kind.exit_codes().of_job, error }
    }
}

impl Failure {
    /// The command line names something that does not exist.
    pub(crate) fn usage_error(error: Error) -> Self {
        Self { code: Outcome::UsageError as u8, error }
    }

    /// Whether the job is unknown, or its name means something else.
    pub(crate) fn is_about_the_job(&self) -> bool {
        matches!(self.error.kind, Kind::NotFound | Kind::Config)
    }

    /// The message.
    pub(crate) fn message(&self) -> String {
        self.error.message()
    }

    /// The kind of the error.
    pub(crate) fn kind(&self) -> Kind {
        self.error.kind
    }

    /// As above, for a command that exits with the code of a program: its own failures are 125, and 126 and 127 if the
    /// program cannot be executed or does not exist.
    pub(crate) fn with_program_code(self) -> Self {
        Self { code: self.error.exit_code(), ..self }
    }

    /// The error, for a command with exit codes of its own.
    pub(crate) fn into_error(self) -> Error {
        self.error
    }
}

/// The exit code of a command, whose failure is printed.
pub(crate) fn into_exit_code(result: Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|failure| {
        terminal::eprint(&container_error(&failure.error));
        ExitCode::from(failure.code)
    })
}

/// This host as a place; what is wrong with jobs of it is printed.
pub(crate) fn open_local() -> std::result::Result<LocalPlace, Error> {
    LocalPlace::open(|text| terminal::eprint(&container_warning(text)))
}

impl Jobs {
    /// Opens the directories of this user. Jobs whose supervisor was killed are first recovered and reported as lost.
    pub(crate) fn open() -> std::result::Result<Self, Error> {
        open_local().map(|place| Self { place })
    }

    /// The directories.
    pub(crate) fn directories(&self) -> &JobDirectories {
        self.place.directories()
    }

    /// The job that a word names: an id, or a name, which means its newest run. An error for a sweep.
    pub(crate) fn find(&self, word: &str) -> Result<Directory> {
        let members = self.place.members(word).map_err(|error| unknown(&self.place, None, word, error))?;
        let id = if let Members::Sweep { name, .. } = &members { name } else { word };
        Ok(self.directories().find(&members.one(id)?.name)?)
    }

    /// The job that a word names, with its record.
    pub(crate) fn record(&self, word: &str) -> Result<(Directory, Record)> {
        let directory = self.find(word)?;
        let record = read(&directory)?;
        Ok((directory, record))
    }
}

/// The name of a job of this host; an error for one at a target.
pub(crate) fn local(job: &JobRef) -> Result<&str> {
    match job {
        JobRef::Local(name) => Ok(name),
        JobRef::Remote(handle) => {
            let message =
                format!("`{handle}` is a job on a cluster, and this command takes jobs of this host");
            Err(Failure::usage_error(Error::new(Kind::Unsupported, message)))
        }
    }
}

/// What a user calls a job of a target, or of this host.
pub(crate) fn id(target: Option<&str>, name: &str) -> String {
    target.map_or_else(|| name.to_owned(), |target| format!("{target}/{name}"))
}

/// The error for a name that is not found, with what may have been meant.
pub(super) fn unknown(place: &dyn Place, target: Option<&str>, name: &str, error: Error) -> Failure {
    if error.kind != Kind::NotFound {
        return Failure::from(error);
    }
    let jobs = place.list().unwrap_or_default();
    let mut known: Vec<&str> = jobs.iter().flat_map(|job| [job.name.as_str(), job.job.as_str()]).collect();
    let sweeps: Vec<String> = jobs.iter().filter_map(|job| Some(job.sweep.as_ref()?.to_string())).collect();
    known.extend(sweeps.iter().flat_map(|id| [id.as_str(), id.split('.').next().unwrap_or_default()]));
    known.sort_unstable();
    known.dedup();
    Failure::from(match suggest::nearest(name, known) {
        Some(near) => {
            Error { what: format!("{}; did you mean `{}`?", error.what, id(target, near)), ..error }
        }
        None => error,
    })
}

/// The record of a job; an error if the command has not written it yet.
pub(crate) fn read(directory: &Directory) -> Result<Record> {
    Ok(Record::require(directory)?)
}

/// Prints a list for programs, or as a table.
pub(crate) fn print_list(format: FormatArg, list: &impl serde::Serialize, table: impl FnOnce() -> Table) {
    terminal::print(&match format {
        FormatArg::Json => json_text(list),
        _ => table().render(terminal::columns_of_stdout()),
    });
}

/// A value as JSON, indented.
pub(crate) fn json_text(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).expect("what is printed is plain JSON") + "\n"
}
