//! Shared by the commands about jobs: finding a job, reporting errors, and the text of times.

use std::process::ExitCode;
use std::time::Duration;

use jobc_compiler::suggest;
use jobc_job::directory::{Directory, JobDirectories};
use jobc_job::local_place::{self, LocalPlace};
use jobc_job::record::Record;
use jobc_job::time::Time;
use jobc_place::job_ref::JobRef;
use jobc_sys::error::{Error, Kind};
use jobc_sys::id::TaskId;

use super::subject::{Subject, not_one_job};
use crate::outcome::Outcome;
use crate::runtime::message::{container_error, container_warning};
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
        // A job in another state is an error of the job; everything else is one of the host.
        let outcome = if error.kind == Kind::State { Outcome::Errors } else { Outcome::SystemError };
        Self { code: outcome as u8, error }
    }
}

impl Failure {
    /// The command line names something that does not exist.
    pub(crate) fn usage_error(error: Error) -> Self {
        Self { code: Outcome::UsageError as u8, error }
    }

    /// The message.
    #[cfg(feature = "remote")]
    pub(crate) fn message(&self) -> &str {
        &self.error.message
    }

    /// The kind of the error.
    #[cfg(feature = "remote")]
    pub(crate) fn kind(&self) -> Kind {
        self.error.kind
    }

    /// As above, for a command that exits with the code of a program: its own failures are 125, and 126 and 127 if the
    /// program cannot be executed or does not exist.
    pub(crate) fn with_program_code(self) -> Self {
        Self { code: self.error.exit_code(), ..self }
    }
}

/// The exit code of an error of a place: 2 for what does not exist or cannot be used, 1 for a job in another state.
pub(crate) fn failure(error: Error) -> Failure {
    match error.kind {
        Kind::NotFound | Kind::Config | Kind::Unsupported => Failure::usage_error(error),
        _ => error.into(),
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
        match self.subject(word)? {
            Subject::Job(directory) => Ok(directory),
            Subject::Sweep(sweep) => Err(not_one_job(&sweep)),
        }
    }

    /// The job that a word names, with its record.
    pub(crate) fn record(&self, word: &str) -> Result<(Directory, Record)> {
        let directory = self.find(word)?;
        let record = read(&directory)?;
        Ok((directory, record))
    }
}

/// As [`local`], where the job may be left out.
pub(crate) fn name(job: Option<&JobRef>) -> Result<Option<&str>> {
    job.map(local).transpose()
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

/// The record of a job; an error if the command has not written it yet.
pub(crate) fn read(directory: &Directory) -> Result<Record> {
    Ok(local_place::read(directory)?)
}

/// The tasks that words name: a task, such as `worker-0`, or a role for all its tasks, also one with a matrix.
pub(crate) fn tasks(record: &Record, words: &[String]) -> Result<Vec<TaskId>> {
    let mut found = Vec::new();
    for word in words {
        let is_of_role = |task: &&TaskId| {
            let combination = record.combinations.get(&task.role);
            task.role == *word || combination.is_some_and(|combination| combination.role == *word)
        };
        let of_role = record.tasks.iter().map(|task| &task.task).filter(is_of_role);
        let before = found.len();
        found.extend(of_role.cloned());
        if found.len() == before {
            let task = record.tasks.iter().map(|task| &task.task).find(|task| task.to_string() == *word);
            found.push(task.ok_or_else(|| unknown_task(record, word))?.clone());
        }
    }
    Ok(found)
}

fn unknown_task(record: &Record, word: &str) -> Failure {
    let known: Vec<String> = record.tasks.iter().map(|task| task.task.to_string()).collect();
    let near = suggest::nearest(word, known.iter().map(String::as_str))
        .map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default();
    let message = format!("job `{}` has no task `{}`{near}", record.id, word.escape_debug());
    let known = suggest::list(known.iter().map(String::as_str));
    Failure::usage_error(Error::new(Kind::State, message).help(format!("its tasks are {known}")))
}

/// A value as JSON, indented.
pub(crate) fn json_text(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).expect("what is printed is plain JSON") + "\n"
}

/// A duration for people, in its largest unit and the next one if useful: `45 s`, `3 min`, `2 h 5 min`.
pub(crate) fn format_duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match () {
        () if seconds < 10 => format!("{}.{} s", seconds, time.subsec_millis() / 100),
        () if minutes < 2 => format!("{seconds} s"),
        () if hours < 1 => format!("{minutes} min"),
        () if days < 1 => format!("{hours} h {} min", minutes % 60),
        () if days < 10 => format!("{days} d {} h", hours % 24),
        () => format!("{days} d"),
    }
}

/// The time since a moment, for people.
pub(crate) fn format_ago(time: Time, now: Time) -> String {
    format!("{} ago", format_duration(now.since(time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_at_most_two_units() {
        let shown = |seconds: f64| format_duration(Duration::from_secs_f64(seconds));
        assert_eq!(
            [0.25, 9.99, 10.0, 119.0, 120.0, 3599.0, 3600.0, 86_399.0, 90_000.0, 8_640_000.0].map(shown),
            [
                "0.2 s",
                "9.9 s",
                "10 s",
                "119 s",
                "2 min",
                "59 min",
                "1 h 0 min",
                "23 h 59 min",
                "1 d 1 h",
                "100 d"
            ]
        );
    }
}
