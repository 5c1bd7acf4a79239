//! `jobc ps`: lists jobs, the tasks of one, or the jobs of a sweep, at any place.

use std::process::ExitCode;

use jobc_place::time::Time;
use jobc_sys::error::{Error, Kind};

use super::found::{NamedJobs, Places};
use super::job_list;
use super::jobs::{Failure, Result, json_text, print_list};
use super::queue_list;
use super::searched::{self, Searched};
use super::sweep::choices;
use super::tasks_table::tasks_table;
use crate::args::FormatArg;
use crate::runtime::args::jobs::PsArgs;
use crate::table::escape_control;
use crate::terminal;

pub(crate) fn run(args: &PsArgs) -> Result<ExitCode> {
    if args.queue {
        return queue_list::print(args.output_args.format);
    }
    let Some(job) = &args.job else {
        if args.metrics.metric.is_empty() {
            return job_list::print(args);
        }
        let error = Error::new(Kind::Config, "`--metric` needs a job or a sweep");
        return Err(Failure::usage_error(
            error.help("name it, as in `jobc ps NAME --metric 'loss=([0-9.]+)'`"),
        ));
    };
    let found = Places::default().find(job)?;
    if found.is_sweep() {
        print_sweep(args, &found)?;
    } else {
        print_tasks(args, &found)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print_tasks(args: &PsArgs, found: &NamedJobs) -> Result<()> {
    let detail = found.place.inspect(&found.job()?.name)?;
    found.note_reasons(&detail.summary, &detail.reasons);
    if args.output_args.format == FormatArg::Json {
        terminal::print(&json_text(&detail.tasks));
        return Ok(());
    }
    if args.quiet {
        let names = detail.tasks.iter().map(|task| format!("{}\n", task.task));
        terminal::print(&names.collect::<String>());
        return Ok(());
    }
    let searched = if args.metrics.metric.is_empty() {
        Searched::of_detail(found, detail)
    } else {
        searched::with_numbers(found, detail, None)
    };
    let detail = &searched.detail;
    let metrics = choices(&args.metrics, std::iter::once(detail));
    let table = tasks_table(&searched, &detail.tasks, &metrics, Time::now());
    terminal::print(&table.render(terminal::columns_of_stdout()));
    if !detail.summary.state.is_final() {
        for reason in &detail.reasons {
            terminal::eprint(&format!("jobc: {}\n", escape_control(reason)));
        }
    }
    Ok(())
}

/// Lists the jobs of a sweep with their values, and how many are in each state.
fn print_sweep(args: &PsArgs, found: &NamedJobs) -> Result<()> {
    if args.quiet && args.output_args.format != FormatArg::Json {
        let names = found.members.jobs().iter().map(|job| format!("{}\n", found.id_of(job)));
        terminal::print(&names.collect::<String>());
        return Ok(());
    }
    let comparison = searched::compare(found, &args.metrics, None)?;
    print_list(args.output_args.format, &comparison.json(), || comparison.table(Time::now()));
    let first = comparison.rows.first().map(|row| &row.state);
    let differ = comparison.rows.iter().any(|row| Some(&row.state) != first);
    if differ && args.output_args.format != FormatArg::Json {
        terminal::eprint(&format!("jobc: {}: {}\n", comparison.name, comparison.counts()));
    }
    Ok(())
}
