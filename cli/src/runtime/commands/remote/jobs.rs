//! `jobc ps`, `inspect` and `events` of jobs at targets.

use std::ops::ControlFlow;
use std::process::ExitCode;

use jobc_job::time::Time;
use jobc_place::job_ref::Handle;
use jobc_remote::RemotePlace;
use jobc_remote::place::{Event, JobDetail, JobSummary, Members, TaskStatus};
use serde_json::json;

use super::compared;
use super::handle::failure;
use crate::args::FormatArg;
use crate::runtime::args::jobs::{InspectArgs, PsArgs};
use crate::runtime::args::watch::EventsArgs;
use crate::runtime::commands::job_end_line::json_of;
use crate::runtime::commands::job_list::state_text;
use crate::runtime::commands::jobs::{Result, json_text};
use crate::runtime::commands::sweep::count;
use crate::runtime::commands::target_table::TargetTable;
use crate::table::{Table, escape_control};
use crate::terminal;

/// Tasks that `inspect` lists; `ps` lists all.
const MAX_TASKS: usize = 50;

fn open(handle: &Handle) -> Result<Box<dyn RemotePlace>> {
    TargetTable::read(None)?.place(&handle.target)
}

pub(crate) fn tasks(args: &PsArgs, handle: &Handle) -> Result<ExitCode> {
    let place = open(handle)?;
    let job = match place.members(&handle.name).map_err(failure)? {
        Members::Job(job) => job,
        Members::Sweep { jobs, .. } => {
            show_sweep(args, &*place, handle, &jobs);
            return Ok(ExitCode::SUCCESS);
        }
    };
    let detail = place.inspect(&job.name).map_err(failure)?;
    let columns = terminal::columns_of_stdout();
    let metrics = if args.metrics.metric.is_empty() {
        String::new()
    } else {
        let jobs = std::slice::from_ref(&*job);
        let table = compared::compare(&*place, handle, jobs, &args.metrics, None).table(Time::now());
        format!("\n{}", table.render(columns))
    };
    terminal::print(&match args.output_args.format {
        FormatArg::Json => json_text(&detail.task_list),
        _ if args.quiet => detail.task_list.iter().map(|task| format!("{}\n", task.task)).collect(),
        _ => {
            let table = tasks_table(&detail.task_list).render(columns);
            let reasons = if detail.summary.state.is_final() { &[] } else { &detail.reasons[..] };
            let reasons = reasons.iter().map(|reason| format!("{}\n", escape_control(reason)));
            table + &reasons.collect::<String>() + &metrics
        }
    });
    Ok(ExitCode::SUCCESS)
}

/// Lists the jobs of a sweep with their values, and how many are in each state.
fn show_sweep(args: &PsArgs, place: &dyn RemotePlace, handle: &Handle, jobs: &[JobSummary]) {
    if args.quiet && args.output_args.format != FormatArg::Json {
        let names = jobs.iter().map(|job| format!("{}/{}\n", handle.target, job.name));
        terminal::print(&names.collect::<String>());
        return;
    }
    let comparison = compared::compare(place, handle, jobs, &args.metrics, None);
    terminal::print(&if args.output_args.format == FormatArg::Json {
        let rows = jobs.iter().zip(&comparison.rows).map(|(job, row)| {
            let mut value = json_of(&format!("{}/{}", handle.target, job.name), job);
            value["values"] = json!(row.combination.values);
            value["metrics"] = comparison.metrics_json(row).into();
            value
        });
        json_text(&rows.collect::<Vec<_>>())
    } else {
        let table = comparison.table(Time::now()).render(terminal::columns_of_stdout());
        let counts = count(jobs.iter().map(|job| job.state.as_str()));
        format!("{table}{handle}: {counts}\n")
    });
}

fn tasks_table(tasks: &[TaskStatus]) -> Table<6> {
    let mut table = Table::new(["TASK", "ATTEMPT", "STATE", "NODE", "EXIT", "REASON"]);
    for task in tasks {
        table.row([
            task.task.clone(),
            task.attempt.to_string(),
            task.state.to_owned(),
            task.node.clone().unwrap_or_else(|| "-".to_owned()),
            task.exit_code.map_or_else(|| "-".to_owned(), |code| code.to_string()),
            task.reason.clone().unwrap_or_default(),
        ]);
    }
    table
}

pub(super) fn inspect(args: &InspectArgs, handle: &Handle) -> Result<ExitCode> {
    let place = open(handle)?;
    let job = one(&*place, handle).map_err(failure)?;
    let detail = place.inspect(&job.name).map_err(failure)?;
    if args.output_args.format == FormatArg::Json {
        let mut value = json!(detail);
        value["handle"] = format!("{}/{}", handle.target, detail.summary.name).into();
        terminal::print(&json_text(&value));
    } else {
        terminal::print(&detail_text(&handle.target, &detail));
    }
    Ok(ExitCode::SUCCESS)
}

/// The job that a handle names; a sweep is an error.
pub(super) fn one(place: &dyn RemotePlace, handle: &Handle) -> jobc_sys::error::Result<JobSummary> {
    place.members(&handle.name)?.one(&handle.to_string())
}

fn detail_text(target: &str, detail: &JobDetail) -> String {
    let job = &detail.summary;
    let mut text = String::new();
    let mut line = |key: &str, value: &str| {
        if !value.is_empty() {
            text += &format!("{key:<11}{}\n", escape_control(value));
        }
    };
    line("job", &format!("{target}/{}", job.name));
    line("state", &state_text(job));
    let place = detail.namespace.as_ref().map(|name| format!(" in the namespace {name}"));
    line("object", &format!("{}{}", job.kind, place.unwrap_or_default()));
    line("tasks", &job.tasks_text());
    line("user", job.user.as_deref().unwrap_or_default());
    line("submitted", job.submitted.as_deref().unwrap_or_default());
    line("started", job.started.as_deref().unwrap_or_default());
    line("ended", job.ended.as_deref().unwrap_or_default());
    for (index, reason) in detail.reasons.iter().enumerate() {
        line(if index == 0 { "why" } else { "" }, reason);
    }
    if !detail.task_list.is_empty() {
        let shown = &detail.task_list[..MAX_TASKS.min(detail.task_list.len())];
        text += &format!("\n{}", tasks_table(shown).render(terminal::columns_of_stdout()));
        if detail.task_list.len() > MAX_TASKS {
            let left = detail.task_list.len() - MAX_TASKS;
            text += &format!("... and {left} more; `jobc ps {target}/{}` lists all\n", job.name);
        }
    }
    text
}

pub(super) fn events(args: &EventsArgs, handle: &Handle) -> Result<ExitCode> {
    let place = open(handle)?;
    let mut show = |event: &Event| {
        terminal::print(&event_line(args.lines.format, event));
        ControlFlow::Continue(())
    };
    if args.follow {
        place.follow_events(&handle.name, &mut show).map_err(failure)?;
        return Ok(ExitCode::SUCCESS);
    }
    let events = place.events(&handle.name).map_err(failure)?;
    let text: String = events.iter().map(|event| event_line(args.lines.format, event)).collect();
    terminal::print(&text);
    Ok(ExitCode::SUCCESS)
}

fn event_line(format: FormatArg, event: &Event) -> String {
    if format == FormatArg::Json {
        return format!("{}\n", json!(event));
    }
    let times = if event.count > 1 { format!(" ({} times)", event.count) } else { String::new() };
    let line = format!("{} {} {}: {}{times}", event.time, event.object, event.reason, event.message);
    format!("{}\n", escape_control(&line))
}
