//! The timeline: one row per task, one bar per attempt.
//!
//! States differ by more than color: a failed bar ends in a cross, a running one has an open end, and a waiting one is
//! thin.

use std::time::Duration;

use jobc_place::task::{Attempt, TaskStatus};
use jobc_place::time::Time;
use unicode_width::UnicodeWidthStr as _;

use super::chart::{Scale, Unit, format_number, format_run_time};
use super::data::ReportData;
use super::figure::{cross, x_label};
use super::html::{anchor, escape};
use super::selection::{self, Selection};
use crate::table::truncate;

/// The width of the drawing; its height depends on the number of tasks.
const WIDTH: f64 = 1000.0;

/// The height of a row.
const ROW: f64 = 20.0;

/// Maximum number of rows.
const MAX_ROWS: usize = 200;

/// Maximum width of a name, in characters.
const MAX_NAME: usize = 60;

/// The drawing, below a sticky axis. Names of tasks that are in `logs` link there.
pub(super) fn timeline(facts: &ReportData, logs: &Selection<'_>) -> String {
    let shown = selection::select(&facts.job, MAX_ROWS, facts.end());
    let name = |task: &TaskStatus| truncate(&selection::name(&facts.job, &task.task), MAX_NAME);
    let names = shown.tasks.iter().map(|task| name(task).width()).max().unwrap_or(0);
    #[allow(clippy::cast_precision_loss)] // names have a few characters
    let left = (names as f64 * 7.3 + 16.0).min(WIDTH / 2.0);
    let whole = facts.end().since(facts.begin()).as_secs_f64().max(0.001);
    let scale = Scale { from: 0.0, to: whole, first: left, last: WIDTH - 16.0, is_log: false };
    let ticks = Unit::Time.ticks(whole, 8);
    #[allow(clippy::cast_precision_loss)] // a number of tasks
    let height = shown.tasks.len() as f64 * ROW + 4.0;
    let mut out = format!(
        "<div class=\"rows\" role=\"region\" aria-label=\"Timeline\" tabindex=\"0\">\n\
         <svg class=\"axis\" viewBox=\"0 0 {WIDTH} 20\" role=\"img\" aria-label=\"time since submission, {} in all\">",
        format_run_time(Duration::from_secs_f64(whole))
    );
    out += "<text x=\"4\" y=\"14\" class=\"tick\">time</text>";
    for (value, words) in &ticks {
        out += &x_label(&scale, *value, words, 14.0);
    }
    out += &format!(
        "</svg>\n<svg viewBox=\"0 0 {WIDTH} {}\" role=\"group\" aria-label=\"timeline of {} tasks\">\n",
        format_number(height),
        shown.tasks.len()
    );
    for (value, _) in &ticks {
        let x = format_number(scale.position(*value));
        out += &format!(
            "<line x1=\"{x}\" x2=\"{x}\" y1=\"0\" y2=\"{}\" class=\"grid\"/>",
            format_number(height)
        );
    }
    for (index, task) in shown.tasks.iter().enumerate() {
        #[allow(clippy::cast_precision_loss)] // a number of tasks
        let y = index as f64 * ROW + 2.0;
        out += &row(facts, task, &scale, y, selection::has(logs, &task.task));
    }
    out += "</svg>\n</div>\n";
    out + &selection::left_out(&facts.job, shown.left_out)
}

fn row(facts: &ReportData, task: &TaskStatus, scale: &Scale, y: f64, has_log: bool) -> String {
    let name = selection::name(&facts.job, &task.task);
    let shown = escape(&truncate(&name, MAX_NAME));
    let label = format!("<text x=\"4\" y=\"{}\" class=\"name\">{shown}</text>", format_number(y + 13.0));
    let mut out = if has_log {
        format!("\n<a href=\"#{}\">{label}</a>", anchor(&task.task))
    } else {
        format!("\n{label}")
    };
    if task.attempt == 0 {
        out += &format!(
            "<text x=\"{}\" y=\"{}\" class=\"tick\">{}, not started</text>",
            format_number(scale.first + 6.0),
            format_number(y + 13.0),
            task.state.as_str()
        );
    }
    let x = |time: Time| scale.position(time.since(facts.begin()).as_secs_f64());
    for (attempt, seen) in facts.attempts(task) {
        let end = attempt.ended.unwrap_or_else(|| facts.end());
        let title = escape(&describe_attempt(&name, &attempt, end));
        let mut bar = |from: f64, to: f64, class: &str, top: f64, height: f64| {
            // A bar without duration is visible, too.
            let width = (to - from).max(1.5);
            out += &format!(
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{class}\"><title>{title}</title></rect>",
                format_number(from),
                format_number(y + top),
                format_number(width),
                format_number(height)
            );
        };
        if let Some(created) = seen.created {
            bar(x(created), x(attempt.started.unwrap_or(end)), "held", 7.0, 3.0);
        }
        let Some(started) = attempt.started else { continue };
        let class = class(facts, task, &attempt);
        bar(x(started), x(end), class, 1.0, 15.0);
        let (at, top) = (x(end).max(x(started) + 1.5), y + 1.0);
        out += &match class {
            "bad" => cross(at, top + 7.5, ""),
            "runs" => open_end(at, top),
            _ => String::new(),
        };
        if let Some(ready) = seen.ready {
            let at = format_number(x(ready));
            out += &format!(
                "<line x1=\"{at}\" x2=\"{at}\" y1=\"{}\" y2=\"{}\" class=\"ready\"/>",
                format_number(y + 1.0),
                format_number(y + 16.0)
            );
        }
    }
    out
}

/// The end of what still runs.
fn open_end(x: f64, top: f64) -> String {
    let at = |dx: f64, dy: f64| format!("{} {}", format_number(x + dx), format_number(top + dy));
    format!("<path d=\"M{}L{}L{}\" class=\"open\"/>", at(2.0, 1.5), at(7.0, 7.5), at(2.0, 13.5))
}

/// The color of an attempt's bar.
fn class(facts: &ReportData, task: &TaskStatus, attempt: &Attempt) -> &'static str {
    let is_last = attempt.attempt == task.attempt;
    match attempt.exit_code {
        Some(0) => "good",
        Some(_) if is_last && task.state == jobc_place::task::TaskState::Stopped => "still",
        Some(_) => "bad",
        None if facts.job.summary.state.is_final() => "still",
        None => "runs",
    }
}

fn describe_attempt(name: &str, attempt: &Attempt, end: Time) -> String {
    let took = attempt.started.map_or(Duration::ZERO, |started| end.since(started));
    let mut words = format!("{name}, attempt {}: {}", attempt.attempt, format_run_time(took));
    if let Some(end) = attempt.end_text() {
        words += &format!(", {end}");
    }
    words
}
