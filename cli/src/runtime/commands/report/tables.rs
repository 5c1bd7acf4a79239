//! The tables of a report: tasks, the ends of their logs, events.

use std::time::Duration;

use jobc_job::logs::Stream;
use jobc_job::metrics::Sample;
use jobc_job::record::{TaskRecord, TaskState};

use super::super::follow::event_text;
use super::super::jobs::format_duration;
use super::data::{LogLine, ReportData};
use super::html::{anchor, escape, render_terminal_line};
use crate::runtime::quantity::bytes;

/// Maximum number of events.
const MAX_EVENTS: usize = 2000;

/// Maximum number of characters of a line.
const MAX_LINE_CHARS: usize = 1000;

/// Maximum number of logs of failed tasks that are unfolded.
const MAX_UNFOLDED_LOGS: usize = 4;

/// The tasks: how each ended, and its total resource usage.
pub(super) fn tasks(facts: &ReportData) -> String {
    let headings = [
        "Task",
        "State",
        "Attempts",
        "Exit",
        "Why",
        "Ran",
        "CPU time",
        "Peak memory",
        "Limit",
        "Read",
        "Written",
    ];
    let mut out = String::from("<div class=\"wide\"><table>\n<thead><tr>");
    out.extend(headings.map(|heading| format!("<th>{heading}</th>")));
    out += "</tr></thead>\n<tbody>\n";
    for task in &facts.record.tasks {
        let used = TotalUsage::of(facts.samples.get(&task.task).map(Vec::as_slice).unwrap_or_default());
        let shown = |amount: Option<u64>| amount.map(bytes).unwrap_or_default();
        let ran = facts.attempts(task).last().and_then(|attempt| {
            let end = attempt.ended.unwrap_or_else(|| facts.end());
            Some(format_duration(end.since(attempt.started?)))
        });
        let memory = shown(used.memory) + &used.reached();
        let cells = [
            (String::new(), task.attempt.to_string()),
            (String::new(), task.exit_code.map(|code| code.to_string()).unwrap_or_default()),
            (" class=\"text\"".to_owned(), why(task)),
            (String::new(), ran.unwrap_or_default()),
            (String::new(), used.cpu.map(format_duration).unwrap_or_default()),
            (String::new(), memory),
            (String::new(), shown(task.limits.get("memory_bytes").copied())),
            (String::new(), shown(used.read)),
            (String::new(), shown(used.written)),
        ];
        let name = escape(&task.task.to_string());
        let state = task.state.as_str();
        out += &format!(
            "<tr><td class=\"text\"><a href=\"#{}\">{name}</a></td><td class=\"text\"><span class=\"state {}\">{state}</span></td>",
            anchor(&task.task),
            color(task.state)
        );
        out.extend(cells.map(|(class, text)| format!("<td{class}>{}</td>", escape(&text))));
        out += "</tr>\n";
    }
    out + "</tbody></table></div>\n"
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
}

impl TotalUsage {
    fn of(samples: &[Sample]) -> Self {
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

/// What there is to say of an end besides its exit code.
fn why(task: &TaskRecord) -> String {
    if task.state == TaskState::Stopped {
        return task.reason.clone().unwrap_or_default();
    }
    let text = task.end_text().unwrap_or_default();
    let code = task.exit_code.map(|code| format!("exit {code}")).unwrap_or_default();
    let rest = text.strip_prefix(&code).filter(|rest| rest.is_empty() || rest.starts_with([':', ',']));
    rest.map_or(text.as_str(), |rest| rest.trim_start_matches([':', ',', ' '])).to_owned()
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
pub(super) fn logs(facts: &ReportData) -> String {
    let mut out = String::new();
    let mut unfolded = 0;
    let decided = facts.record.end.as_ref().and_then(|end| end.task.as_ref());
    for task in &facts.record.tasks {
        let lines = facts.tails.get(&task.task).map(Vec::as_slice).unwrap_or_default();
        let wanted =
            decided == Some(&task.task) || task.state == TaskState::Failed || facts.record.tasks.len() == 1;
        let open = wanted && unfolded < MAX_UNFOLDED_LOGS && !lines.is_empty();
        unfolded += usize::from(open);
        out += &log(task, lines, open);
    }
    out
}

fn log(task: &TaskRecord, lines: &[LogLine], open: bool) -> String {
    let open = if open { " open" } else { "" };
    let count = match lines.len() {
        0 => "nothing".to_owned(),
        1 => "1 line".to_owned(),
        count => format!("last {count} lines"),
    };
    let mut out = format!(
        "<details id=\"{}\"{open}><summary>{} <small>{count}</small></summary>\n<div class=\"log\">",
        anchor(&task.task),
        escape(&task.task.to_string())
    );
    for line in lines {
        let class = match line.stream {
            Stream::Stdout => "",
            Stream::Stderr => " class=\"err\"",
            Stream::Jobc => " class=\"note\"",
        };
        let text = render_terminal_line(&line.text);
        let cut: String = text.chars().take(MAX_LINE_CHARS).collect();
        let more = if cut.len() < text.len() || line.continues { "…" } else { "" };
        let time = line.time.get(11..23).unwrap_or_default();
        out += &format!("<div{class}><time>{}</time>{}{more}</div>\n", escape(time), escape(&cut));
    }
    out + "</div></details>\n"
}

/// The events, in order; the middle is left out if there are too many.
pub(super) fn events(facts: &ReportData) -> String {
    let all = &facts.events;
    let left_out = all.len().saturating_sub(MAX_EVENTS);
    let mut out = format!(
        "<details><summary>{} events</summary>\n<div class=\"wide\"><table>\n<thead><tr><th>Time</th><th>Task</th><th>Event</th><th>What</th></tr></thead>\n<tbody>\n",
        all.len()
    );
    for (index, event) in all.iter().enumerate() {
        if left_out > 0 && index == MAX_EVENTS / 2 {
            out +=
                &format!("<tr><td class=\"text\" colspan=\"4\">{left_out} events are left out</td></tr>\n");
        }
        if left_out > 0 && (MAX_EVENTS / 2..MAX_EVENTS / 2 + left_out).contains(&index) {
            continue;
        }
        let task = event.task.as_ref().map(ToString::to_string).unwrap_or_default();
        let kind = serde_json::to_value(event.event).unwrap_or_default();
        let attempt =
            event.attempt.filter(|&attempt| attempt > 1).map(|attempt| format!("attempt {attempt}"));
        let words = [attempt, Some(event_text::describe_details(event)).filter(|words| !words.is_empty())];
        let words = words.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let cells = [event.time.to_string(), task, kind.as_str().unwrap_or_default().to_owned(), words];
        out += "<tr>";
        out.extend(cells.map(|cell| format!("<td class=\"text\">{}</td>", escape(&cell))));
        out += "</tr>\n";
    }
    out + "</tbody></table></div></details>\n"
}
