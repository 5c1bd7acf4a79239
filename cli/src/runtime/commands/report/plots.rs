//! Resource usage over time: one plot per role and measure, one line per task.

use std::time::Duration;

use jobc_job::metrics::Sample;
use jobc_job::record::TaskRecord;
use jobc_job::time::Time;

use super::chart::{Scale, Unit, format_number};
use super::data::ReportData;
use super::html::escape;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 170.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 22.0;

/// Maximum number of points of a plot, for any number of tasks and samples.
const MAX_POINTS: usize = 20_000;

/// Samples within this time are merged.
const MIN_INTERVAL: Duration = Duration::from_millis(200);

/// A measure that is drawn.
struct Measure {
    title: &'static str,
    unit: Unit,
    /// The name of its limit in a task's record.
    limit: Option<&'static str>,
    /// Its value between a sample and the one before.
    of: fn(&Sample, &Sample) -> Option<f64>,
}

const MEASURES: [Measure; 6] = [
    Measure {
        title: "CPUs",
        unit: Unit::Cpus,
        limit: Some("cpu_millis"),
        of: |sample, before| Some(float(sample.cpu_millis_since(before)?) / 1000.0),
    },
    Measure {
        title: "Memory",
        unit: Unit::Bytes,
        limit: Some("memory_bytes"),
        of: |sample, _| sample.usage.memory.map(float),
    },
    Measure {
        title: "Read from disks",
        unit: Unit::BytesPerSecond,
        limit: None,
        of: |sample, before| rate(sample, before, |sample| sample.usage.read_bytes),
    },
    Measure {
        title: "Written to disks",
        unit: Unit::BytesPerSecond,
        limit: None,
        of: |sample, before| rate(sample, before, |sample| sample.usage.written_bytes),
    },
    Measure {
        title: "GPUs busy",
        unit: Unit::Percent,
        limit: None,
        of: |sample, _| {
            let busy: Vec<f64> = sample.gpu.iter().filter_map(|gpu| gpu.utilization).map(f64::from).collect();
            #[allow(clippy::cast_precision_loss)] // a number of GPUs
            (!busy.is_empty()).then(|| busy.iter().sum::<f64>() / busy.len() as f64)
        },
    },
    Measure {
        title: "Memory of GPUs",
        unit: Unit::Bytes,
        limit: None,
        of: |sample, _| {
            let held: Vec<u64> = sample.gpu.iter().filter_map(|gpu| gpu.memory).collect();
            (!held.is_empty()).then(|| float(held.iter().sum()))
        },
    },
];

fn rate(sample: &Sample, before: &Sample, of: fn(&Sample) -> Option<u64>) -> Option<f64> {
    let seconds = sample.time.since(before.time).as_secs_f64();
    let more = of(sample)?.checked_sub(of(before)?)?;
    (seconds > 0.0).then(|| float(more) / seconds)
}

#[allow(clippy::cast_precision_loss)] // a drawing has a thousand places
fn float(number: u64) -> f64 {
    number as f64
}

/// The line of a task: its points in seconds and values, one piece per attempt.
struct Series<'a> {
    task: &'a TaskRecord,
    pieces: Vec<Vec<(f64, f64)>>,
}

/// The plots of all roles.
pub(super) fn plots(facts: &ReportData) -> String {
    let mut out = String::new();
    for (role, tasks) in facts.roles() {
        let drawings: String = MEASURES.iter().filter_map(|measure| plot(facts, &tasks, measure)).collect();
        let count =
            if tasks.len() == 1 { String::new() } else { format!(" <small>{} tasks</small>", tasks.len()) };
        out += &format!("<h3>{}{count}</h3>\n", escape(role));
        if drawings.is_empty() {
            out += "<p class=\"none\">No samples. The resource usage of tasks with cgroups is sampled once per second.</p>\n";
        } else {
            out += &format!("<div class=\"plots\">\n{drawings}</div>\n");
        }
    }
    out
}

/// A plot; none if there is nothing to draw.
fn plot(facts: &ReportData, tasks: &[&TaskRecord], measure: &Measure) -> Option<String> {
    let mut series: Vec<Series<'_>> = tasks
        .iter()
        .map(|task| of_task(facts, task, measure))
        .filter(|series| !series.pieces.is_empty())
        .collect();
    let values = series.iter().flat_map(|series| series.pieces.iter().flatten().map(|(_, value)| *value));
    let maximum = values.fold(0.0, f64::max);
    // Without samples, or with values of only 0, there is no plot.
    if series.is_empty() || maximum == 0.0 && measure.limit.is_none() {
        return None;
    }
    let limit = measure.limit.and_then(|name| tasks.iter().filter_map(|task| task.limits.get(name)).max());
    let limit =
        limit.map(|&limit| if measure.unit == Unit::Cpus { float(limit) / 1000.0 } else { float(limit) });
    // A limit far above the values would flatten the lines.
    let near = limit.filter(|&limit| maximum * 5.0 >= limit);
    let top = (maximum * 1.05).max(near.unwrap_or(0.0) * 1.05).max(if measure.unit == Unit::Cpus {
        0.05
    } else {
        1024.0
    });
    let top = if measure.unit == Unit::Percent { 100.0 } else { top };
    let whole = facts.end().since(facts.begin()).as_secs_f64().max(0.001);
    let x = Scale { to: whole, first: LEFT, last: WIDTH - RIGHT };
    let y = Scale { to: top, first: HEIGHT - BOTTOM, last: TOP };
    let mut out = format!(
        "<figure><figcaption>{}{}</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        measure.title,
        limit
            .map(|limit| format!(" <small>limit {}</small>", measure.unit.format_value(limit)))
            .unwrap_or_default(),
        measure.title
    );
    out += &axes(&x, &y, measure.unit);
    if let Some(limit) = near {
        let at = format_number(y.position(limit));
        out += &format!(
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at}\" y2=\"{at}\" class=\"limit\"/>",
            WIDTH - RIGHT
        );
    }
    let buckets = (MAX_POINTS / series.len()).clamp(20, 400);
    let faint = if series.len() > 12 { " faint" } else { "" };
    for (index, series) in series.iter_mut().enumerate() {
        let maximum = series.pieces.iter().flatten().map(|(_, value)| *value).fold(0.0, f64::max);
        let title = escape(&format!("{}: peak {}", series.task.task, measure.unit.format_value(maximum)));
        out += &format!("<g class=\"line c{}{faint}\"><title>{title}</title>", index % 8);
        for piece in &series.pieces {
            let points: Vec<String> = downsample(piece, whole, buckets)
                .into_iter()
                .map(|(second, value)| {
                    format!("{},{}", format_number(x.position(second)), format_number(y.position(value)))
                })
                .collect();
            out += &format!("<polyline points=\"{}\"/>", points.join(" "));
        }
        out += "</g>";
    }
    Some(out + "</svg></figure>\n")
}

