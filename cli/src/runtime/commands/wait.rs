//! `jobc wait`: waits for the end of jobs, and says meanwhile why they do not run.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use jobc_place::job::JobSummary;
use jobc_place::state::JobState;

use super::follow::job_end::JobEnd;
use super::found::{self, NamedJobs};
use super::job_end_line;
use super::jobs::{Failure, Jobs, Result};
use super::newest::running_or_newest;
use super::sweep::{count, overall_exit_code};
use crate::args::FormatArg;
use crate::runtime::args::jobs::WaitArgs;
use crate::runtime::notice;
use crate::table::escape_control;
use crate::terminal;
use jobc_job::notice::sentence;

/// Maximum number of failed jobs of a sweep whose last output is printed.
const MAX_OUTPUTS: usize = 5;

/// How long a job may wait before the reason is queried, and the interval between queries.
const INTERVALS: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(15)];

/// The exit code when the time is over: EX_TEMPFAIL of sysexits.h, which no job has.
const NOT_ENDED: i32 = 75;

/// Waits for the end of jobs; the exit code is that of the first job or sweep that did not succeed.
pub(crate) fn wait(args: &WaitArgs) -> Result<ExitCode> {
    start_clock(args);
    let found = if args.jobs.is_empty() { vec![running_or_newest()?] } else { found::find(&args.jobs)? };
    let format = args.output_args.format;
    let mut code = 0;
    for one in &found {
        let mut ends: Vec<JobSummary> = Vec::new();
        for job in one.members.jobs() {
            let Some(end) = wait_for(one, job)? else { continue };
            if args.notify {
                notice::show(&one.id_of(job), &sentence(end.state.as_str(), &end.end_text()));
            }
            job_end_line::print(format, &one.id_of(job), &end);
            // The last lines of a job of this host end with it.
            if let Some(verdict) = job_end_line::verdict(&end).filter(|_| one.handle_of(job).is_some()) {
                terminal::eprint(&format!("jobc: {}: {verdict}\n", one.id_of(job)));
            }
            let failures = ends.iter().filter(|end| end.state != JobState::Succeeded).count();
            if format != FormatArg::Json && failures < MAX_OUTPUTS && one.handle_of(job).is_none() {
                print_last_output(&job.name)?;
            }
            ends.push(end);
        }
        if one.is_sweep() && format != FormatArg::Json {
            let counts = count(ends.iter().map(|end| end.state.as_str()));
            terminal::print(&format!("{}: {counts}\n", one.id()));
        }
        if code == 0 {
            let codes: Vec<u8> = ends.iter().map(JobSummary::exit_code).collect();
            code = overall_exit_code(&codes, codes.len());
        }
    }
    Ok(ExitCode::from(code))
}

/// The last lines of the task that decided the end of a job of this host.
fn print_last_output(id: &str) -> Result<()> {
    let (directory, record) = Jobs::open()?.record(id)?;
    if let Some(end) = JobEnd::of_record(&directory, &record) {
        end.print(false);
    }
    Ok(())
}

/// Ends this command, and nothing else, if the jobs have not ended in time.
fn start_clock(args: &WaitArgs) {
    let Some(timeout) = args.timeout else { return };
    let names = args.jobs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let what = if names.is_empty() { "the job".to_owned() } else { names };
    std::thread::spawn(move || {
        std::thread::sleep(timeout);
        terminal::eprint(&format!("jobc: {what}: not ended after {}\n", humantime::format_duration(timeout)));
        // The others only wait.
        std::process::exit(NOT_ENDED);
    });
}

/// Waits until a job has ended; its reasons to wait are printed on stderr, each once.
fn wait_for(one: &NamedJobs, job: &JobSummary) -> Result<Option<JobSummary>> {
    let (place, id) = (&*one.place, one.id_of(job));
    let is_waiting = AtomicBool::new(false);
    let (ended, receiver) = channel::<()>();
    let end = std::thread::scope(|scope| {
        scope.spawn(|| {
            let receiver = receiver;
            let mut shown = BTreeSet::new();
            let mut interval = INTERVALS[0];
            while receiver.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                if !is_waiting.load(Ordering::Relaxed) {
                    continue;
                }
                interval = INTERVALS[1];
                // Failed queries are repeated later.
                let reasons = place.reasons(&job.name).unwrap_or_default();
                if !reasons.is_empty() {
                    one.note_reasons(job, &reasons);
                }
                for reason in reasons {
                    if shown.insert(reason.clone()) {
                        terminal::eprint(&format!("{id}: {}\n", escape_control(&reason)));
                    }
                }
            }
        });
        let end = place.wait(&job.name, &mut |job| {
            is_waiting.store(job.is_short || job.state.is_waiting(), Ordering::Relaxed);
            ControlFlow::Continue(())
        });
        drop(ended);
        end
    });
    end.map_err(Failure::from)
}
