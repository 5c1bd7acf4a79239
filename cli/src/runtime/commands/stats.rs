//! `jobc stats`: prints the resource usage of tasks again and again, at any place.

mod measured;
mod rows;

use std::process::ExitCode;
use std::time::Duration;

use super::follow::output::{OutputStream, OutputStreams, or_exit};
use super::jobs::Result;
use crate::args::FormatArg;
use crate::runtime::args::watch::StatsArgs;
use crate::table::Table;
use crate::terminal;
pub(super) use measured::{MeasuredJob, MeasuredJobs};
pub(super) use rows::{Row, UsageRows};

/// Time between the two measurements of a single output, which CPU time is computed from.
pub(super) const FIRST_INTERVAL: Duration = Duration::from_millis(250);

/// The message if there is nothing to measure.
pub(super) const NO_JOB_RUNS: &str =
    "no job is running; start one with `jobc run`, or list ended ones with `jobc ps -a`";

pub(crate) fn run(args: &StatsArgs) -> Result<ExitCode> {
    let mut measured = MeasuredJobs::open(args)?;
    let mut rows = UsageRows::default();
    let mut outputs = OutputStreams::new(false);
    let first = measured.measure()?;
    // A place that has only sums needs a second measurement.
    let has_rates = first.iter().flat_map(|job| &job.tasks).all(|usage| usage.cpu_millis.is_some());
    let mut shown = rows.update(of_rows(&first));
    let mut jobs = first;
    if !has_rates {
        std::thread::sleep(FIRST_INTERVAL);
        jobs = measured.measure()?;
        shown = rows.update(of_rows(&jobs));
    }
    let mut is_first = true;
    loop {
        let text = match args.output_args.format {
            FormatArg::Json => shown.iter().map(|row| format!("{}\n", row.json())).collect(),
            // An empty list has headings, too.
            _ => table(&shown).render(terminal::columns_of_stdout()),
        };
        let gap = if is_first || args.output_args.format == FormatArg::Json { "" } else { "\n" };
        or_exit(
            outputs
                .select(OutputStream::Stdout)
                .map(|out| out.extend_from_slice(format!("{gap}{text}").as_bytes())),
        );
        or_exit(outputs.flush());
        if is_first && args.output_args.format == FormatArg::Text && measured.is_idle(&jobs) {
            terminal::eprint(&format!("jobc: {NO_JOB_RUNS}\n"));
        }
        is_first = false;
        if args.no_stream || measured.wait(&jobs)? {
            return Ok(ExitCode::SUCCESS);
        }
        jobs = measured.measure()?;
        shown = rows.update(of_rows(&jobs));
    }
}

/// What rows are made of.
pub(super) fn of_rows(jobs: &[MeasuredJob]) -> Vec<(String, Vec<jobc_place::usage::TaskUsage>)> {
    jobs.iter().map(|job| (job.id.clone(), job.tasks.clone())).collect()
}

/// The column of energy is left out where nothing counts it and no task has GPUs.
fn table(rows: &[Row]) -> Table {
    let has_energy = rows.iter().any(|row| row.usage.energy.is_some());
    let headings = ["JOB", "TASK", "CPU", "MEMORY", "LIMIT", "READ", "WRITTEN", "PIDS", "GPU"];
    let mut table = Table::new(headings.into_iter().chain(has_energy.then_some("ENERGY")));
    for row in rows {
        let energy = has_energy.then(|| row.usage.energy.unwrap_or_default().text());
        table.row(row.cells().into_iter().chain(energy));
    }
    table
}
