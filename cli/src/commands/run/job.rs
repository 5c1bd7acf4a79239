//! `jobc run JOB`: a whole job on this machine, carried out by a supervisor of its own.
//!
//! The command compiles the job, writes what its supervisor needs into the job's folders and starts it: this program
//! again, in a session of its own. From then on the job is a folder of files; the command only shows what they say,
//! and what a user types ends, passes on or leaves the job.

mod attend;
mod built;
mod compile;
mod dry_run;
mod options;
mod submit;

use std::path::PathBuf;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::Artifact;
use jobc_runtime::admission::ledger::Ledger;
use jobc_runtime::error::Result;
use jobc_runtime::signals::Signals;
use jobc_schema::plan::JobPlan;

use super::OWN_FAILURE;
use crate::args::FormatArg;
use crate::args::run::RunArgs;
use crate::commands::jobs::Jobs;
use crate::commands::stop::exit_code;
use crate::terminal;

/// What is to be carried out: one job, or each of a matrix.
struct Built {
    /// The jobs, in the order of the matrix.
    jobs: Vec<BuiltJob>,
    /// The job file, absolute; the plan's folder where it was built before.
    source: PathBuf,
    /// The folder that relative paths of the job file begin at.
    folder: PathBuf,
    /// Roles with fewer instances than the job file says, with what it says.
    scaled: Vec<(String, u32)>,
}

/// A decided job and the files that `jobc build` makes of it.
struct BuiltJob {
    plan: JobPlan,
    files: Vec<Artifact>,
}

/// Runs a job file; returns how the job ended, by the exit code.
pub(super) fn run_file(args: &RunArgs, path: Option<Utf8PathBuf>, format: FormatArg) -> Result<u8> {
    let jobs = Jobs::open()?;
    match compile::compile(args, path, format, &Ledger::standard(jobs.places())?)? {
        Some(built) => carry_out(args, &built, &jobs),
        None => Ok(OWN_FAILURE),
    }
}

/// Runs the folder of a built plan.
pub(super) fn run_plan(args: &RunArgs, folder: &Utf8Path) -> Result<u8> {
    carry_out(args, &built::read(folder)?, &Jobs::open()?)
}

fn carry_out(args: &RunArgs, built: &Built, jobs: &Jobs) -> Result<u8> {
    if args.dry_run {
        return dry_run::show(args, built, jobs.places()).map(|()| 0);
    }
    // From here on a Ctrl-C is one for the job.
    let signals = Signals::take()?;
    let submitted = submit::submit(args, built, jobs.places())?;
    let mut running = submitted.start(None)?;
    if args.detach {
        for job in &running {
            terminal::print(&format!("{}\n", job.folder.id));
        }
        return Ok(0);
    }
    let seen = attend::Seen { logs: !args.no_logs && !args.quiet, story: !args.quiet };
    let records = attend::attend(jobs, &mut running, &signals, seen)?;
    Ok(match &records[..] {
        [record] => exit_code(record),
        records => records.iter().map(exit_code).max().unwrap_or(OWN_FAILURE),
    })
}
