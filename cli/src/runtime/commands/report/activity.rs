//! How many tasks waited, ran and ended over time: one stacked plot for the whole job.

use jobc_job::record::{TaskRecord, TaskState};
use jobc_job::time::Time;

use super::chart::{Scale, Unit, format_number, time_label};
use super::data::ReportData;

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 170.0;
const LEFT: f64 = 56.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 36.0;

/// A job with fewer tasks is clear from its time line.
const MIN_TASKS: usize = 12;

/// Columns of the drawing, for any number of tasks.
const COLUMNS: u32 = 250;

/// What a task did at a moment, from the bottom of the drawing to its top.
const CLASSES: [(&str, &str); 5] = [
    ("good", "succeeded"),
    ("bad", "failed"),
    ("still", "stopped"),
    ("runs", "running"),
    ("held", "waiting"),
];

/// The plot; nothing for a job with few tasks.
pub(super) fn activity(facts: &ReportData) -> String {
    let tasks = &facts.record.tasks;
    if tasks.len() < MIN_TASKS {
        return String::new();
    }
    let whole = facts.end().since(facts.begin()).as_secs_f64().max(0.001);
    let counts = counts(facts, whole);
    let x = Scale { to: whole, first: LEFT, last: WIDTH - 16.0 };
    #[allow(clippy::cast_precision_loss)] // a number of tasks
    let y = Scale { to: tasks.len() as f64, first: HEIGHT - BOTTOM, last: TOP };
    let mut out = format!(
        "<figure class=\"activity\"><figcaption>Tasks by state</figcaption>\n\
         <div class=\"rows\" role=\"region\" aria-label=\"Tasks by state\" tabindex=\"0\">\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"states of {} tasks over time\">",
        tasks.len()
    );
    let mut floor = vec![0_u32; counts.len()];
    for (class, (name, _)) in CLASSES.iter().enumerate() {
        let top: Vec<u32> = counts.iter().zip(&floor).map(|(counts, floor)| floor + counts[class]).collect();
        if top != floor {
            out += &area(name, &floor, &top, &x, &y);
        }
        floor = top;
    }
    for (value, words) in Unit::Count.ticks(y.to, 4) {
        let at = format_number(y.position(value));
        out += &format!(
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at}\" y2=\"{at}\" class=\"grid\"/><text x=\"{}\" y=\"{}\" class=\"tick end\">{words}</text>",
            format_number(x.last),
            LEFT - 5.0,
            format_number(y.position(value) + 4.0)
        );
    }
    for (value, words) in Unit::Time.ticks(whole, 8) {
        out += &time_label(&x, value, &words, y.first + 15.0);
    }
    out += &format!(
        "<text x=\"{}\" y=\"{}\" class=\"tick mid\">time since submission</text></svg></div>\n",
        format_number(f64::midpoint(x.first, x.last)),
        HEIGHT - 5.0
    );
    let shown = (0..CLASSES.len()).filter(|&class| counts.iter().any(|counts| counts[class] > 0));
    let legend = shown.map(|class| {
        let (name, words) = CLASSES[class];
        format!("<span><i class=\"{name}\"></i>{words}</span>")
    });
    out + &format!("<p class=\"legend\">{}</p></figure>\n", legend.collect::<String>())
}

/// The number of tasks of each class at each moment.
fn counts(facts: &ReportData, whole: f64) -> Vec<[u32; CLASSES.len()]> {
    let mut changes = vec![[0_i64; CLASSES.len()]; COLUMNS as usize + 2];
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a column's number
    let column = |time: Time| {
        let second = time.since(facts.begin()).as_secs_f64();
        // What happens within a column is drawn at its end, so that the last one has the final states.
        ((second / whole * f64::from(COLUMNS)).ceil().clamp(0.0, f64::from(COLUMNS))) as usize
    };
    for task in &facts.record.tasks {
        // From the moment on a task is in a class; the classes follow each other.
        let mut since = vec![(0, 4)];
        for attempt in facts.attempts(task) {
            since.extend(attempt.started.map(|time| (column(time), 3)));
            if let Some(ended) = attempt.ended {
                let is_last = attempt.number == task.attempt;
                since.push((column(ended), if is_last { final_class(task) } else { 4 }));
            }
        }
        if task.attempt == 0 && task.state.is_final() {
            since.push((column(facts.end()), final_class(task)));
        }
        for (place, &(from, class)) in since.iter().enumerate() {
            let to = since.get(place + 1).map_or(COLUMNS as usize + 1, |next| next.0);
            if from < to {
                changes[from][class] += 1;
                changes[to][class] -= 1;
            }
        }
    }
    let mut now = [0_i64; CLASSES.len()];
    changes
        .iter()
        .take(COLUMNS as usize + 1)
        .map(|change| {
            std::array::from_fn(|class| {
                now[class] += change[class];
                u32::try_from(now[class]).unwrap_or_default()
            })
        })
        .collect()
}

fn final_class(task: &TaskRecord) -> usize {
    match task.state {
        TaskState::Succeeded => 0,
        TaskState::Failed | TaskState::Retrying => 1,
        _ => 2,
    }
}

fn area(class: &str, floor: &[u32], top: &[u32], x: &Scale, y: &Scale) -> String {
    let place = |column: usize, count: u32| {
        #[allow(clippy::cast_precision_loss)] // a column's number
        let second = x.to * column as f64 / f64::from(COLUMNS);
        format!("{},{}", format_number(x.position(second)), format_number(y.position(f64::from(count))))
    };
    // Points on a line are left out.
    let edge = |counts: &[u32]| -> Vec<String> {
        let is_corner = |&column: &usize| {
            column == 0
                || column + 1 == counts.len()
                || counts[column] != counts[column - 1]
                || counts[column] != counts[column + 1]
        };
        (0..counts.len()).filter(is_corner).map(|column| place(column, counts[column])).collect()
    };
    let points: Vec<String> = edge(top).into_iter().chain(edge(floor).into_iter().rev()).collect();
    format!("<polygon points=\"{}\" class=\"{class}\"/>", points.join(" "))
}
