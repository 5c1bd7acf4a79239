//! The commands about jobs on clusters: `submit`, `targets`, and those that accept a handle, `TARGET/NAME`.

mod control;
mod exec;
mod follow;
mod free;
mod handle;
mod jobs;
mod listing;
mod logs;
mod members;
mod report;
mod submit;
mod target;
mod targets;
mod task_access;
mod usage;
mod wait;

use std::process::ExitCode;

use jobc_remote::Handle;

use super::jobs::Result;
use crate::runtime::args::jobs::JobCommand;
use handle::of_handles;

pub(crate) use submit::submit;
pub(crate) use targets::targets;

/// Runs a command if it is about jobs on clusters.
pub(crate) fn run(command: &JobCommand) -> Option<Result<ExitCode>> {
    let is_handle = |word: &Option<String>| word.as_deref().is_some_and(Handle::is_meant);
    match command {
        JobCommand::Ps(args) if args.target.is_some() || args.all_targets => Some(jobs::list(args)),
        JobCommand::Ps(args) if is_handle(&args.job) => Some(jobs::tasks(args)),
        JobCommand::Inspect(args) if is_handle(&args.job) => Some(jobs::inspect(args)),
        JobCommand::Events(args) if is_handle(&args.job) => Some(jobs::events(args)),
        JobCommand::Logs(args) if args.words.first().is_some_and(|word| Handle::is_meant(word)) => {
            Some(logs::run(args))
        }
        JobCommand::Report(args) if is_handle(&args.job) => Some(report::run(args)),
        JobCommand::Top(args) | JobCommand::Stats(args) => {
            of_handles(&args.jobs).map(|handles| usage::run(args, &handles?))
        }
        JobCommand::Exec(args) if args.words.first().is_some_and(|word| Handle::is_meant(word)) => {
            Some(exec::run(args))
        }
        JobCommand::PortForward(args) if Handle::is_meant(&args.job) => Some(task_access::port_forward(args)),
        JobCommand::Copy(args) if Handle::is_meant(&args.job) => Some(task_access::copy(args)),
        JobCommand::Wait(args) => of_handles(&args.jobs).map(|handles| jobs::wait(args, &handles?)),
        JobCommand::Stop(args) => of_handles(&args.jobs).map(|handles| control::stop(args, &handles?)),
        JobCommand::Pause(args) => of_handles(&args.jobs).map(|handles| control::hold(args, &handles?, true)),
        JobCommand::Resume(args) => {
            of_handles(&args.jobs).map(|handles| control::hold(args, &handles?, false))
        }
        JobCommand::Rm(args) => of_handles(&args.jobs.jobs).map(|handles| control::remove(args, &handles?)),
        _ => None,
    }
}
