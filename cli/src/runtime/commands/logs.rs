//! `jobc logs`: prints the output of tasks.

use std::process::ExitCode;
use std::time::Duration;

use jobc_job::directory::Directory;
use jobc_job::logs::LineFilter;
use jobc_job::record::Record;

use super::follow::output::or_exit;
use super::follow::printer::LineFormat;
use super::follow::{FollowOptions, Follower};
use super::jobs::{self, Jobs, Result};
use super::newest;
use crate::args::FormatArg;
use crate::runtime::args::watch::LogsArgs;

pub(crate) fn run(args: &LogsArgs) -> Result<ExitCode> {
    let ((directory, record), tasks) = newest::job_and_tasks(&Jobs::open()?, &args.words)?;
    if tasks.len() == args.words.len() {
        newest::show_choice(&record);
    }
    let tasks = Some(jobs::tasks(&record, &tasks)?).filter(|tasks| !tasks.is_empty());
    let choice = LineFilter::default().tail(args.tail).since(args.since).attempt(args.attempt);
    let look =
        LineFormat { prefix: false, timestamps: args.timestamps, json: args.lines.format == FormatArg::Json };
    let shown = FollowOptions { tasks, filter: choice, ..FollowOptions::default() };
    let mut follower = Follower::new(&[(directory.clone(), record)], &shown, look);
    if args.follow {
        follow_until_end(&directory, &mut || follower.wait(&[], POLL_INTERVAL).map(drop))?;
    }
    or_exit(follower.finish());
    Ok(ExitCode::SUCCESS)
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
