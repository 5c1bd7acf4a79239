//! `jobc stop`, `pause`, `resume` and `rm` of jobs on clusters.

use std::ops::ControlFlow;
use std::process::ExitCode;

use jobc_remote::place::{JobState, JobSummary, LogItem, LogRequest};
use jobc_remote::{Handle, Place};
use jobc_sys::error::{Error, Kind};
use serde_json::json;

use super::handle::failure;
use super::members::{self, Members};
use super::target::TargetTable;
use crate::args::FormatArg;
use crate::runtime::args::jobs::{PauseArgs, RmArgs, StopArgs};
use crate::runtime::commands::jobs::{Failure, Result};
use crate::runtime::kept::{self, KeptOutput};
use crate::runtime::message::container_warning;
use crate::terminal;

/// The output of a job with more tasks is not kept when the job is stopped.
const MAX_KEPT_TASKS: u64 = 100;

pub(super) fn stop(args: &StopArgs, handles: &[Handle]) -> Result<ExitCode> {
    if args.grace.is_some() {
        let error = Error::new(Kind::Unsupported, "`--grace` does not apply to jobs on clusters");
        return Err(Failure::usage_error(error.help("set `grace_period` in the job file")));
    }
    for_each(
        handles,
        |target, place, job| {
            if job.state.is_final() {
                return Ok(format!("{} already", job.state.as_str()));
            }
            if !place.keeps_output() && job.state == JobState::Running && job.tasks.wanted <= MAX_KEPT_TASKS {
                keep_output(place, &Handle { target: target.to_owned(), name: job.name.clone() });
            }
            place.stop(&job.name, !args.no_wait).map_err(failure)?;
            Ok(if args.no_wait { "stopping" } else { "stopped" }.to_owned())
        },
        args.output_args.format,
    )
}

/// Keeps the output up to now of a job whose place deletes it with the tasks. A job is stopped even if it cannot be
/// kept.
fn keep_output(place: &dyn Place, run: &Handle) {
    let Some(mut kept) = KeptOutput::open(run) else { return };
    let read = place.logs(&run.name, &LogRequest::default(), &mut |item| {
        if let LogItem::Line { task, attempt, time, text } = item {
            kept.add(task, attempt, time, text);
        }
        ControlFlow::Continue(())
    });
    kept.flush();
    if let Err(error) = read {
        terminal::eprint(&container_warning(&format!(
            "the output of `{run}` is not kept: {}",
            error.message
        )));
    }
}

pub(super) fn remove(args: &RmArgs, handles: &[Handle]) -> Result<ExitCode> {
    for_each(
        handles,
        |target, place, job| {
            if !job.state.is_final() && !args.force {
                let error =
                    Error::new(Kind::State, format!("job `{target}/{}` is {}", job.name, job.state.as_str()));
                return Err(error.help("stop it first with `jobc stop`, or remove it with `--force`").into());
            }
            place.delete(&job.name).map_err(failure)?;
            kept::forget(&Handle { target: target.to_owned(), name: job.name.clone() });
            Ok("removed".to_owned())
        },
        args.jobs.output_args.format,
    )
}

/// Holds jobs back, or lets them go on.
pub(super) fn hold(args: &PauseArgs, handles: &[Handle], hold: bool) -> Result<ExitCode> {
    for_each(
        handles,
        |target, place, job| {
            if job.state.is_final() {
                let error =
                    Error::new(Kind::State, format!("job `{target}/{}` is {}", job.name, job.state.as_str()));
                return Err(error.into());
            }
            place.hold(&job.name, hold).map_err(failure)?;
            Ok(if hold { "paused" } else { "resumed" }.to_owned())
        },
        args.output_args.format,
    )
}

/// Finds all jobs before any is changed, and prints what was done to each. Those that wait come first, so that none of
/// them starts when another one ends.
fn for_each(
    handles: &[Handle],
    change: impl Fn(&str, &dyn Place, &JobSummary) -> Result<String> + Sync,
    format: FormatArg,
) -> Result<ExitCode> {
    let table = TargetTable::read(None)?;
    let mut places = Vec::new();
    for handle in handles {
        let place = table.place(&handle.target)?;
        let jobs = Members::find(&*place, handle).map_err(failure)?.into_jobs();
        places.push((handle, place, jobs));
    }
    let found = places.iter().flat_map(|(handle, place, jobs)| {
        jobs.iter().map(move |job| (handle.target.as_str(), &**place, job))
    });
    let (running, waiting): (Vec<_>, Vec<_>) = found.partition(|(_, _, job)| job.state == JobState::Running);
    for jobs in [waiting, running] {
        members::for_each(&jobs, &|(target, place, job)| {
            let done = change(target, *place, job)?;
            let id = format!("{target}/{}", job.name);
            terminal::print(&if format == FormatArg::Json {
                format!("{}\n", json!({"id": id, "done": done}))
            } else {
                format!("{id}: {done}\n")
            });
            Ok(())
        })?;
    }
    Ok(ExitCode::SUCCESS)
}
