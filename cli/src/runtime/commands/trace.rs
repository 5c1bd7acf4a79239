//! `jobc trace`: counts GPU driver calls of a task.

use std::process::ExitCode;

use jobc_gpu::trace::{CallCounts, Calls, process_tree, trace};
use jobc_job::record::Record;
use jobc_place::state::JobState;
use jobc_place::task::TaskStatus;
use jobc_sys::error::{Error, Kind};
use jobc_sys::signals::{Signal, Signals};
use serde_json::{Value, json};

use jobc_job::local_place::named_tasks;

use super::jobs::{Failure, Jobs, Result, json_text, local};
use super::newest;
use crate::args::FormatArg;
use crate::runtime::args::jobs::TraceArgs;
use crate::table::Table;
use crate::terminal;

pub(crate) fn run(args: &TraceArgs) -> Result<ExitCode> {
    let jobs = Jobs::open()?;
    let (_, record) = match &args.job {
        Some(job) => jobs.record(local(job)?)?,
        None => newest::newest_running(&jobs)?,
    };
    let task = select_task(&record, args.task.as_deref())?;
    let process = task.process.filter(|_| task.state.is_alive()).ok_or_else(|| {
        let state = task.state.as_str();
        Error::new(
            Kind::State,
            format!("task `{}` of job `{}` is {state}, not running", task.task, record.id),
        )
    })?;
    if record.state == JobState::Paused {
        let error = Error::new(Kind::State, format!("job `{}` is paused: it makes no calls", record.id));
        return Err(error.help(format!("resume it with `jobc resume {}`", record.id)).into());
    }
    // Ctrl-C stops the tracing, and the counts so far are shown.
    let signals = Signals::block_forwarded()?;
    let stop = || std::iter::from_fn(|| signals.next()).any(|signal| signal != Signal::WINCH);
    let calls = trace(&process_tree(process.pid), args.duration, stop)?;
    terminal::print(&match args.output_args.format {
        FormatArg::Json => json_text(&json!({
            "job": record.id,
            "task": task.task,
            "gpus": task.gpus,
            "seconds": calls.seconds,
            "calls": calls.nodes.iter().map(row).collect::<Vec<_>>(),
        })),
        _ => text(task, &calls),
    });
    Ok(ExitCode::SUCCESS)
}

/// The task that was named, or the only running one.
fn select_task<'a>(record: &'a Record, word: Option<&str>) -> Result<&'a TaskStatus> {
    if let Some(word) = word {
        let named = named_tasks(record, &[word.to_owned()])?;
        if let [task] = &named[..] {
            return Ok(record.task(task).expect("it was found in this record"));
        }
    }
    let of_word = |task: &&TaskStatus| word.is_none_or(|word| task.task.role == word);
    let mut alive = record.tasks.iter().filter(of_word).filter(|task| task.state.is_alive());
    match (alive.next(), alive.next()) {
        (Some(task), None) => Ok(task),
        (None, _) => {
            Err(Error::new(Kind::State, format!("no task of job `{}` is running", record.id)).into())
        }
        (Some(_), Some(_)) => {
            let names: Vec<String> = record.tasks.iter().map(|task| task.task.to_string()).collect();
            let known = jobc_compiler::suggest::list(names.iter().map(String::as_str));
            let error = Error::new(
                Kind::State,
                format!("several tasks of job `{}` are running; name one", record.id),
            );
            Err(Failure::usage_error(error.help(format!("its tasks are {known}"))))
        }
    }
}

/// A row for programs; times in seconds.
fn row(((node, call), counted): (&(String, &'static str), &CallCounts)) -> Value {
    let CallCounts { calls, errors, seconds, longest } = counted;
    json!({"node": node, "call": call, "calls": calls, "errors": errors, "seconds": seconds, "longest": longest})
}

fn text(task: &TaskStatus, calls: &Calls) -> String {
    let seconds = calls.seconds;
    if calls.nodes.is_empty() {
        return format!("task `{}` made no GPU driver call in {seconds:.1} s\n", task.task);
    }
    let mut table = Table::new(["NODE", "CALL", "CALLS", "PER SECOND", "ERRORS", "TIME", "MEAN", "LONGEST"]);
    for ((node, call), counted) in &calls.nodes {
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let count = counted.calls as f64;
        table.row([
            node.clone(),
            (*call).to_owned(),
            counted.calls.to_string(),
            format!("{:.1}", count / seconds.max(f64::MIN_POSITIVE)),
            counted.errors.to_string(),
            time(counted.seconds),
            time(counted.seconds / count),
            time(counted.longest),
        ]);
    }
    format!(
        "{}\ntask `{}`, {seconds:.1} s; it ran slower while it was traced\n",
        table.render(terminal::columns_of_stdout()),
        task.task
    )
}

/// Seconds in the unit that fits: `12 µs`, `3.4 ms`, `1.2 s`.
fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds < 1e-3 => format!("{:.0} µs", seconds * 1e6),
        _ if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{seconds:.1} s"),
    }
}
