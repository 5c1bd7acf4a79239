//! `jobc pause` and `jobc resume`: hold jobs back, and let them go on.

use std::process::ExitCode;

use jobc_place::job::JobSummary;
use jobc_place::state::JobState;
use jobc_sys::error::{Error, Kind};

use super::found::{self, NamedJobs, print_done};
use super::jobs::Result;
use super::newest::only_one;
use crate::runtime::args::jobs::PauseArgs;

/// What becomes of the jobs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    Pause,
    Suspend,
    Resume,
}

pub(crate) fn pause(args: &PauseArgs) -> Result<ExitCode> {
    hold(args, Hold::Pause)
}

pub(crate) fn suspend(args: &PauseArgs) -> Result<ExitCode> {
    hold(args, Hold::Suspend)
}

pub(crate) fn resume(args: &PauseArgs) -> Result<ExitCode> {
    hold(args, Hold::Resume)
}

/// Holds jobs, or lets them go on: of a sweep those that can be; without names the only one that can be.
fn hold(args: &PauseArgs, what: Hold) -> Result<ExitCode> {
    let hold = what != Hold::Resume;
    let found = if args.jobs.is_empty() {
        let state = if hold { JobState::Running } else { JobState::Paused };
        vec![only_one(state)?]
    } else {
        found::find(&args.jobs)?
    };
    let is_meant = |job: &JobSummary| match job.state {
        JobState::Paused | JobState::Suspended => !hold,
        // Of a sweep, those that wait here have nothing to hold yet.
        JobState::Queued | JobState::Preparing => false,
        state => !state.is_final() && hold,
    };
    let has_none = |one: &&NamedJobs| one.is_sweep() && !one.members.jobs().iter().any(is_meant);
    if let Some(one) = found.iter().find(has_none) {
        let what = if hold { "running" } else { "paused" };
        return Err(Error::new(Kind::State, format!("no job of the sweep `{}` is {what}", one.id())).into());
    }
    found::change(
        &found,
        &|one, job| {
            if one.is_sweep() && !is_meant(job) {
                return Ok(None);
            }
            if job.state.is_final() {
                let message = format!("job `{}` {}", one.id_of(job), job.state.clause());
                let error = Error::new(Kind::State, message);
                return Err(match &job.end {
                    Some(end) => error.help(end.explanation.clone()),
                    None => error,
                }
                .into());
            }
            match what {
                Hold::Suspend => one.place.suspend(&job.name)?,
                Hold::Pause | Hold::Resume => one.place.hold(&job.name, hold)?,
            }
            Ok(Some(one.id_of(job)))
        },
        &|_, done| {
            for id in done.iter().flatten() {
                let done = match what {
                    Hold::Pause => "paused",
                    Hold::Suspend => "suspended",
                    Hold::Resume => "resumed",
                };
                print_done(args.output_args.format, id, done);
            }
        },
    )?;
    Ok(ExitCode::SUCCESS)
}
