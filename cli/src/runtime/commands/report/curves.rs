//! The values of metrics over steps or time: a line for each task or job.

use jobc_job::metric_history::{COUNTS, HistoryValue, common_count};
use jobc_job::user_metrics::format_number;
use jobc_place::time::Time;
use jobc_schema::plural;

use super::chart::{Unit, round_ticks, value_axis};
use super::data::ReportData;
use super::figure::{Axis, Data, Figure, SMALL, cross, line};
use super::html::{Cell, escape};
use super::selection;
use super::series::Point;

/// Maximum number of lines with a color of their own.
const MAX_COLORS: usize = 8;

/// Maximum number of lines of a plot, and of rows of its table.
pub(super) const MAX_LINES: usize = 100;

/// Maximum number of plots.
const MAX_PLOTS: usize = 48;

/// Maximum number of points of a plot.
const MAX_POINTS: usize = 6000;

/// The values of a metric of a task or a job.
pub(super) struct Curve<'a> {
    pub name: String,
    pub values: &'a [HistoryValue],
    /// Where its axis of time begins.
    pub begin: Time,
    /// Whether it is the best of all.
    pub is_best: bool,
}

/// The plots of a job: one for each metric and role.
pub(super) fn of_job(facts: &ReportData) -> String {
    let mut plots = vec![];
    for (metric, name) in facts.metrics.iter().enumerate() {
        let of_metric: Vec<_> = facts.histories.iter().filter(|history| history.metric == metric).collect();
        let mut roles: Vec<&str> = vec![];
        for history in &of_metric {
            let role = selection::role_of(&facts.job, &history.task);
            if !roles.contains(&role) {
                roles.push(role);
            }
        }
        for role in &roles {
            let of_role =
                of_metric.iter().filter(|history| selection::role_of(&facts.job, &history.task) == *role);
            let curves: Vec<Curve<'_>> = of_role
                .map(|history| Curve {
                    name: selection::label(&facts.job, &history.task),
                    values: &history.values,
                    begin: facts.begin(),
                    is_best: false,
                })
                .collect();
            let title = if roles.len() > 1 { format!("{name}, {role}") } else { name.clone() };
            plots.extend(plot(&title, &curves, "task", "time since submission"));
        }
    }
    plots.truncate(MAX_PLOTS);
    grid(&plots.concat())
}

/// Plots side by side; nothing if there are none.
pub(super) fn grid(plots: &str) -> String {
    if plots.is_empty() { String::new() } else { format!("<div class=\"plots\">\n{plots}</div>\n") }
}

