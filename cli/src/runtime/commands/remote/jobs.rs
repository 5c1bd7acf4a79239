//! `jobc ps`, `inspect`, `events` and `wait` of jobs on clusters.

use std::ops::ControlFlow;
use std::process::ExitCode;

use jobc_job::time::Time;
use jobc_remote::place::{Event, JobDetail, JobState, JobSummary, TaskCounts, TaskStatus};
use jobc_remote::{Handle, Place};
use serde_json::{Value, json};

use super::handle::{failure, handle};
use super::listing;
use super::members::Members;
use super::target::TargetTable;
use super::wait;
use crate::args::FormatArg;
use crate::runtime::args::jobs::{InspectArgs, PsArgs, WaitArgs};
use crate::runtime::args::watch::EventsArgs;
use crate::runtime::commands::jobs::{Result, format_ago, format_duration, json_text};
use crate::runtime::message::container_warning;
use crate::table::{Table, escape_control};
use crate::terminal;

/// Tasks that `inspect` lists; `ps` lists all.
const MAX_TASKS: usize = 50;

pub(super) fn list(args: &PsArgs) -> Result<ExitCode> {
    let table = TargetTable::read(None)?;
    let names = match &args.target {
        Some(target) => vec![target.as_str()],
        None => table.clusters(),
    };
    let mut found: Vec<(String, JobSummary)> = Vec::new();
    let mut last_error = None;
    for (name, listed) in listing::list(&table, &names) {
        match listed {
            Ok(jobs) => found.extend(jobs.into_iter().map(|job| (name.clone(), job))),
            // Of several clusters, one may not be reachable.
            Err(error) if names.len() > 1 => {
                terminal::eprint(&container_warning(&format!("target `{name}`: {}", error.message())));
                last_error = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    if let Some(error) = last_error.filter(|_| found.is_empty()) {
        return Err(error);
    }
    found.retain(|(_, job)| args.all || !job.state.is_final());
    terminal::print(&match args.output_args.format {
        FormatArg::Json => {
            json_text(&found.iter().map(|(target, job)| json_summary(target, job)).collect::<Vec<_>>())
        }
        _ if args.quiet => found.iter().map(|(target, job)| format!("{target}/{}\n", job.name)).collect(),
        _ => jobs_table(&found, Time::now()).render(terminal::columns_of_stdout()),
    });
    Ok(ExitCode::SUCCESS)
}

fn jobs_table(found: &[(String, JobSummary)], now: Time) -> Table<7> {
    let mut table = Table::new(["JOB", "STATE", "TASKS", "USER", "SUBMITTED", "RAN", "END"]);
    for (target, job) in found {
        let started = job.started.as_deref().and_then(time);
        let ended = job.ended.as_deref().and_then(time);
        table.row([
            format!("{target}/{}", job.name),
            state_text(job),
            tasks_text(job.tasks),
            job.user.clone().unwrap_or_default(),
            job.submitted.as_deref().and_then(time).map(|at| format_ago(at, now)).unwrap_or_default(),
            started.map(|started| format_duration(ended.unwrap_or(now).since(started))).unwrap_or_default(),
            job.reason.clone().unwrap_or_default(),
        ]);
    }
    table
}

pub(super) fn time(text: &str) -> Option<Time> {
    humantime::parse_rfc3339_weak(text.trim_end_matches('Z')).ok().map(Time::of)
}

fn state_text(job: &JobSummary) -> String {
    let unfinished = if job.is_complete { "" } else { " (submission not complete)" };
    format!("{}{unfinished}", job.state.as_str())
}

/// `3 active, 1 succeeded of 4`.
fn tasks_text(tasks: TaskCounts) -> String {
    let parts = [(tasks.active, "active"), (tasks.succeeded, "succeeded"), (tasks.failed, "failed")];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if parts.is_empty() {
        tasks.wanted.to_string()
    } else {
        format!("{} of {}", parts.join(", "), tasks.wanted)
    }
}

fn json_summary(target: &str, job: &JobSummary) -> Value {
    let mut value = json!(job);
    value["handle"] = format!("{target}/{}", job.name).into();
    value["target"] = target.into();
    value
}

/// The job that a word names, with its place.
fn open(word: Option<&String>) -> Result<(Handle, Box<dyn Place>)> {
    let handle = handle(word.map_or("", String::as_str))?;
    let place = TargetTable::read(None)?.place(&handle.target)?;
    Ok((handle, place))
}

pub(super) fn tasks(args: &PsArgs) -> Result<ExitCode> {
    let (handle, place) = open(args.job.as_ref())?;
    let job = match Members::find(&*place, &handle).map_err(failure)? {
        Members::Job(job) => job,
        Members::Sweep(jobs) => {
            show_sweep(args, &handle, jobs);
            return Ok(ExitCode::SUCCESS);
        }
    };
    let detail = place.inspect(&job.name).map_err(failure)?;
    terminal::print(&match args.output_args.format {
        FormatArg::Json => json_text(&detail.task_list),
        _ if args.quiet => detail.task_list.iter().map(|task| format!("{}\n", task.task)).collect(),
        _ => {
            let table = tasks_table(&detail.task_list).render(terminal::columns_of_stdout());
            let reasons = if detail.summary.state.is_final() { &[] } else { &detail.reasons[..] };
            let reasons = reasons.iter().map(|reason| format!("{}\n", escape_control(reason)));
            table + &reasons.collect::<String>()
        }
    });
    Ok(ExitCode::SUCCESS)
}

/// Lists the jobs of a sweep, and how many are in each state.
fn show_sweep(args: &PsArgs, handle: &Handle, jobs: Vec<JobSummary>) {
    let counts = states_text(&jobs);
    let found: Vec<(String, JobSummary)> = jobs.into_iter().map(|job| (handle.target.clone(), job)).collect();
    terminal::print(&match args.output_args.format {
        FormatArg::Json => {
            json_text(&found.iter().map(|(target, job)| json_summary(target, job)).collect::<Vec<_>>())
        }
        _ if args.quiet => found.iter().map(|(target, job)| format!("{target}/{}\n", job.name)).collect(),
        _ => {
            let table = jobs_table(&found, Time::now()).render(terminal::columns_of_stdout());
            format!("{table}{handle}: {counts}\n")
        }
    });
}

/// `3 running, 5 succeeded`.
fn states_text(jobs: &[JobSummary]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for job in jobs {
        let state = job.state.as_str();
        match counts.iter_mut().find(|(known, _)| *known == state) {
            Some((_, count)) => *count += 1,
            None => counts.push((state, 1)),
        }
    }
    counts.iter().map(|(state, count)| format!("{count} {state}")).collect::<Vec<_>>().join(", ")
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

pub(super) fn inspect(args: &InspectArgs) -> Result<ExitCode> {
    let (handle, place) = open(args.job.as_ref())?;
    let job = Members::find_one(&*place, &handle).map_err(failure)?;
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
    line("tasks", &tasks_text(job.tasks));
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

pub(super) fn events(args: &EventsArgs) -> Result<ExitCode> {
    let (handle, place) = open(args.job.as_ref())?;
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

pub(super) fn wait(args: &WaitArgs, handles: &[Handle]) -> Result<ExitCode> {
    let table = TargetTable::read(None)?;
    let mut code = 0;
    for handle in handles {
        let place = table.place(&handle.target)?;
        let found = Members::find(&*place, handle).map_err(failure)?;
        let is_sweep = matches!(found, Members::Sweep(_));
        let mut ends = Vec::new();
        for job in found.into_jobs() {
            let own = Handle { name: job.name.clone(), ..handle.clone() };
            let end = wait::wait(&*place, &own).map_err(failure)?;
            let Some(end) = end else { continue };
            print_end(args.output_args.format, &handle.target, &end);
            if code == 0 {
                code = end.state.exit_code();
            }
            ends.push(end);
        }
        if is_sweep && args.output_args.format != FormatArg::Json {
            terminal::print(&format!("{handle}: {}\n", states_text(&ends)));
        }
    }
    Ok(ExitCode::from(code))
}

/// Prints how a job ended.
pub(super) fn print_end(format: FormatArg, target: &str, job: &JobSummary) {
    if format == FormatArg::Json {
        let line = json_summary(target, job);
        terminal::print(&format!("{line}\n"));
    } else {
        terminal::print(&format!("{}\n", escape_control(&end_text(target, job))));
    }
}

/// `lab/train-7f3k2: failed: BackoffLimitExceeded: Job has reached the specified backoff limit`.
pub(super) fn end_text(target: &str, job: &JobSummary) -> String {
    let mut text = format!("{target}/{}: {}", job.name, job.state.as_str());
    if matches!(job.state, JobState::Failed | JobState::TimedOut) {
        for part in [&job.reason, &job.message].into_iter().flatten() {
            text += &format!(": {part}");
        }
    }
    text
}
