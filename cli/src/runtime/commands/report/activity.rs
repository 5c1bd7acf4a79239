//! How many tasks waited, ran and ended over time: one stacked plot for the whole job.

use jobc_place::task::{TaskState, TaskStatus};
use jobc_place::time::Time;

use super::chart::{Scale, Unit};
use super::data::ReportData;
use super::figure::{Axis, Data, Figure, WIDE, place};
use super::html::Cell;

/// A job with fewer tasks is clear from its timeline.
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
    let tasks = &facts.job.tasks;
    if tasks.len() < MIN_TASKS {
        return String::new();
    }
    let whole = facts.end().since(facts.begin()).as_secs_f64().max(0.001);
    let counts = counts(facts, whole);
    #[allow(clippy::cast_precision_loss)] // a number of tasks
    let (x, y) = (WIDE.x(0.0, whole), WIDE.y(0.0, tasks.len() as f64));
    let mut marks = String::new();
    let mut floor = vec![0_u32; counts.len()];
    for (class, (name, _)) in CLASSES.iter().enumerate() {
        let top: Vec<u32> = counts.iter().zip(&floor).map(|(counts, floor)| floor + counts[class]).collect();
        if top != floor {
            marks += &area(name, &floor, &top, &x, &y);
        }
        floor = top;
    }
    let shown: Vec<usize> =
        (0..CLASSES.len()).filter(|&class| counts.iter().any(|counts| counts[class] > 0)).collect();
    let legend = shown.iter().map(|&class| {
        let (name, words) = CLASSES[class];
        format!("<span><i class=\"{name}\"></i>{words}</span>")
    });
    let row = |&class: &usize| {
        let of = |count: Option<u32>| Cell::number(&count.unwrap_or_default().to_string());
        vec![
            Cell::text(CLASSES[class].1),
            of(counts.iter().map(|counts| counts[class]).max()),
            of(counts.last().map(|counts| counts[class])),
        ]
    };
    let figure = Figure {
        frame: WIDE,
        title: "Tasks by state",
        description: &format!("states of {} tasks over time", tasks.len()),
        x: Axis { scale: x, ticks: Unit::Time.ticks(whole, 8), title: "time since submission" },
        y: Axis { scale: y, ticks: Unit::Count.ticks(y.to, 4), title: "" },
    };
    let data =
        Data { headings: &["State", "Most at once", "At the end"], rows: shown.iter().map(row).collect() };
    figure.draw(&marks, &legend.collect::<String>(), &data)
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
    for task in &facts.job.tasks {
        // From the moment on a task is in a class; the classes follow each other.
        let mut since = vec![(0, 4)];
        for attempt in task.attempts() {
            since.extend(attempt.started.map(|time| (column(time), 3)));
            if let Some(ended) = attempt.ended {
                let is_last = attempt.attempt == task.attempt;
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

fn final_class(task: &TaskStatus) -> usize {
    match task.state {
        TaskState::Succeeded => 0,
        TaskState::Failed | TaskState::Retrying => 1,
        _ => 2,
    }
}

fn area(class: &str, floor: &[u32], top: &[u32], x: &Scale, y: &Scale) -> String {
    let corner = |column: usize, count: u32| {
        #[allow(clippy::cast_precision_loss)] // a column's number
        let second = x.to * column as f64 / f64::from(COLUMNS);
        place(x, y, (second, f64::from(count)))
    };
    // Points on a line are left out.
    let edge = |counts: &[u32]| -> Vec<String> {
        let is_corner = |&column: &usize| {
            column == 0
                || column + 1 == counts.len()
                || counts[column] != counts[column - 1]
                || counts[column] != counts[column + 1]
        };
        (0..counts.len()).filter(is_corner).map(|column| corner(column, counts[column])).collect()
    };
    let points: Vec<String> = edge(top).into_iter().chain(edge(floor).into_iter().rev()).collect();
    format!("<polygon points=\"{}\" class=\"{class}\"/>", points.join(" "))
}
