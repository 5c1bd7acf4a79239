//! The tasks of a job, as a table.

use jobc_job::metric_choice::{JobMetrics, MetricChoice};
use jobc_job::user_metrics::format_number;
use jobc_place::progress::Progress;
use jobc_place::state::JobState;
use jobc_place::task::{TaskState, TaskStatus};
use jobc_place::time::{Time, format_duration};

use super::searched::Searched;
use crate::table::Table;

/// These tasks of a job; with the values of their combinations if roles have a matrix, and with these metrics.
///
/// A task of this host has a process and an address, one of a cluster a node.
pub(crate) fn tasks_table(
    searched: &Searched,
    tasks: &[TaskStatus],
    choices: &[MetricChoice],
    now: Time,
) -> Table {
    let job = &searched.detail;
    let has_values = !job.combinations.is_empty();
    let is_elsewhere = !job.summary.kind.is_empty();
    let metrics = JobMetrics::new(&searched.directory, job);
    let place: &[&str] = if is_elsewhere { &["NODE"] } else { &["PID", "ADDRESS", "GPU"] };
    let values = has_values.then_some("VALUES");
    let headings = ["TASK"].into_iter().chain(values).chain(["STATE", "ATTEMPT"]);
    let headings = headings.chain(place.iter().copied()).chain(["RAN"]);
    let mut headings: Vec<String> = headings.map(str::to_owned).collect();
    let progress = Progress::of_job(&job.metrics, &job.tasks, now);
    headings.extend(progress.iter().map(|_| "PROGRESS".to_owned()));
    headings.extend(choices.iter().map(|choice| choice.title().to_uppercase()));
    headings.push("EXIT".to_owned());
    let verdict = |task: &TaskStatus| task.verdict.as_ref()?.of_failure();
    let has_verdicts = tasks.iter().any(|task| verdict(task).is_some());
    headings.extend(has_verdicts.then(|| "VERDICT".to_owned()));
    let mut table = Table::new(headings);
    let or_dash =
        |text: Option<String>| text.filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned());
    for task in tasks {
        // The recorded task states of a lost job are outdated.
        let alive = task.state.is_alive() && job.summary.state != JobState::Lost;
        let ran = task.started.map(|started| format_duration(task.ended.unwrap_or(now).since(started)));
        let values = job.combinations.get(&task.task.role).map(|combination| {
            let values = combination.values.iter().map(|(axis, value)| format!("{axis}={value}"));
            values.collect::<Vec<_>>().join(" ")
        });
        let mut cells = vec![task.task.to_string()];
        cells.extend(has_values.then(|| or_dash(values)));
        cells.extend([job.state_of(task).to_owned(), task.attempt.to_string()]);
        if is_elsewhere {
            cells.push(or_dash(task.node.clone().or_else(|| address(task))));
        } else {
            let process = task.process.filter(|_| alive).map(|process| program_pid(process.pid).to_string());
            cells.extend([
                or_dash(process),
                or_dash(address(task)),
                or_dash(Some(task.gpu_numbers.join(","))),
            ]);
        }
        cells.push(or_dash(ran));
        if progress.is_some() {
            // That of the task which reported it: often one reports for all.
            let own: Vec<_> = job.metrics.iter().filter(|metric| metric.task == task.task).cloned().collect();
            let own = Progress::of_job(&own, std::slice::from_ref(task), now);
            cells.push(or_dash(own.map(|progress| progress.text())));
        }
        cells.extend(choices.iter().map(|choice| {
            let value = metrics.value(choice, Some(&task.task));
            or_dash(value.map(format_number))
        }));
        cells.push(or_dash(describe_exit(task)));
        cells.extend(has_verdicts.then(|| or_dash(verdict(task).map(|verdict| verdict.to_string()))));
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
fn address(task: &TaskStatus) -> Option<String> {
    let ports = task.ports.iter().map(|(label, number)| format!("{label}:{number}"));
    let all: Vec<String> = task.address.iter().cloned().chain(ports).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

/// How an attempt ended: `0`, `3`, `killed by SIGSEGV (segmentation fault)`. For a stopped task, only the signal or the
/// code: it has not failed. For a task that goes on, whether the kernel killed some of its processes.
fn describe_exit(task: &TaskStatus) -> Option<String> {
    let code = || task.exit_code.map(|code| code.to_string());
    if task.state == TaskState::Stopped && task.reason.is_none() {
        return task.signal.clone().or_else(code);
    }
    let text = task.end_text().map(|text| text.strip_prefix("exit ").map(str::to_owned).unwrap_or(text));
    let kills = task.has_unseen_oom_kills().then(|| jobc_job::event::oom_kills(task.oom_kills));
    match (text, kills) {
        (Some(text), Some(kills)) => Some(format!("{text}, {kills}")),
        (text, kills) => text.or(kills),
    }
}
