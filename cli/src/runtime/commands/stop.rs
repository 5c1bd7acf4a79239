//! `jobc stop`, `kill`, `pause`, `resume`, `wait`: requests to the supervisor of a running job, and waiting for its
//! end.

use std::process::ExitCode;

use jobc_job::control::{Connection, Request};
use jobc_job::directory::Directory;
use jobc_job::record::{JobState, Record};
use jobc_sys::error::{Error, Kind};
use jobc_sys::signals::Signal;

use super::follow::job_end::JobEnd;
use super::jobs::{Failure, Jobs, Result, print_done, read, tasks};
use super::newest::{jobs_to_stop, running_or_newest};
use crate::args::FormatArg;
use crate::runtime::args::jobs::{JobsArgs, KillArgs, StopArgs, WaitArgs};
use crate::terminal;

/// Timeout for a killed supervisor to end, in milliseconds.
const KILL_TIMEOUT_MS: u32 = 10_000;

pub(crate) fn stop(args: &StopArgs) -> Result<ExitCode> {
    let jobs = Jobs::open()?;
    let directories = if args.jobs.is_empty() { jobs_to_stop(&jobs)? } else { find_all(&jobs, &args.jobs)? };
    let request = Request::Stop { grace_seconds: args.grace.map(|grace| grace.as_secs()) };
    for directory in &directories {
        // A job that has ended is already stopped.
        if !read(directory)?.state.is_final() {
            send_request(directory, &request)?;
        }
    }
    for directory in &directories {
        if args.no_wait {
            print_done(args.output_args.format, directory, "stopping");
        } else {
            print_end(args.output_args.format, &jobs.wait_for_end(directory)?);
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn kill(args: &KillArgs) -> Result<ExitCode> {
    let jobs = Jobs::open()?;
    let (directory, record) = jobs.record(&args.job)?;
    if args.force {
        print_end(args.output_args.format, &kill_supervisor(&jobs, &directory, &record)?);
        return Ok(ExitCode::SUCCESS);
    }
    let signal = Signal::parse(&args.signal).map_err(Failure::usage_error)?;
    let tasks = tasks(&record, &args.tasks)?;
    let everything = tasks.is_empty() && signal == Signal::KILL;
    send_request(&directory, &Request::Kill { signal: signal.number(), tasks })?;
    if everything {
        print_end(args.output_args.format, &jobs.wait_for_end(&directory)?);
    } else {
        print_done(args.output_args.format, &directory, &format!("sent {signal}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Kills the supervisor: all processes of the job die with it, and the rest is cleaned up like any lost job.
fn kill_supervisor(jobs: &Jobs, directory: &Directory, record: &Record) -> Result<Record> {
    if let Some(process) = record.supervisor
        && let Some(pidfd) = process.open()?
    {
        Signal::KILL.send(&pidfd)?;
        if !process.wait(KILL_TIMEOUT_MS)? {
            let message = format!("the supervisor of job `{}` was killed and still exists", directory.id);
            return Err(Error::new(Kind::System, message)
                .help("it is blocked in the kernel; try again later")
                .into());
        }
    }
    jobs.wait_for_end(directory)
}

/// Ends a job at once, by its supervisor or with it.
pub(super) fn kill_job(jobs: &Jobs, directory: &Directory) -> Result<()> {
    match send_request(directory, &Request::Kill { signal: Signal::KILL.number(), tasks: Vec::new() }) {
        Ok(()) => jobs.wait_for_end(directory).map(drop),
        Err(_) => kill_supervisor(jobs, directory, &read(directory)?).map(drop),
    }
}

pub(crate) fn pause(args: &JobsArgs) -> Result<ExitCode> {
    request_for_each(args, &Request::Pause {}, "paused")
}

pub(crate) fn resume(args: &JobsArgs) -> Result<ExitCode> {
    request_for_each(args, &Request::Resume {}, "resumed")
}

fn request_for_each(args: &JobsArgs, request: &Request, what: &str) -> Result<ExitCode> {
    let jobs = Jobs::open()?;
    for directory in find_all(&jobs, &args.jobs)? {
        send_request(&directory, request)?;
        print_done(args.output_args.format, &directory, what);
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits for the end of jobs; the exit code is that of the first that did not succeed.
pub(crate) fn wait(args: &WaitArgs) -> Result<ExitCode> {
    let jobs = Jobs::open()?;
    let mut code = 0;
    let directories =
        if args.jobs.is_empty() { vec![running_or_newest(&jobs)?.0] } else { find_all(&jobs, &args.jobs)? };
    for directory in directories {
        let record = jobs.wait_for_end(&directory)?;
        print_end(args.output_args.format, &record);
        if let Some(end) = JobEnd::new(&directory, &record)
            && args.output_args.format != FormatArg::Json
        {
            end.print(false);
        }
        if code == 0 {
            code = exit_code(&record);
        }
    }
    Ok(ExitCode::from(code))
}

/// The exit code of `jobc run` for an ended job.
pub(crate) fn exit_code(record: &Record) -> u8 {
    record.end.as_ref().map_or(jobc_oci::RUNTIME_FAILURE_EXIT_CODE, |end| end.exit_code)
}

/// All jobs are found before any is changed.
fn find_all(jobs: &Jobs, words: &[String]) -> Result<Vec<Directory>> {
    words.iter().map(|word| jobs.find(word)).collect()
}

/// Sends a request to a job's supervisor; the error for an ended job has its end.
pub(crate) fn send_request(directory: &Directory, request: &Request) -> Result<()> {
    if let Some(mut connection) = Connection::open(directory)? {
        return Ok(connection.request(directory, request)?);
    }
    let record = read(directory)?;
    let error = if record.state.is_final() {
        let error = Error::new(
            Kind::State,
            format!("job `{}` is {}, not running", directory.id, record.state.as_str()),
        );
        match &record.end {
            Some(end) => error.help(end.explanation.clone()),
            None => error,
        }
    } else {
        Error::new(Kind::State, format!("the supervisor of job `{}` does not respond", directory.id))
            .help(format!("it may be starting; `jobc kill --force {}` kills it", directory.id))
    };
    Err(error.into())
}

/// Prints how a job ended.
fn print_end(format: FormatArg, record: &Record) {
    if format == FormatArg::Json {
        let line = serde_json::json!({"id": record.id, "state": record.state, "end": record.end});
        terminal::print(&format!("{line}\n"));
    } else {
        let explanation = record.end.as_ref().map_or(record.state.as_str(), |end| end.explanation.as_str());
        let line = format!("{}: {}", record.id, crate::table::escape_control(explanation));
        let failed = !matches!(record.state, JobState::Succeeded | JobState::Stopped);
        let (red, plain) =
            if failed && terminal::colors_stdout() { ("\x1b[31m", "\x1b[0m") } else { ("", "") };
        terminal::print(&format!("{red}{line}{plain}\n"));
    }
}
