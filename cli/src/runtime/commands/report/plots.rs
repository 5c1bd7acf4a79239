//! Resource usage over time: one plot per role and measure, one line per task, or a band for many tasks.

use jobc_job::metrics::Sample;
use jobc_job::record::TaskRecord;

use super::chart::{Scale, Unit, format_number};
use super::data::ReportData;
use super::html::escape;
use super::selection;
use super::series::{Band, Series, ValueFn, downsample, float, rate};

const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 184.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 36.0;

/// Maximum number of lines of a plot, each with its own color and dashes; more become a band.
const MAX_LINES: usize = 8;

/// Maximum number of points of all plots.
const MAX_POINTS: usize = 60_000;

/// Maximum number of roles with plots.
const MAX_ROLES: usize = 24;

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
        title: "GPU utilization",
        unit: Unit::Percent,
        limit: None,
        of: |sample, _| {
            let busy: Vec<f64> = sample.gpu.iter().filter_map(|gpu| gpu.utilization).map(f64::from).collect();
            #[allow(clippy::cast_precision_loss)] // a number of GPUs
            (!busy.is_empty()).then(|| busy.iter().sum::<f64>() / busy.len() as f64)
        },
    },
    Measure {
        title: "GPU memory",
        unit: Unit::Bytes,
        limit: None,
        of: |sample, _| {
            let held: Vec<u64> = sample.gpu.iter().filter_map(|gpu| gpu.memory).collect();
            (!held.is_empty()).then(|| float(held.iter().sum()))
        },
    },
];

/// The limit of a measure.
#[derive(Clone, Copy, Debug)]
struct Limit {
    value: f64,
    is_enforced: bool,
}

/// The plots of all roles.
pub(super) fn plots(facts: &ReportData) -> String {
    let roles = selection::by_role(&facts.record);
    let mut out = String::new();
    if facts.samples.values().flatten().any(|sample| sample.from_processes) {
        out += "<p class=\"none\">No cgroup counts all of this: CPU time, memory and disks are sums over the processes of a \
                task, and peaks between two samples may be missing.</p>\n";
    }
    let points = MAX_POINTS / (roles.len().min(MAX_ROLES) * MEASURES.len()).max(1);
    for (role, tasks) in roles.iter().take(MAX_ROLES) {
        let drawings: String =
            MEASURES.iter().filter_map(|measure| plot(facts, role, tasks, measure, points)).collect();
        let count =
            if tasks.len() == 1 { String::new() } else { format!(" <small>{} tasks</small>", tasks.len()) };
        out += &format!("<h3>{}{count}</h3>\n", escape(role));
        if drawings.is_empty() {
            out += "<p class=\"none\">No samples: nothing of this role has run, or only for a moment.</p>\n";
        } else {
            out += &format!("<div class=\"plots\">\n{drawings}</div>\n");
        }
    }
    match roles.len().saturating_sub(MAX_ROLES) {
        0 => {}
        1 => out += "<p class=\"none\">1 more role has no plots here.</p>\n",
        more => out += &format!("<p class=\"none\">{more} more roles have no plots here.</p>\n"),
    }
    out
}

/// A plot; none if there is nothing to draw.
fn plot(
    facts: &ReportData,
    role: &str,
    tasks: &[&TaskRecord],
    measure: &Measure,
    points: usize,
) -> Option<String> {
    let value: &ValueFn = &measure.of;
    let series: Vec<Series> = tasks
        .iter()
        .map(|task| Series::of_task(facts, task, value))
        .filter(|series| !series.pieces.is_empty())
        .collect();
    let maximum = series.iter().map(Series::peak).fold(0.0, f64::max);
    // Without samples, or with values of only 0, there is no plot.
    if series.is_empty() || maximum == 0.0 && measure.limit.is_none() {
        return None;
    }
    let of_tasks = measure.limit.and_then(|name| {
        let value = float(*tasks.iter().filter_map(|task| task.limits.get(name)).max()?);
        let is_enforced = !tasks.iter().any(|task| task.unenforced.iter().any(|known| known == name));
        Some(Limit { value: if measure.unit == Unit::Cpus { value / 1000.0 } else { value }, is_enforced })
    });
    let highest = measure.unit.format_value(maximum);
    let name = match tasks {
        [task] => format!("{} of {}, highest {highest}", measure.title, task.task),
        _ => format!("{} of the {} tasks of {role}, highest {highest}", measure.title, series.len()),
    };
    let whole = facts.end().since(facts.begin()).as_secs_f64().max(0.001);
    Some(figure(
        &Figure { title: measure.title, name: &name, unit: measure.unit, limit: of_tasks, whole, points },
        &series,
    ))
}

