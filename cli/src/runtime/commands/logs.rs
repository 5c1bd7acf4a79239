//! `jobc logs`: prints the output of tasks.

use std::process::ExitCode;
use std::time::Duration;

use jobc_job::directory::Directory;
use jobc_job::logs::LineFilter;
use jobc_job::record::Record;
use jobc_sys::id::TaskId;

use super::follow::output::or_exit;
use super::follow::printer::LineFormat;
use super::follow::{FollowOptions, Follower};
use super::jobs::{self, Jobs, Result};
use super::newest;
use crate::args::FormatArg;
use crate::runtime::args::watch::LogsArgs;

pub(crate) fn run(args: &LogsArgs) -> Result<ExitCode> {
    let jobs = Jobs::open()?;
    let (subject, tasks) = newest::subject_and_tasks(&jobs, &args.words)?;
    let shown = subject.directories(&jobs).into_iter().map(|directory| {
        let record = jobs::read(&directory)?;
        Ok((directory, record))
    });
    let shown = shown.collect::<Result<Vec<_>>>()?;
    if tasks.len() == args.words.len()
        && let Some((_, record)) = shown.first()
    {
        newest::show_choice(subject.id(), record);
    }
    let tasks = find_tasks(&shown, &tasks)?;
    let choice = LineFilter::default().tail(args.tail).since(args.since).attempt(args.attempt);
    let look =
        LineFormat { prefix: false, timestamps: args.timestamps, json: args.lines.format == FormatArg::Json };
    let options = FollowOptions { tasks, filter: choice, ..FollowOptions::default() };
    let mut follower = Follower::new(&shown, &options, look);
    if args.follow {
        // The jobs of a sweep end in any order; the output of all is shown until the last has ended.
        for (directory, _) in &shown {
            follow_until_end(directory, &mut || follower.wait(&[], POLL_INTERVAL).map(drop))?;
        }
    }
    or_exit(follower.finish());
    Ok(ExitCode::SUCCESS)
}

/// The tasks that words name, in any of the jobs; none if there are no words.
fn find_tasks(shown: &[(Directory, Record)], words: &[String]) -> Result<Option<Vec<TaskId>>> {
    if words.is_empty() {
        return Ok(None);
    }
    let mut found = Vec::new();
    for word in words {
        let mut error = None;
        let before = found.len();
        for (_, record) in shown {
            match jobs::tasks(record, std::slice::from_ref(word)) {
                Ok(tasks) => found.extend(tasks),
                Err(unknown) => error = error.or(Some(unknown)),
            }
        }
        if let Some(error) = error.filter(|_| found.len() == before) {
            return Err(error);
        }
    }
    Ok(Some(found))
}

/// How often to check whether the job has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Shows new output of a job until it has ended.
pub(super) fn follow_until_end(
    directory: &Directory,
    show: &mut dyn FnMut() -> std::io::Result<()>,
) -> Result<()> {
    loop {
        // None if the job was removed meanwhile.
        let Some(record) = Record::read(directory)? else { return Ok(()) };
        if record.state.is_final() {
            return Ok(());
        }
        if record.supervisor.is_some_and(|supervisor| !supervisor.is_alive()) {
            // Its last record may not be written yet. If the supervisor was killed, this recovers the job.
            Jobs::open()?;
        }
        or_exit(show());
    }
}
