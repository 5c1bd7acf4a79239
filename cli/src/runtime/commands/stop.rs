//! `jobc stop`, `kill`, `pause`, `resume`, `wait`: requests to the supervisor of a running job, and waiting for its
//! end.

use std::process::ExitCode;

use jobc_compiler::suggest;
use jobc_job::control::{Connection, Request};
use jobc_job::directory::Directory;
use jobc_job::record::{JobState, Record};
use jobc_sys::error::{Error, Kind};
use jobc_sys::id::JobId;
use jobc_sys::signals::Signal;

use super::follow::job_end::JobEnd;
use super::jobs::{Failure, Jobs, Result, print_done, read, tasks};
use super::newest::{jobs_to_stop, only_one, running_or_newest, subject_to_stop};
use super::subject::Subject;
use super::sweep::{count, overall_exit_code};
use crate::args::FormatArg;
use crate::runtime::args::jobs::{KillArgs, PauseArgs, StopArgs, WaitArgs};
use crate::terminal;

/// Maximum number of failed jobs of a sweep whose last output is printed.
const MAX_OUTPUTS: usize = 5;

/// Timeout for a killed supervisor to end, in milliseconds.
const KILL_TIMEOUT_MS: u32 = 10_000;

pub(crate) fn stop(args: &StopArgs) -> Result<ExitCode> {
    let jobs = Jobs::open()?;
    let (subjects, others) = if args.jobs.is_empty() {
        (jobs_to_stop(&jobs)?, vec![])
    } else {
        let found = args.jobs.iter().map(|word| subject_to_stop(&jobs, word));
        let (subjects, others): (_, Vec<_>) = found.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        (subjects, others.concat())
    };
    let request = Request::Stop { grace_seconds: args.grace.map(|grace| grace.as_secs()), interrupt: false };
    for subject in &subjects {
        // The last jobs of a sweep wait for the others: stopped first, they do not start in between.
        for directory in subject.directories(&jobs).iter().rev() {
            // A job that has ended is already stopped; of a sweep, one may end in between.
            if !read(directory)?.state.is_final()
                && let Err(error) = send_request(directory, &request)
                && !(matches!(subject, Subject::Sweep(_)) && read(directory)?.state.is_final())
            {
                return Err(error);
            }
        }
    }
    let format = args.output_args.format;
    for subject in &subjects {
        match subject {
            _ if args.no_wait => print_done(format, subject.id(), "stopping"),
            Subject::Job(directory) => print_end(format, &jobs.wait_for_end(directory)?),
            Subject::Sweep(sweep) => {
                let ends = subject.directories(&jobs);
                let ends = ends.iter().map(|directory| jobs.wait_for_end(directory));
                let records = ends.collect::<Result<Vec<_>>>()?;
                print_done(format, &sweep.id, &count(records.iter().map(|record| record.state.as_str())));
            }
        }
    }
    note_others(others, &subjects);
    Ok(ExitCode::SUCCESS)
}

/// Names the jobs of the same names that still run.
fn note_others(mut others: Vec<JobId>, stopped: &[Subject]) {
    others.retain(|id| stopped.iter().all(|subject| subject.id() != id));
    let ids: Vec<String> = others.iter().map(JobId::to_string).collect();
    let (run, object) = match &ids[..] {
        [] => return,
        [_] => ("runs", "it"),
        _ => ("run", "them"),
    };
    let known = suggest::list(ids.iter().map(String::as_str));
    terminal::eprint(&format!("jobc: {known} still {run}; `jobc stop {}` stops {object}\n", ids.join(" ")));
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
        print_done(args.output_args.format, &directory.id, &format!("sent {signal}"));
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

/// Kills a job, through its supervisor or with it.
pub(super) fn kill_job(jobs: &Jobs, directory: &Directory) -> Result<()> {
    match send_request(directory, &Request::Kill { signal: Signal::KILL.number(), tasks: Vec::new() }) {
        Ok(()) => jobs.wait_for_end(directory).map(drop),
        Err(_) => kill_supervisor(jobs, directory, &read(directory)?).map(drop),
    }
}

pub(crate) fn pause(args: &PauseArgs) -> Result<ExitCode> {
    request_for_each(args, &Request::Pause {}, "paused", JobState::Running)
}

pub(crate) fn resume(args: &PauseArgs) -> Result<ExitCode> {
    request_for_each(args, &Request::Resume {}, "resumed", JobState::Paused)
}

/// Sends a request to jobs; of a sweep, to its jobs in a state. Without names, to the only one in that state.
fn request_for_each(args: &PauseArgs, request: &Request, what: &str, state: JobState) -> Result<ExitCode> {
    let jobs = Jobs::open()?;
    let subjects =
        if args.jobs.is_empty() { vec![only_one(&jobs, state)?] } else { find_all(&jobs, &args.jobs)? };
    for subject in subjects {
        let mut directories = subject.directories(&jobs);
        if let Subject::Sweep(sweep) = &subject {
            let is_meant = |directory: &Directory| Ok::<_, Failure>(read(directory)?.state == state);
            let meant = directories.iter().map(is_meant).collect::<Result<Vec<_>>>()?;
            let mut meant = meant.into_iter();
            directories.retain(|_| meant.next().unwrap_or_default());
            if directories.is_empty() {
                let message = format!("no job of the sweep `{}` is {}", sweep.id, state.as_str());
                return Err(Error::new(Kind::State, message).into());
            }
        }
        for directory in directories {
            send_request(&directory, request)?;
            print_done(args.output_args.format, &directory.id, what);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits for the end of jobs; the exit code is that of the first job or sweep that did not succeed.
pub(crate) fn wait(args: &WaitArgs) -> Result<ExitCode> {
    let jobs = Jobs::open()?;
    let mut code = 0;
    let subjects =
        if args.jobs.is_empty() { vec![running_or_newest(&jobs)?] } else { find_all(&jobs, &args.jobs)? };
    for subject in subjects {
        let directories = subject.directories(&jobs);
        let (mut records, mut failures) = (Vec::with_capacity(directories.len()), 0);
        for directory in &directories {
            let record = jobs.wait_for_end(directory)?;
            print_end(args.output_args.format, &record);
            if let Some(end) = JobEnd::new(directory, &record)
                && args.output_args.format != FormatArg::Json
                && failures < MAX_OUTPUTS
            {
                end.print(false);
                failures += usize::from(record.state != JobState::Succeeded);
            }
            records.push(record);
        }
        if let Subject::Sweep(sweep) = &subject
            && args.output_args.format != FormatArg::Json
        {
            let counts = count(records.iter().map(|record| record.state.as_str()));
            terminal::print(&format!("{}: {counts}\n", sweep.id));
        }
        if code == 0 {
            code = overall_exit_code(&records, records.len());
        }
    }
    Ok(ExitCode::from(code))
}

/// All jobs and sweeps are found before any is changed.
fn find_all(jobs: &Jobs, words: &[String]) -> Result<Vec<Subject>> {
    words.iter().map(|word| jobs.subject(word)).collect()
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

/// Whether text for people on stdout is colored.
fn colors_stdout() -> bool {
    anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
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
        let (red, plain) = if failed && colors_stdout() { ("\x1b[31m", "\x1b[0m") } else { ("", "") };
        terminal::print(&format!("{red}{line}{plain}\n"));
    }
}
