//! `jobc ps`: lists jobs, the tasks of one, or the jobs of a sweep.

use std::process::ExitCode;

use jobc_gpu::device_names::short_name;
use jobc_job::directory::Directory;
use jobc_job::metric_choice::{JobMetrics, MetricChoice};
use jobc_job::record::{JobState, Record, TaskRecord, TaskState};
use jobc_job::time::Time;
use jobc_job::unmet;
use jobc_job::user_metrics::format_number;
use jobc_place::job_ref::JobRef;
use jobc_sys::error::{Error, Kind};

use super::follow::event_text::oom_kills;
use super::job_list;
use super::jobs::{Failure, Jobs, Result, format_duration, json_text, read};
use super::remote;
use super::subject::Subject;
use super::sweep::{self, Comparison};
use crate::args::FormatArg;
use crate::runtime::args::jobs::PsArgs;
use crate::runtime::wide_table::WideTable;
use crate::terminal;

pub(crate) fn run(args: &PsArgs) -> Result<ExitCode> {
    let word = match &args.job {
        Some(JobRef::Local(word)) => word,
        Some(JobRef::Remote(handle)) => return remote::tasks(args, handle),
        None if args.metrics.metric.is_empty() => return job_list::print(args),
        None => {
            let error = Error::new(Kind::Config, "`--metric` needs a job or a sweep");
            return Err(Failure::usage_error(
                error.help("name it, as in `jobc ps NAME --metric 'loss=([0-9.]+)'`"),
            ));
        }
    };
    let jobs = Jobs::open()?;
    match jobs.subject(word)? {
        Subject::Sweep(sweep) => {
            terminal::print(&sweep_text(args, &Comparison::gather(&jobs, &sweep, &args.metrics)?));
        }
        Subject::Job(directory) => {
            let record = read(&directory)?;
            terminal::print(&tasks_text(args, &directory, &record));
            if !args.quiet && args.output_args.format == FormatArg::Text {
                for need in unmet::of_job(&directory, &record)? {
                    terminal::eprint(&format!("jobc: {need}\n"));
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn tasks_text(args: &PsArgs, directory: &Directory, record: &Record) -> String {
    match args.output_args.format {
        FormatArg::Json => json_text(&record.tasks),
        _ if args.quiet => record.tasks.iter().map(|task| format!("{}\n", task.task)).collect(),
        _ => {
            let choices = sweep::choices(&args.metrics, std::iter::once(record));
            tasks_table(directory, record, &choices, Time::now()).render(terminal::columns_of_stdout())
        }
    }
}

fn sweep_text(args: &PsArgs, comparison: &Comparison) -> String {
    match args.output_args.format {
        FormatArg::Json => json_text(&comparison.json()),
        _ if args.quiet => comparison.rows.iter().map(|row| format!("{}\n", row.combination.job)).collect(),
        _ => comparison.table(Time::now()).render(terminal::columns_of_stdout()),
    }
}

/// The tasks of a job; with the values of their combinations if roles have a matrix, and with these metrics.
pub(super) fn tasks_table(
    directory: &Directory,
    record: &Record,
    choices: &[MetricChoice],
    now: Time,
) -> WideTable {
    let has_values = !record.combinations.is_empty();
    let metrics = JobMetrics::new(directory, record);
    let values = has_values.then_some("VALUES");
    let headings =
        ["TASK"].into_iter().chain(values).chain(["STATE", "ATTEMPT", "PID", "ADDRESS", "GPU", "RAN"]);
    let mut headings: Vec<String> = headings.map(str::to_owned).collect();
    headings.extend(choices.iter().map(|choice| choice.title().to_uppercase()));
    headings.push("EXIT".to_owned());
    let mut table = WideTable::new(headings);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for task in &record.tasks {
        // The recorded task states of a lost job are no longer valid.
        let alive = task.state.is_alive() && record.state != JobState::Lost;
        let ran = task.started.map(|started| format_duration(task.ended.unwrap_or(now).since(started)));
        let values = record.combinations.get(&task.task.role).map(|combination| {
            let values = combination.values.iter().map(|(axis, value)| format!("{axis}={value}"));
            values.collect::<Vec<_>>().join(" ")
        });
        let mut cells = vec![task.task.to_string()];
        cells.extend(has_values.then(|| or_dash(values)));
        cells.extend([
            record.state_of(task).to_owned(),
            task.attempt.to_string(),
            or_dash(task.process.filter(|_| alive).map(|process| program_pid(process.pid).to_string())),
            or_dash(address(task)),
            or_dash(gpus(record, task)),
            or_dash(ran),
        ]);
        cells.extend(choices.iter().map(|choice| {
            let value = metrics.value(choice, Some(&task.task));
            or_dash(value.map(format_number))
        }));
        cells.push(or_dash(describe_exit(task)));
        table.row(cells);
    }
    table
}

/// The number of a task's program, for tools such as strace and py-spy: the first process, or the child of its init.
fn program_pid(first: u32) -> u32 {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{first}/{file}")).unwrap_or_default();
    if read("comm").trim_end() != "jobc-init" {
        return first;
    }
    // The oldest is first; orphans come later.
    let children = read(&format!("task/{first}/children"));
    children.split_ascii_whitespace().next().and_then(|pid| pid.parse().ok()).unwrap_or(first)
}

/// The address of a task, with its ports: `127.0.0.1 http:8080`.
fn address(task: &TaskRecord) -> Option<String> {
    let ports = task.ports.iter().map(|(label, number)| format!("{label}:{number}"));
    let all: Vec<String> = task.address.iter().cloned().chain(ports).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

/// The numbers of a task's GPUs: `0,1`, or `2:0` for a MIG instance.
fn gpus(record: &Record, task: &TaskRecord) -> Option<String> {
    let number = |name: &String| record.claim.leased.slot_named(name).map(|slot| short_name(slot.device));
    let numbers: Vec<String> =
        task.gpus.iter().map(|name| number(name).unwrap_or_else(|| name.clone())).collect();
    (!numbers.is_empty()).then(|| numbers.join(","))
}

/// How an attempt ended: `0`, `3`, `killed by SIGSEGV (segmentation fault)`. For a stopped task, only the signal or the
/// code: it has not failed. For a task that goes on, whether the kernel killed some of its processes.
pub(super) fn describe_exit(task: &TaskRecord) -> Option<String> {
    let code = || task.exit_code.map(|code| code.to_string());
    if task.state == TaskState::Stopped && task.reason.is_none() {
        return task.signal.clone().or_else(code);
    }
    let text = task.end_text().map(|text| text.strip_prefix("exit ").map(str::to_owned).unwrap_or(text));
    let kills = task.has_unseen_oom_kills().then(|| oom_kills(task.oom_kills));
    match (text, kills) {
        (Some(text), Some(kills)) => Some(format!("{text}, {kills}")),
        (text, kills) => text.or(kills),
    }
}
