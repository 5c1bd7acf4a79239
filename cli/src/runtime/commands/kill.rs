//! `jobc kill`: sends a signal to tasks of a job of this host.

use std::process::ExitCode;

use jobc_job::control::Request;
use jobc_job::local_place::{self, named_tasks, send};
use jobc_place::job_ref::JobRef;
use jobc_sys::error::{Error, Kind};
use jobc_sys::signals::Signal;

use super::found::print_done;
use super::job_end_line;
use super::jobs::{Failure, Jobs, Result};
use crate::runtime::args::jobs::KillArgs;

pub(crate) fn kill(args: &KillArgs) -> Result<ExitCode> {
    let JobRef::Local(word) = &args.job else {
        let message = format!("`jobc kill` does not apply to jobs on clusters, such as `{}`", args.job);
        let help = format!("`jobc stop {0}` ends it, `jobc exec {0} TASK -- kill` sends a signal", args.job);
        return Err(Failure::usage_error(Error::new(Kind::Unsupported, message).help(help)));
    };
    let jobs = Jobs::open()?;
    let (directory, record) = jobs.record(word)?;
    let (format, id) = (args.output_args.format, directory.id.to_string());
    if args.force {
        let record = jobs.place.kill_supervisor(&directory)?;
        job_end_line::print(format, &id, &local_place::summary(&record));
        return Ok(ExitCode::SUCCESS);
    }
    let signal = Signal::parse(&args.signal).map_err(Failure::usage_error)?;
    let tasks = match &args.tasks[..] {
        [] => vec![],
        words => named_tasks(&record, words)?,
    };
    let everything = tasks.is_empty() && signal == Signal::KILL;
    send(&directory, &Request::Kill { signal: signal.number(), tasks })?;
    if everything {
        let record = jobs.place.wait_for_end(&directory)?;
        job_end_line::print(format, &id, &local_place::summary(&record));
    } else {
        print_done(format, &id, &format!("sent {signal}"));
    }
    Ok(ExitCode::SUCCESS)
}