/// What a plot shows besides its lines.
struct Figure<'a> {
    title: &'a str,
    /// For screen readers.
    name: &'a str,
    unit: Unit,
    limit: Option<Limit>,
    /// Seconds of the axis.
    whole: f64,
    /// Maximum number of points.
    points: usize,
}

fn figure(shown: &Figure<'_>, series: &[Series]) -> String {
    let &Figure { title, name, unit, limit, whole, points } = shown;
    let maximum = series.iter().map(Series::peak).fold(0.0, f64::max);
    // A limit far above the values would flatten the lines.
    let near = limit.filter(|limit| maximum * 5.0 >= limit.value);
    let smallest = if unit == Unit::Cpus { 0.05 } else { 1024.0 };
    let top = (maximum * 1.05).max(near.map_or(0.0, |limit| limit.value * 1.05)).max(smallest);
    let top = if unit == Unit::Percent { 100.0 } else { top };
    let x = Scale { to: whole, first: LEFT, last: WIDTH - RIGHT };
    let y = Scale { to: top, first: HEIGHT - BOTTOM, last: TOP };
    let mut out = format!(
        "<figure><figcaption>{title}</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escape(name)
    );
    out += &axes(&x, &y, unit);
    if let Some(limit) = near {
        let at = format_number(y.position(limit.value));
        let class = if limit.is_enforced { "limit" } else { "limit unenforced" };
        out += &format!(
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at}\" y2=\"{at}\" class=\"{class}\"/>",
            WIDTH - RIGHT
        );
    }
    let mut legend = String::new();
    if series.len() > MAX_LINES {
        let band = Band::of(series, whole);
        out += &draw_band(&band, &x, &y);
        legend += &format!("<span><i class=\"band\"></i>lowest to highest of {} tasks</span>", series.len());
        legend += "<span><i class=\"line0\"></i>median</span>";
    } else {
        let buckets = (points / series.len().max(1)).clamp(20, 400);
        for (index, series) in series.iter().enumerate() {
            out += &draw_line(series, index, unit, (&x, &y), buckets);
            legend += &format!("<span><i class=\"line{index}\"></i>{}</span>", escape(&series.name));
        }
    }
    if let Some(limit) = limit {
        let value = unit.format_value(limit.value);
        let class = if limit.is_enforced { "limit" } else { "limit unenforced" };
        let swatch = if near.is_some() { format!("<i class=\"{class}\"></i>") } else { String::new() };
        let not_enforced = if limit.is_enforced { "" } else { ", not enforced" };
        legend += &format!("<span>{swatch}limit {value}{not_enforced}</span>");
    }
    format!("{out}</svg>\n<p class=\"legend\">{legend}</p></figure>\n")
}

/// A line, with the task and its peak as the tooltip.
fn draw_line(series: &Series, index: usize, unit: Unit, (x, y): (&Scale, &Scale), buckets: usize) -> String {
    let title = format!("{}: peak {}", series.name, unit.format_value(series.peak()));
    let mut out = format!("<g class=\"line c{index}\"><title>{}</title>", escape(&title));
    for piece in &series.pieces {
        let points = downsample(piece, x.to, buckets).into_iter().map(|point| place(x, y, point));
        out += &format!("<polyline points=\"{}\"/>", points.collect::<Vec<_>>().join(" "));
    }
    out + "</g>"
}

/// The area between the lowest and the highest value, and the median.
fn draw_band(band: &Band, x: &Scale, y: &Scale) -> String {
    let mut out = String::new();
    // Where no task runs in between, there is a gap.
    let step = x.to / 100.0;
    for piece in band.moments.chunk_by(|a, b| b.0 - a.0 < step) {
        let points = |of: usize| piece.iter().map(move |(second, values)| place(x, y, (*second, values[of])));
        let area: Vec<String> = points(2).chain(points(0).rev()).collect();
        let median: Vec<String> = points(1).collect();
        out += &format!(
            "<polygon points=\"{}\" class=\"band\"/><g class=\"line c0\"><title>median</title><polyline points=\"{}\"/></g>",
            area.join(" "),
            median.join(" ")
        );
    }
    out
}

fn place(x: &Scale, y: &Scale, (second, value): (f64, f64)) -> String {
    format!("{},{}", format_number(x.position(second)), format_number(y.position(value)))
}

/// Both axes with their labels, and the title of the one of time.
fn axes(x: &Scale, y: &Scale, unit: Unit) -> String {
    let mut out = String::new();
    for (value, words) in unit.ticks(y.to, 5) {
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
    for (value, words) in Unit::Time.ticks(x.to, 4) {
        out += &super::chart::time_label(x, value, &words, y.first + 15.0);
    }
    out + &format!(
        "<text x=\"{}\" y=\"{}\" class=\"tick mid\">time since submission</text>",
        format_number(f64::midpoint(x.first, x.last)),
        HEIGHT - 5.0
    )
}
