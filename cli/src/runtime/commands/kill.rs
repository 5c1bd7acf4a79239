//! `jobc kill`: sends a signal to tasks of a job, at any place.

use std::process::ExitCode;

use jobc_place::logs::LogItem;
use jobc_place::stop::KillRequest;
use jobc_sys::signals::Signal;

use super::found::{Places, print_done};
use super::job_end_line;
use super::jobs::{Failure, Result};
use super::stop::keep;
use crate::runtime::args::jobs::KillArgs;
use crate::runtime::kept::KeptOutput;

pub(crate) fn kill(args: &KillArgs) -> Result<ExitCode> {
    let found = Places::default().find(&args.job)?;
    let (name, id) = (&found.job()?.name, found.id());
    let signal = Signal::parse(&args.signal).map_err(Failure::usage_error)?;
    let mut kept = found.handle_of(found.job()?).as_ref().and_then(KeptOutput::open);
    let mut keep = |item: LogItem<'_>| keep(kept.as_mut(), &id, &item);
    let request = KillRequest { signal, tasks: &args.tasks, force: args.force, keep: Some(&mut keep) };
    let ends_job = request.ends_job();
    let end = found.place.kill(name, request)?;
    kept.iter_mut().for_each(KeptOutput::flush);
    let format = args.output_args.format;
    match end.filter(|end| end.end.is_some()) {
        Some(end) => job_end_line::print(format, &id, &end),
        None if ends_job => print_done(format, &id, "killed"),
        None => print_done(format, &id, &format!("sent {signal}")),
    }
    Ok(ExitCode::SUCCESS)
}