fn axes(x: &Scale, y: &Scale, unit: Unit) -> String {
    let mut out = String::new();
    for (value, words) in unit.ticks(y.to, 4) {
        let at = y.position(value);
        out += &format!(
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{}\" y2=\"{}\" class=\"grid\"/><text x=\"{}\" y=\"{}\" class=\"tick end\">{words}</text>",
            WIDTH - RIGHT,
            format_number(at),
            format_number(at),
            LEFT - 5.0,
            format_number(at + 4.0)
        );
    }
    for (value, words) in Unit::Time.ticks(x.to, 5) {
        out += &format!(
            "<text x=\"{}\" y=\"{}\" class=\"tick mid\">{words}</text>",
            format_number(x.position(value)),
            HEIGHT - 6.0
        );
    }
    out
}

/// The line of a task. A value for the time between two samples is a step.
fn of_task<'a>(facts: &ReportData, task: &'a TaskRecord, measure: &Measure) -> Series<'a> {
    let samples = facts.samples.get(&task.task).map(Vec::as_slice).unwrap_or_default();
    let second = |time: Time| time.since(facts.begin()).as_secs_f64();
    let mut pieces = vec![];
    for attempt in samples.chunk_by(|a, b| a.attempt == b.attempt) {
        let mut points = vec![];
        let mut before = &attempt[0];
        for (index, sample) in attempt.iter().enumerate().skip(1) {
            // The last sample of an attempt may come right after another, and a rate over such a short time is useless.
            if sample.time.since(before.time) < MIN_INTERVAL && index > 1 {
                continue;
            }
            if let Some(value) = (measure.of)(sample, before) {
                points.extend([(second(before.time), value), (second(sample.time), value)]);
            }
            before = sample;
        }
        // An attempt that ended before its second sample used the amount of the first, in the time since its start.
        if let [only] = attempt
            && let Some(first) = first_sample(facts, task, only)
            && let Some(value) = (measure.of)(only, &first)
        {
            points.extend([(second(first.time), value), (second(only.time), value)]);
        }
        if !points.is_empty() {
            pieces.push(points);
        }
    }
    Series { task, pieces }
}

/// A sample at the start of an attempt: nothing was used yet.
fn first_sample(facts: &ReportData, task: &TaskRecord, sample: &Sample) -> Option<Sample> {
    let attempts = facts.attempts(task);
    let started = attempts.iter().find(|attempt| attempt.number == sample.attempt)?.started?;
    let zero = |value: Option<u64>| value.map(|_| 0);
    let mut first = Sample { time: started, ..sample.clone() };
    first.usage.cpu_usec = zero(first.usage.cpu_usec);
    first.usage.read_bytes = zero(first.usage.read_bytes);
    first.usage.written_bytes = zero(first.usage.written_bytes);
    Some(first)
}

/// The points that fit in a plot: of each interval the minimum and the maximum, in their order.
fn downsample(points: &[(f64, f64)], whole: f64, buckets: usize) -> Vec<(f64, f64)> {
    if points.len() <= buckets {
        return points.to_vec();
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    // a bucket's number, at most 400
    let bucket = |point: &(f64, f64)| (point.0 / whole * (buckets as f64 / 2.0)) as usize;
    let mut out = vec![];
    for chunk in points.chunk_by(|a, b| bucket(a) == bucket(b)) {
        let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (Some(low), Some(high)) = (chunk.iter().min_by(by_value), chunk.iter().max_by(by_value)) else {
            continue;
        };
        match low.0.total_cmp(&high.0) {
            std::cmp::Ordering::Less => out.extend([*low, *high]),
            std::cmp::Ordering::Greater => out.extend([*high, *low]),
            std::cmp::Ordering::Equal => out.push(*high),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_survive_thinning() {
        let points: Vec<(f64, f64)> =
            (0..10_000).map(|index| (f64::from(index), if index == 7_777 { 50.0 } else { 1.0 })).collect();
        let thin = downsample(&points, 10_000.0, 100);
        assert!(thin.len() <= 110, "{}", thin.len());
        assert!(thin.contains(&(7_777.0, 50.0)));
        assert!(thin.is_sorted_by(|a, b| a.0 <= b.0));
        assert_eq!(downsample(&points[..50], 10_000.0, 100), points[..50]);
    }
}
