//! The commands about jobs on clusters: `submit`, `targets`, and those that accept a handle, `TARGET/NAME`.

mod compared;
mod exec;
mod follow;
mod free;
mod handle;
mod jobs;
mod logs;
mod report;
mod submit;
mod targets;
mod task_access;
mod usage;

use std::process::ExitCode;

use jobc_place::job_ref::{Handle, JobRef};

use super::jobs::Result;
use crate::runtime::args::jobs::JobCommand;

pub(super) use jobs::tasks;
pub(crate) use submit::submit;
pub(crate) use targets::targets;

/// Runs a command if it is about jobs on clusters.
pub(crate) fn run(command: &JobCommand) -> Option<Result<ExitCode>> {
    let is_handle = |words: &[String]| words.first().is_some_and(|word| JobRef::is_handle(word));
    match command {
        JobCommand::Inspect(args) => Some(jobs::inspect(args, remote(args.job.as_ref())?)),
        JobCommand::Events(args) => Some(jobs::events(args, remote(args.job.as_ref())?)),
        JobCommand::Logs(args) => is_handle(&args.words).then(|| logs::run(args)),
        JobCommand::Report(args) => Some(report::run(args, remote(args.job.as_ref())?)),
        JobCommand::Top(args) | JobCommand::Stats(args) => {
            let handle = args.jobs.iter().find_map(|job| remote(Some(job)))?;
            Some(usage::run(args, handle))
        }
        JobCommand::Exec(args) => is_handle(&args.words).then(|| exec::run(args)),
        JobCommand::PortForward(args) => Some(task_access::port_forward(args, remote(Some(&args.job))?)),
        JobCommand::Copy(args) => Some(task_access::copy(args, remote(Some(&args.job))?)),
        _ => None,
    }
}

/// The handle that a job is named by, if it is at a target.
fn remote(job: Option<&JobRef>) -> Option<&Handle> {
    match job? {
        JobRef::Local(_) => None,
        JobRef::Remote(handle) => Some(handle),
    }
}