/// The plots of the metrics of a sweep, whose curves are those of jobs.
pub(super) fn of_sweep(metrics: &[(&str, Vec<Curve<'_>>)]) -> String {
    let plots =
        metrics.iter().filter_map(|(title, curves)| plot(title, curves, "job", "time since the job started"));
    grid(&plots.take(MAX_PLOTS).collect::<String>())
}

/// The horizontal positions of values.
enum Across {
    /// A count that all have.
    Count(usize),
    Time,
    /// The number of the value, where nothing else is common.
    Number,
}

impl Across {
    fn of(curves: &[Curve<'_>]) -> Self {
        match common_count(&curves.iter().map(|curve| curve.values).collect::<Vec<_>>()) {
            Some(count) => Self::Count(count),
            None if curves.iter().all(|curve| curve.values.iter().all(|value| value.time.is_some())) => {
                Self::Time
            }
            None => Self::Number,
        }
    }

    #[allow(clippy::cast_precision_loss)] // thousands of values
    fn position(&self, curve: &Curve<'_>, number: usize) -> f64 {
        let value = &curve.values[number];
        match self {
            Self::Count(count) => value.counts[*count].unwrap_or_default(),
            Self::Time => value.time.map_or(0.0, |time| time.since(curve.begin).as_secs_f64()),
            Self::Number => number as f64 + 1.0,
        }
    }

    fn title<'a>(&self, time: &'a str) -> &'a str {
        match self {
            Self::Count(count) => COUNTS[*count],
            Self::Time => time,
            Self::Number => "value",
        }
    }

    fn text(&self, position: f64) -> String {
        match self {
            Self::Time => Unit::Time.format_value(position),
            Self::Count(_) | Self::Number => format_number(position),
        }
    }
}

/// A plot; none if no curve has two values.
fn plot(title: &str, curves: &[Curve<'_>], noun: &str, time: &str) -> Option<String> {
    let (all, left_out) = (plural(curves.len(), noun), curves.len() > MAX_LINES);
    let curves = &curves[..curves.len().min(MAX_LINES)];
    let counted = if left_out { format!("{MAX_LINES} of {all}") } else { all };
    if curves.iter().all(|curve| curve.values.len() < 2) {
        return None;
    }
    let finite = || {
        curves
            .iter()
            .flat_map(|curve| curve.values)
            .map(|value| value.value)
            .filter(|value| value.is_finite())
    };
    let lowest = finite().fold(f64::INFINITY, f64::min);
    let highest = finite().fold(f64::NEG_INFINITY, f64::max);
    if lowest > highest {
        return None;
    }
    let across = Across::of(curves);
    let positions: Vec<Vec<f64>> = curves
        .iter()
        .map(|curve| (0..curve.values.len()).map(|number| across.position(curve, number)).collect())
        .collect();
    let from = positions.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let to = positions.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
    let from = if matches!(across, Across::Time) { 0.0 } else { from };
    let x_ticks = match across {
        Across::Time => Unit::Time.ticks(to, 4),
        Across::Count(_) | Across::Number => round_ticks(from, to, 4)
            .into_iter()
            .filter(|tick| (from..=to).contains(tick))
            .map(|tick| (tick, format_number(tick)))
            .collect(),
    };
    let (y, y_ticks) = value_axis(SMALL, lowest, highest);
    let x = SMALL.x(from, to);
    let mut marks = String::new();
    let buckets = (MAX_POINTS / curves.len()).clamp(20, 400);
    for (index, (curve, positions)) in curves.iter().zip(&positions).enumerate() {
        let class = match () {
            () if curves.len() <= MAX_COLORS => format!("c{index}"),
            () => "many".to_owned(),
        };
        marks += &line(&class, &tooltip(curve), &pieces(curve, positions), (&x, &y), buckets);
    }
    if curves.len() > MAX_COLORS {
        // Above all others.
        for (curve, positions) in curves.iter().zip(&positions).filter(|(curve, _)| curve.is_best) {
            marks += &line("c0", &tooltip(curve), &pieces(curve, positions), (&x, &y), buckets);
        }
    }
    for (curve, positions) in curves.iter().zip(&positions) {
        if let Some(number) = curve.values.iter().position(|value| !value.value.is_finite()) {
            let (value, at) = (format_number(curve.values[number].value), positions[number]);
            let words = format!("{}: {value} at {} {}", curve.name, across.title(time), across.text(at));
            marks += &cross(x.position(at), y.first, &words);
        }
    }
    let mut legend = legend(curves, &counted);
    if y.is_log {
        legend += "<span>logarithmic scale</span>";
    }
    let description = match curves {
        [only] => format!("{title} by {} of {}", across.title(time), only.name),
        _ => format!("{title} by {} of {counted}", across.title(time)),
    };
    let figure = Figure {
        frame: SMALL,
        title,
        description: &description,
        x: Axis { scale: x, ticks: x_ticks, title: across.title(time) },
        y: Axis { scale: y, ticks: y_ticks, title: "" },
    };
    let heading = if noun == "job" { "Job" } else { "Task" };
    let headings = [heading, "Values", "First", "Lowest", "Highest", "Last"];
    Some(figure.draw(&marks, &legend, &Data { headings: &headings, rows: curves.iter().map(row).collect() }))
}

/// The parts of a curve: an attempt each, without values that are not finite.
fn pieces(curve: &Curve<'_>, positions: &[f64]) -> Vec<Vec<Point>> {
    let mut pieces: Vec<Vec<Point>> = vec![];
    let mut before = None;
    for (value, at) in curve.values.iter().zip(positions) {
        if !value.value.is_finite() {
            before = None;
            continue;
        }
        if before != Some(value.attempt) {
            pieces.push(vec![]);
        }
        before = Some(value.attempt);
        if let Some(piece) = pieces.last_mut() {
            piece.push((*at, value.value));
        }
    }
    pieces
}

fn tooltip(curve: &Curve<'_>) -> String {
    let last = curve.values.last().map(|value| format_number(value.value));
    format!("{}: last {}", curve.name, last.unwrap_or_default())
}

fn legend(curves: &[Curve<'_>], counted: &str) -> String {
    if curves.len() <= MAX_COLORS {
        let entry = |(index, curve): (usize, &Curve<'_>)| {
            let best = if curve.is_best { " (best)" } else { "" };
            format!("<span><i class=\"line{index}\"></i>{}{best}</span>", escape(&curve.name))
        };
        return curves.iter().enumerate().map(entry).collect();
    }
    let mut out = format!("<span><i class=\"many\"></i>{counted}</span>");
    if let Some(best) = curves.iter().find(|curve| curve.is_best) {
        out += &format!("<span><i class=\"line0\"></i>{} (best)</span>", escape(&best.name));
    }
    out
}

fn row(curve: &Curve<'_>) -> Vec<Cell> {
    let finite = || curve.values.iter().map(|value| value.value).filter(|value| value.is_finite());
    let of = |value: Option<f64>| Cell::number(&value.map(format_number).unwrap_or_default());
    vec![
        Cell::text(&curve.name),
        Cell::number(&curve.values.len().to_string()),
        of(curve.values.first().map(|value| value.value)),
        of(finite().reduce(f64::min)),
        of(finite().reduce(f64::max)),
        of(curve.values.last().map(|value| value.value)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values at these steps and seconds, in attempts.
    fn values(all: &[(u32, Option<f64>, u64, f64)]) -> Vec<HistoryValue> {
        let value = |&(attempt, step, second, value): &(u32, Option<f64>, u64, f64)| HistoryValue {
            value,
            time: Some(Time::from_millis(second * 1000)),
            attempt,
            counts: [step, None, None, None],
        };
        all.iter().map(value).collect()
    }

    fn drawn(all: &[Vec<HistoryValue>]) -> Option<String> {
        let curve = |(number, values)| Curve {
            name: format!("lr={number}"),
            values,
            begin: Time::from_millis(0),
            is_best: number == 1,
        };
        let curves: Vec<Curve<'_>> = all.iter().map(Vec::as_slice).enumerate().map(curve).collect();
        plot("loss", &curves, "job", "time since the job started")
    }

    #[test]
    fn a_curve_is_over_steps_if_all_lines_name_them() {
        let steps = values(&[(1, Some(0.0), 1, 2.5), (1, Some(100.0), 2, 0.5)]);
        let plot = drawn(std::slice::from_ref(&steps)).unwrap();
        assert!(
            plot.contains(">step</text>") && plot.contains("<desc>loss by step of lr=0</desc>"),
            "{plot}"
        );
        assert!(plot.contains("points=\"74,10 384,162\""), "{plot}");
        let timed = values(&[(1, None, 1, 2.5), (1, None, 2, 0.5)]);
        let plot = drawn(&[steps, timed]).unwrap();
        assert!(
            plot.contains(">time since the job started</text>") && plot.contains(">2.0 s</text>"),
            "{plot}"
        );
        assert!(plot.contains("lr=1 (best)"), "{plot}");
        assert_eq!(drawn(&[values(&[(1, Some(1.0), 1, 0.5)])]), None, "a curve needs two values");
    }

    #[test]
    fn attempts_and_values_that_are_no_numbers_part_a_curve() {
        let all = values(&[
            (1, Some(1.0), 1, 3.0),
            (1, Some(2.0), 2, f64::NAN),
            (1, Some(3.0), 3, 2.0),
            (1, Some(4.0), 4, 2.0),
            (2, Some(1.0), 5, 1.0),
            (2, Some(2.0), 6, 1.5),
        ]);
        let plot = drawn(&[all]).unwrap();
        assert_eq!((plot.matches("<polyline").count(), plot.matches("<circle").count()), (2, 1), "{plot}");
        assert!(plot.contains("<title>lr=0: nan at step 2</title>"), "{plot}");
    }

    #[test]
    fn many_curves_are_gray_below_the_best() {
        let one = values(&[(1, Some(1.0), 1, 3000.0), (1, Some(2.0), 2, 0.5)]);
        let plot = drawn(&vec![one; 12]).unwrap();
        assert_eq!((plot.matches("line many").count(), plot.matches("line c0").count()), (12, 1), "{plot}");
        assert!(plot.contains("12 jobs") && plot.contains("lr=1 (best)"), "{plot}");
        assert!(plot.contains("logarithmic scale"), "{plot}");
    }
}
