//! The time line: one row per task, one bar per attempt.

use std::time::Duration;

use jobc_job::record::TaskRecord;
use jobc_job::time::Time;

use super::super::jobs::format_duration;
use super::chart::{Scale, Unit, format_number};
use super::data::{Attempt, ReportData};
use super::html::{anchor, escape};

/// The width of the drawing; its height depends on the number of tasks.
const WIDTH: f64 = 1000.0;

/// The height of a row.
const ROW: f64 = 18.0;

/// The drawing, below a sticky axis.
pub(super) fn timeline(facts: &ReportData) -> String {
    let names = facts.record.tasks.iter().map(|task| task.task.to_string().len()).max().unwrap_or(0);
    #[allow(clippy::cast_precision_loss)] // names have at most 75 characters
    let left = (names as f64 * 7.0 + 16.0).min(WIDTH / 2.0);
    let whole = facts.end().since(facts.begin()).as_secs_f64().max(0.001);
    let scale = Scale { to: whole, first: left, last: WIDTH - 16.0 };
    let ticks = Unit::Time.ticks(whole, 9);
    #[allow(clippy::cast_precision_loss)] // a number of tasks
    let height = facts.record.tasks.len() as f64 * ROW + 4.0;
    let mut out = format!(
        "<div class=\"rows\">\n<svg class=\"axis\" viewBox=\"0 0 {WIDTH} 20\" role=\"img\" aria-label=\"time\">"
    );
    for (value, words) in &ticks {
        out += &format!(
            "<text x=\"{}\" y=\"14\" class=\"tick mid\">{words}</text>",
            format_number(scale.position(*value))
        );
    }
    out += &format!(
        "</svg>\n<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"time line of tasks\">\n",
        format_number(height)
    );
    for (value, _) in &ticks {
        let x = format_number(scale.position(*value));
        out += &format!(
            "<line x1=\"{x}\" x2=\"{x}\" y1=\"0\" y2=\"{}\" class=\"grid\"/>",
            format_number(height)
        );
    }
    for (index, task) in facts.record.tasks.iter().enumerate() {
        #[allow(clippy::cast_precision_loss)] // a number of tasks
        let y = index as f64 * ROW + 2.0;
        out += &row(facts, task, &scale, y);
    }
    out + "</svg>\n</div>\n"
}

fn row(facts: &ReportData, task: &TaskRecord, scale: &Scale, y: f64) -> String {
    let name = escape(&task.task.to_string());
    let mut out = format!(
        "\n<a href=\"#{}\"><text x=\"4\" y=\"{}\" class=\"name\">{name}</text></a>",
        anchor(&task.task),
        format_number(y + 12.0)
    );
    let x = |time: Time| scale.position(time.since(facts.begin()).as_secs_f64());
    for attempt in facts.attempts(task) {
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
        if let Some(created) = attempt.created {
            bar(x(created), x(attempt.started.unwrap_or(end)), "held", 6.0, 3.0);
        }
        let Some(started) = attempt.started else { continue };
        bar(x(started), x(end), class(facts, task, &attempt), 1.0, 13.0);
        if let Some(ready) = attempt.ready {
            let at = format_number(x(ready));
            out += &format!(
                "<line x1=\"{at}\" x2=\"{at}\" y1=\"{}\" y2=\"{}\" class=\"ready\"/>",
                format_number(y + 1.0),
                format_number(y + 14.0)
            );
        }
    }
    out
}

/// The color of an attempt's bar.
fn class(facts: &ReportData, task: &TaskRecord, attempt: &Attempt<'_>) -> &'static str {
    let is_last = attempt.number == task.attempt;
    match attempt.exit_code {
        Some(0) => "good",
        Some(_) if is_last && task.state == jobc_job::record::TaskState::Stopped => "still",
        Some(_) => "bad",
        None if facts.record.state.is_final() => "still",
        None => "runs",
    }
}

fn describe_attempt(name: &str, attempt: &Attempt<'_>, end: Time) -> String {
    let took = attempt.started.map_or(Duration::ZERO, |started| end.since(started));
    let mut words = format!("{name}, attempt {}: {}", attempt.number, format_duration(took));
    if let Some(end) = jobc_job::exit_text::describe(attempt.exit_code, attempt.signal, attempt.reason) {
        words += &format!(", {end}");
    }
    words
}
