//! `jobc logs`: what tasks print.

use std::process::ExitCode;
use std::time::Duration;

use jobc_job::folder::Folder;
use jobc_job::logs::Choice;
use jobc_job::record::Record;

use super::follow::output::or_end;
use super::follow::printer::Look;
use super::follow::{Follower, Shown};
use super::jobs::{self, Jobs, Result};
use crate::args::FormatArg;
use crate::args::watch::LogsArgs;

pub(crate) fn run(args: &LogsArgs) -> Result<ExitCode> {
    let (folder, record) = Jobs::open()?.record(&args.job)?;
    let tasks = Some(jobs::tasks(&record, &args.tasks)?).filter(|tasks| !tasks.is_empty());
    let choice = Choice::default().tail(args.tail).since(args.since).attempt(args.attempt);
    let look =
        Look { prefix: false, timestamps: args.timestamps, json: args.lines.format == FormatArg::Json };
    let shown = Shown { tasks, choice, ..Shown::default() };
    let mut follower = Follower::new(&[(folder.clone(), record)], &shown, look);
    if args.follow {
        until_the_end(&folder, &mut || follower.wait(&[], PAUSE).map(drop))?;
    }
    or_end(follower.finish());
    Ok(ExitCode::SUCCESS)
}

/// How often to look whether the job has ended.
const PAUSE: Duration = Duration::from_millis(200);

/// Shows a job again and again until it has ended.
pub(super) fn until_the_end(folder: &Folder, show: &mut dyn FnMut() -> std::io::Result<()>) -> Result<()> {
    loop {
        // Gone where the job was removed meanwhile.
        let Some(record) = Record::read(folder)? else { return Ok(()) };
        if record.state.is_final() {
            return Ok(());
        }
        if record.supervisor.is_some_and(|supervisor| !supervisor.is_alive()) {
            // Its last words may be on their way; where it was killed, this says so.
            Jobs::open()?;
        }
        or_end(show());
    }
}
