//! The tables of a report: tasks, the ends of their logs, events.

use std::time::Duration;

use jobc_job::metrics::Sample;
use jobc_job::user_metrics::format_number;
use jobc_place::energy::EnergyTotal;
use jobc_place::logs::Stream;
use jobc_place::task::{TaskState, TaskStatus};
use jobc_place::time::Time;
use jobc_schema::plural;
use jobc_schema::progress::is_progress;

use super::chart::format_run_time;
use super::data::{LogLine, ReportData};
use super::html::{Cell, anchor, escape, moment, render_terminal_line, table};
use super::selection::{self, Selection};
use crate::report::cpus;
use crate::runtime::local_time::Zone;
use crate::runtime::quantity::bytes;
use jobc_place::event::Event;
use jobc_place::time::format_duration;

/// Maximum number of tasks in the table.
const MAX_TASKS: usize = 1000;

/// Maximum number of events.
const MAX_EVENTS: usize = 2000;

/// Maximum number of characters of a line.
const MAX_LINE_CHARS: usize = 1000;

/// Maximum number of characters of all logs.
const MAX_LOG_CHARS: usize = 600_000;

/// Maximum number of logs of failed tasks that are unfolded.
const MAX_UNFOLDED_LOGS: usize = 4;

/// The tasks: how each ended, and its total resource usage. Names of tasks that are in `logs` link there.
pub(super) fn tasks(facts: &ReportData, logs: &Selection<'_>) -> String {
    let mut metrics: Vec<&str> = Vec::new();
    for metric in &facts.job.metrics {
        if !is_progress(&metric.name) && !metrics.contains(&metric.name.as_str()) {
            metrics.push(&metric.name);
        }
    }
    let mut headings = vec!["Task", "Values", "State", "Attempts", "Exit", "Why", "Ran"];
    headings.extend(&metrics);
    headings.extend(["CPU time", "CPU limit", "Peak memory", "Memory limit", "Read", "Written", "GPUs"]);
    let has_energy = facts.samples.values().flatten().any(|sample| sample.energy.is_some());
    headings.extend(has_energy.then_some("Energy"));
    let shown = selection::select(&facts.job, MAX_TASKS, facts.end());
    let rows: Vec<Vec<Cell>> = shown
        .tasks
        .iter()
        .map(|task| row(facts, task, &metrics, selection::has(logs, &task.task), has_energy))
        .collect();
    table("Tasks", &headings, &rows) + &selection::left_out(&facts.job, shown.left_out)
}

fn row(
    facts: &ReportData,
    task: &TaskStatus,
    metrics: &[&str],
    has_log: bool,
    has_energy: bool,
) -> Vec<Cell> {
    let samples = facts.samples.get(&task.task).map(Vec::as_slice).unwrap_or_default();
    let used = TotalUsage::of(samples, !task.gpus.is_empty());
    let amount = |amount: Option<u64>| Cell::number(&amount.map(bytes).unwrap_or_default());
    let ran = task.attempts().last().and_then(|attempt| {
        let end = attempt.ended.unwrap_or_else(|| facts.end());
        Some(format_run_time(end.since(attempt.started?)))
    });
    let limit = |name: &str, words: fn(u64) -> String| {
        let Some(limit) = task.limits.get(name) else { return Cell::default() };
        let is_enforced = !task.unenforced.iter().any(|known| known == name);
        let mark = if is_enforced { "" } else { " <span class=\"unenforced\">not enforced</span>" };
        Cell::number_html(escape(&words(*limit)) + mark)
    };
    let name = escape(&task.task.to_string());
    let name = if has_log { format!("<a href=\"#{}\">{name}</a>", anchor(&task.task)) } else { name };
    let state = task.state.as_str();
    let values =
        facts.job.combinations.get(&task.task.role).map(|combination| selection::values(&combination.values));
    let metric = |name: &&str| {
        let mut known = facts.job.metrics.iter();
        let value = known.find(|metric| metric.name == **name && metric.task == task.task);
        Cell::number(&value.map(|metric| format_number(metric.value.0)).unwrap_or_default())
    };
    let mut cells = vec![
        Cell::number_html(name),
        Cell::text(&values.unwrap_or_default()),
        Cell::html(format!("<span class=\"state {}\">{state}</span>", color(task.state))),
        Cell::number(&task.attempt.to_string()),
        Cell::number(&task.exit_code.map(|code| code.to_string()).unwrap_or_default()),
        Cell::text(&why(task)),
        Cell::number(&ran.unwrap_or_default()),
    ];
    cells.extend(metrics.iter().map(metric));
    cells.extend([
        Cell::number(&used.cpu.map(format_duration).unwrap_or_default()),
        limit("cpu_millis", cpus),
        Cell::number(&(used.memory.map(bytes).unwrap_or_default() + &used.reached())),
        limit("memory_bytes", bytes),
        amount(used.read),
        amount(used.written),
        Cell::text(&gpus(facts, task)),
    ]);
    cells.extend(has_energy.then(|| Cell::number(&used.energy.text())));
    cells
}

