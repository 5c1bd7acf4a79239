//! `jobc stop`, `kill`, `pause`, `resume`, `wait`: what is asked of a running job's supervisor, and waiting for its end.

use std::process::ExitCode;

use jobc_job::control::{Connection, Request};
use jobc_job::folder::Folder;
use jobc_job::record::Record;
use jobc_sys::error::{Error, Kind};
use jobc_sys::signals::Signal;

use super::jobs::{Failure, Jobs, Result, done, read, tasks};
use crate::args::FormatArg;
use crate::args::jobs::{JobsArgs, KillArgs, StopArgs};
use crate::terminal;

/// How long a killed supervisor may take to be gone, in milliseconds.
const PATIENCE: u32 = 10_000;

pub(crate) fn stop(args: &StopArgs) -> Result<ExitCode> {
    let jobs = Jobs::open()?;
    let folders = all(&jobs, &args.jobs)?;
    let request = Request::Stop { grace_seconds: args.grace.map(|grace| grace.as_secs()) };
    for folder in &folders {
        // One that has ended is what was asked for.
        if !read(folder)?.state.is_final() {
            ask(folder, &request)?;
        }
    }
    for folder in &folders {
        if args.no_wait {
            done(args.jobs.shown.format, folder, "stopping");
        } else {
            tell_end(args.jobs.shown.format, &jobs.wait_for_end(folder)?);
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn kill(args: &KillArgs) -> Result<ExitCode> {
    let jobs = Jobs::open()?;
    let (folder, record) = jobs.record(&args.job)?;
    if args.force {
        tell_end(args.shown.format, &force(&jobs, &folder, &record)?);
        return Ok(ExitCode::SUCCESS);
    }
    let signal = Signal::parse(&args.signal).map_err(Failure::wrong_use)?;
    let tasks = tasks(&record, &args.tasks)?;
    let everything = tasks.is_empty() && signal == Signal::KILL;
    ask(&folder, &Request::Kill { signal: signal.number(), tasks })?;
    if everything {
        tell_end(args.shown.format, &jobs.wait_for_end(&folder)?);
    } else {
        done(args.shown.format, &folder, &format!("sent {signal}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Kills the supervisor: everything of the job dies with it, and what is left is cleaned up as of any lost job.
fn force(jobs: &Jobs, folder: &Folder, record: &Record) -> Result<Record> {
    if let Some(process) = record.supervisor
        && let Some(pidfd) = process.open()?
    {
        Signal::KILL.send(&pidfd)?;
        if !process.wait(PATIENCE)? {
            let message = format!("the supervisor of job `{}` was killed and is not gone", folder.id);
            return Err(Error::new(Kind::Machine, message)
                .help("it waits for the kernel; try again later")
                .into());
        }
    }
    jobs.wait_for_end(folder)
}

/// Ends a job at once, by its supervisor or with it.
pub(super) fn end_now(jobs: &Jobs, folder: &Folder) -> Result<()> {
    match ask(folder, &Request::Kill { signal: Signal::KILL.number(), tasks: Vec::new() }) {
        Ok(()) => jobs.wait_for_end(folder).map(drop),
        Err(_) => force(jobs, folder, &read(folder)?).map(drop),
    }
}

pub(crate) fn pause(args: &JobsArgs) -> Result<ExitCode> {
    each(args, &Request::Pause {}, "paused")
}

pub(crate) fn resume(args: &JobsArgs) -> Result<ExitCode> {
    each(args, &Request::Resume {}, "resumed")
}

fn each(args: &JobsArgs, request: &Request, what: &str) -> Result<ExitCode> {
    let jobs = Jobs::open()?;
    for folder in all(&jobs, args)? {
        ask(&folder, request)?;
        done(args.shown.format, &folder, what);
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits for the end of jobs; the exit code is that of the first that did not end well.
pub(crate) fn wait(args: &JobsArgs) -> Result<ExitCode> {
    let jobs = Jobs::open()?;
    let mut code = 0;
    for folder in all(&jobs, args)? {
        let record = jobs.wait_for_end(&folder)?;
        tell_end(args.shown.format, &record);
        if code == 0 {
            code = exit_code(&record);
        }
    }
    Ok(ExitCode::from(code))
}

/// What `jobc run` exits with for a job that has ended.
pub(crate) fn exit_code(record: &Record) -> u8 {
    record.end.as_ref().map_or(jobc_oci::OWN_FAILURE, |end| end.exit_code)
}

/// Every job is found before anything is done to one.
fn all(jobs: &Jobs, args: &JobsArgs) -> Result<Vec<Folder>> {
    args.jobs.iter().map(|word| jobs.find(word)).collect()
}

/// Asks a job's supervisor; a job that has none is told how it ended.
pub(crate) fn ask(folder: &Folder, request: &Request) -> Result<()> {
    if let Some(mut connection) = Connection::open(folder)? {
        return Ok(connection.ask(folder, request)?);
    }
    let record = read(folder)?;
    let error = if record.state.is_final() {
        let error =
            Error::new(Kind::State, format!("job `{}` is {}, not running", folder.id, record.state.as_str()));
        match &record.end {
            Some(end) => error.help(end.explanation.clone()),
            None => error,
        }
    } else {
        Error::new(Kind::State, format!("the supervisor of job `{}` does not answer", folder.id))
            .help(format!("it may be just beginning; `jobc kill --force {}` ends it", folder.id))
    };
    Err(error.into())
}

/// Says how a job ended.
fn tell_end(format: FormatArg, record: &Record) {
    if format == FormatArg::Json {
        let line = serde_json::json!({"id": record.id, "state": record.state, "end": record.end});
        terminal::print(&format!("{line}\n"));
    } else {
        let explanation = record.end.as_ref().map_or(record.state.as_str(), |end| end.explanation.as_str());
        terminal::print(&format!("{}: {}\n", record.id, crate::table::visible(explanation)));
    }
}
