//! The list of jobs: those of this host, of a target, or of all.

use std::process::ExitCode;

use jobc_place::Place as _;
use jobc_place::job::JobSummary;
use jobc_place::output::ListedJob;
use jobc_place::progress::Progress;
use jobc_place::time::Time;

use super::jobs::{Result, format_ago, format_duration, id, json_text, open_local};
use super::target_table;

use crate::args::FormatArg;
use crate::runtime::args::jobs::PsArgs;
use crate::table::Table;
use crate::terminal;

/// A job, and its target if it is not on this host.
pub(crate) type Listed = (Option<String>, JobSummary);

/// Prints the jobs.
pub(super) fn print(args: &PsArgs) -> Result<ExitCode> {
    let mut found: Vec<Listed> = Vec::new();
    if args.target.is_none() {
        found.extend(open_local()?.list()?.into_iter().map(|job| (None, job)));
    }
    if args.target.is_some() || args.all_targets {
        let error = target_table::list(args.target.as_deref(), &mut found)?;
        if let Some(error) = error.filter(|_| found.is_empty()) {
            return Err(error);
        }
    }
    found.retain(|(_, job)| args.all || !job.state.is_final());
    terminal::print(&text(args, &found));
    Ok(ExitCode::SUCCESS)
}

/// The text of a list, in the format that is asked for.
pub(crate) fn text(args: &PsArgs, found: &[Listed]) -> String {
    let id_of = |(target, job): &Listed| id(target.as_deref(), &job.name);
    match args.output_args.format {
        FormatArg::Json => {
            let ids: Vec<String> = found.iter().map(id_of).collect();
            let jobs = ids.iter().zip(found).map(|(id, (_, job))| ListedJob::new(id, job));
            json_text(&jobs.collect::<Vec<_>>())
        }
        _ if args.quiet => found.iter().map(|job| format!("{}\n", id_of(job))).collect(),
        _ => table(found, Time::now()).render(terminal::columns_of_stdout()),
    }
}

fn table(found: &[Listed], now: Time) -> Table {
    // Jobs of this host are this user's.
    let user = found.iter().any(|(_, job)| job.user.is_some()).then_some("USER");
    let progress = found.iter().any(|(_, job)| job.progress.is_some()).then_some("PROGRESS");
    let headings = ["JOB", "STATE", "TASKS"].into_iter().chain(user).chain(["SUBMITTED", "RAN"]);
    let headings = headings.chain(progress).chain(["END"]);
    let mut table = Table::new(headings);
    for (target, job) in found {
        let started = job.started;
        let ended = job.ended;
        let mut cells = vec![id(target.as_deref(), &job.name), state_text(job), job.tasks_text()];
        cells.extend(user.map(|_| job.user.clone().unwrap_or_default()));
        cells.extend([
            job.submitted.map(|at| format_ago(at, now)).unwrap_or_default(),
            started.map(|started| format_duration(ended.unwrap_or(now).since(started))).unwrap_or_default(),
        ]);
        cells.extend(progress.map(|_| job.progress.as_ref().map(Progress::text).unwrap_or_default()));
        cells.push(job.cause().to_owned());
        table.row(cells);
    }
    table
}

/// The state of a job, and whether its submission is complete.
pub(crate) fn state_text(job: &JobSummary) -> String {
    let unfinished = if job.is_complete { "" } else { " (submission not complete)" };
    format!("{}{unfinished}", job.state.as_str())
}