/// The numbers of a task's GPUs, or their names where the numbers are not known.
fn gpus(facts: &ReportData, task: &TaskStatus) -> String {
    let known = facts.origin.as_ref().map(|origin| &origin.host.gpus[..]).unwrap_or_default();
    let number = |name: &String| known.iter().find(|gpu| gpu.name == *name).map(|gpu| gpu.number.clone());
    let numbers: Vec<String> =
        task.gpus.iter().map(|name| number(name).unwrap_or_else(|| name.clone())).collect();
    numbers.join(", ")
}

/// The resource usage of a task in all its attempts.
#[derive(Default)]
struct TotalUsage {
    cpu: Option<Duration>,
    memory: Option<u64>,
    read: Option<u64>,
    written: Option<u64>,
    hits: u64,
    kills: u64,
    energy: EnergyTotal,
}

impl TotalUsage {
    fn of(samples: &[Sample], has_gpus: bool) -> Self {
        let mut used = Self::default();
        for attempt in samples.chunk_by(|a, b| a.attempt == b.attempt) {
            let Some(last) = attempt.last() else { continue };
            let usage = &last.usage;
            let add = |sum: &mut Option<u64>, more: Option<u64>| {
                *sum = more.map(|more| sum.unwrap_or(0) + more).or(*sum);
            };
            add(&mut used.read, usage.read_bytes);
            add(&mut used.written, usage.written_bytes);
            let cpu = usage.cpu_usec.map(Duration::from_micros);
            used.cpu = cpu.map(|cpu| used.cpu.unwrap_or_default() + cpu).or(used.cpu);
            // Without a counted peak, the maximum of the samples is the nearest.
            let seen = attempt.iter().filter_map(|sample| sample.usage.memory).max();
            used.memory = used.memory.max(usage.memory_peak.max(seen));
            used.energy.add(has_gpus, last.energy);
            used.hits += usage.memory_limit_hits.unwrap_or(0);
            used.kills += usage.oom_kills.unwrap_or(0);
        }
        used
    }

    /// Whether the limit was reached.
    fn reached(&self) -> String {
        match (self.hits, self.kills) {
            (_, kills) if kills > 0 => format!(" (limit reached, {kills} killed)"),
            (hits, _) if hits > 0 => " (limit reached)".to_owned(),
            _ => String::new(),
        }
    }
}

/// The explanation of an end besides its exit code.
fn why(task: &TaskStatus) -> String {
    if task.state == TaskState::Stopped {
        return task.reason.clone().unwrap_or_default();
    }
    let text = task.end_text().unwrap_or_default();
    let code = task.exit_code.map(|code| format!("exit {code}")).unwrap_or_default();
    let rest = text.strip_prefix(&code).filter(|rest| rest.is_empty() || rest.starts_with([':', ',']));
    let rest = rest.map_or(text.as_str(), |rest| rest.trim_start_matches([':', ',', ' '])).to_owned();
    let Some(verdict) = task.verdict.as_ref().filter(|verdict| verdict.of_failure().is_some()) else {
        return rest;
    };
    let line = verdict.evidence.iter().rev().find(|line| !text.contains(line.as_str())).cloned();
    let what = Some(rest).filter(|rest| !rest.is_empty());
    let next = verdict.next.as_ref().map(|next| format!("next: {next}"));
    let parts = [what, Some(verdict.kind.to_string()), line, next].into_iter().flatten();
    parts.collect::<Vec<_>>().join("; ")
}

fn color(state: TaskState) -> &'static str {
    match state {
        TaskState::Succeeded => "good",
        TaskState::Failed | TaskState::Retrying => "bad",
        TaskState::Running | TaskState::Ready => "runs",
        _ => "still",
    }
}

/// The last lines of each task; those of failed tasks are unfolded.
pub(super) fn logs(facts: &ReportData, shown: &Selection<'_>) -> String {
    let mut out = String::new();
    let mut unfolded = 0;
    let decided = facts.job.summary.end.as_ref().and_then(|end| end.task.as_ref());
    // Each task gets the same share, so that verbose tasks leave room for the others.
    let most_chars = (MAX_LOG_CHARS / shown.tasks.len().max(1)).clamp(2000, 40_000);
    for task in &shown.tasks {
        let lines = facts.tails.get(&task.task).map(Vec::as_slice).unwrap_or_default();
        let wanted =
            decided == Some(&task.task) || task.state == TaskState::Failed || facts.job.tasks.len() == 1;
        let open = wanted && unfolded < MAX_UNFOLDED_LOGS && !lines.is_empty();
        unfolded += usize::from(open);
        out += &log(facts, task, lines, open, most_chars);
    }
    out + &selection::left_out(&facts.job, shown.left_out)
}

fn log(facts: &ReportData, task: &TaskStatus, lines: &[LogLine], open: bool, most_chars: usize) -> String {
    let mut shown = vec![];
    let mut left = most_chars;
    for line in lines.iter().rev() {
        let text = render_terminal_line(&line.text);
        let cut: String = text.chars().take(MAX_LINE_CHARS.min(left)).collect();
        let more = if cut.len() < text.len() || line.continues { "…" } else { "" };
        left = left.saturating_sub(cut.chars().count() + 1);
        let class = match line.stream {
            Stream::Stdout => "",
            Stream::Stderr => " class=\"err\"",
            Stream::Jobc => " class=\"note\"",
        };
        let time = humantime::parse_rfc3339(&line.time).ok();
        let time = time.map(|time| facts.zone.time_of_day(Time::of(time))).unwrap_or_default();
        shown.push(format!("<div{class}><time>{time}</time>{}{more}</div>\n", escape(&cut)));
        if left == 0 {
            break;
        }
    }
    shown.reverse();
    let open = if open { " open" } else { "" };
    let count = match shown.len() {
        0 => "nothing".to_owned(),
        1 if lines.len() == 1 => "1 line".to_owned(),
        count => format!("last {count} lines"),
    };
    let values = facts.job.combinations.get(&task.task.role);
    let values = values.map(|known| escape(&selection::values(&known.values)) + "; ").unwrap_or_default();
    format!(
        "<details id=\"{}\"{open}><summary>{} <small>{values}{count}</small></summary>\n<div class=\"log\">{}</div></details>\n",
        anchor(&task.task),
        escape(&task.task.to_string()),
        shown.concat()
    )
}

/// The events, in order; the middle is left out if there are too many.
pub(super) fn events(facts: &ReportData) -> String {
    if let Some(reported) = &facts.reported {
        return reported_events(reported, &facts.zone);
    }
    let all = &facts.events;
    if all.is_empty() {
        return String::new();
    }
    let left_out = all.len().saturating_sub(MAX_EVENTS);
    let mut rows = vec![];
    for (index, event) in all.iter().enumerate() {
        if left_out > 0 && index == MAX_EVENTS / 2 {
            let words = format!("{left_out} events are left out; `jobc events` prints all");
            rows.push(vec![Cell::default(), Cell::default(), Cell::default(), Cell::text(&words)]);
        }
        if left_out > 0 && (MAX_EVENTS / 2..MAX_EVENTS / 2 + left_out).contains(&index) {
            continue;
        }
        let task = event.task.as_ref().map(ToString::to_string).unwrap_or_default();
        let kind = serde_json::to_value(event.event).unwrap_or_default();
        let attempt =
            event.attempt.filter(|&attempt| attempt > 1).map(|attempt| format!("attempt {attempt}"));
        let words = [attempt, Some(jobc_job::event::describe(event)).filter(|words| !words.is_empty())];
        let words = words.into_iter().flatten().collect::<Vec<_>>().join(", ");
        rows.push(vec![
            Cell::number_html(moment(event.time, &facts.zone)),
            Cell::number(&task),
            Cell::number(kind.as_str().unwrap_or_default()),
            Cell::text(&words),
        ]);
    }
    let table = table("Events", &["Time", "Task", "Event", "Details"], &rows);
    folded(all.len(), &table)
}

/// The events of a cluster.
fn reported_events(all: &[Event], zone: &Zone) -> String {
    if all.is_empty() {
        return String::new();
    }
    // The last ones show how it ended.
    let shown = all.len().saturating_sub(MAX_EVENTS);
    let row = |event: &Event| {
        let time = Time::parse(&event.time).map(|time| moment(time, zone)).unwrap_or_default();
        let object = event.task.as_deref().filter(|_| event.object.is_empty()).unwrap_or(&event.object);
        let (object, word) = (Cell::number(object), Cell::number(&event.event));
        vec![Cell::number_html(time), object, word, Cell::text(&event.message)]
    };
    let rows: Vec<Vec<Cell>> = all[shown..].iter().map(row).collect();
    folded(all.len(), &table("Events", &["Time", "Object", "Event", "Details"], &rows))
}

fn folded(count: usize, table: &str) -> String {
    format!("<details><summary>{}</summary>\n{table}</details>\n", plural(count, "event"))
}
