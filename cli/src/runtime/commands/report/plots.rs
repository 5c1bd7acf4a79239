//! Resource usage over time: one plot per role and measure, one line per task, or a band for many tasks.

use jobc_job::metrics::Sample;
use jobc_place::task::TaskStatus;

use super::chart::{Scale, Unit, format_number};
use super::data::ReportData;
use super::figure::{Axis, Data, Figure, SMALL, line, place};
use super::html::{Cell, escape};
use super::selection;
use super::series::{Band, Series, Value, float, rate};

/// Maximum number of lines of a plot, each with its own color and dashes; more become a band.
const MAX_LINES: usize = 8;

/// Maximum number of moments in the table of a band.
const MAX_BAND_ROWS: usize = 10;

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
    value: Value,
}

/// Levels without a counted peak.
fn no_peak(_: &Sample) -> Option<f64> {
    None
}

const MEASURES: [Measure; 6] = [
    Measure {
        title: "CPUs",
        unit: Unit::Cpus,
        limit: Some("cpu_millis"),
        value: Value::Rate(|sample, before| Some(float(sample.cpu_millis_since(before)?) / 1000.0)),
    },
    Measure {
        title: "Memory",
        unit: Unit::Bytes,
        limit: Some("memory_bytes"),
        value: Value::Level {
            of: |sample| sample.usage.memory.map(float),
            peak: |sample| sample.usage.memory_peak.map(float),
        },
    },
    Measure {
        title: "Read from disks",
        unit: Unit::BytesPerSecond,
        limit: None,
        value: Value::Rate(|sample, before| rate(sample, before, |sample| sample.usage.read_bytes)),
    },
    Measure {
        title: "Written to disks",
        unit: Unit::BytesPerSecond,
        limit: None,
        value: Value::Rate(|sample, before| rate(sample, before, |sample| sample.usage.written_bytes)),
    },
    Measure {
        title: "GPU utilization",
        unit: Unit::Percent,
        limit: None,
        value: Value::Level {
            of: |sample| {
                let busy: Vec<f64> =
                    sample.gpu.iter().filter_map(|gpu| gpu.utilization).map(f64::from).collect();
                #[allow(clippy::cast_precision_loss)] // a number of GPUs
                (!busy.is_empty()).then(|| busy.iter().sum::<f64>() / busy.len() as f64)
            },
            peak: no_peak,
        },
    },
    Measure {
        title: "GPU memory",
        unit: Unit::Bytes,
        limit: None,
        value: Value::Level {
            of: |sample| {
                let held: Vec<u64> = sample.gpu.iter().filter_map(|gpu| gpu.memory).collect();
                (!held.is_empty()).then(|| float(held.iter().sum()))
            },
            peak: no_peak,
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
    let roles = selection::by_role(&facts.job);
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
    tasks: &[&TaskStatus],
    measure: &Measure,
    points: usize,
) -> Option<String> {
    let series: Vec<Series> = tasks
        .iter()
        .map(|task| Series::of_task(facts, task, &measure.value))
        .filter(|series| !series.pieces.is_empty())
        .collect();
    let maximum = series.iter().map(Series::peak).fold(0.0, f64::max);
    // Without samples, or with values of only 0, there is no plot.
    if series.is_empty() || maximum == 0.0 {
        return None;
    }
    let unit = measure.unit;
    let limit = measure.limit.and_then(|name| {
        let value = float(*tasks.iter().filter_map(|task| task.limits.get(name)).max()?);
        let is_enforced = !tasks.iter().any(|task| task.unenforced.iter().any(|known| known == name));
        Some(Limit { value: if unit == Unit::Cpus { value / 1000.0 } else { value }, is_enforced })
    });
    let highest = unit.format_value(maximum);
    let description = match &series[..] {
        [only] if tasks.len() == 1 => format!("{} of {}, highest {highest}", measure.title, only.name),
        _ => format!("{} of the {} tasks of {role}, highest {highest}", measure.title, series.len()),
    };
    let whole = facts.end().since(facts.begin()).as_secs_f64().max(0.001);
    // A limit far above the values would flatten the lines.
    let near = limit.filter(|limit| maximum * 5.0 >= limit.value);
    let smallest = if unit == Unit::Cpus { 0.05 } else { 1024.0 };
    let top = (maximum * 1.05).max(near.map_or(0.0, |limit| limit.value * 1.05)).max(smallest);
    let top = if unit == Unit::Percent { 100.0 } else { top };
    let (x, y) = (SMALL.x(0.0, whole), SMALL.y(0.0, top));
    let figure = Figure {
        frame: SMALL,
        title: measure.title,
        description: &description,
        x: Axis { scale: x, ticks: Unit::Time.ticks(whole, 4), title: "time since submission" },
        y: Axis { scale: y, ticks: unit.ticks(top, 5), title: "" },
    };
    let mut marks = near.map(|limit| limit_line(limit, &x, &y)).unwrap_or_default();
    let mut legend = String::new();
    let data = if series.len() > MAX_LINES {
        let band = Band::of(&series, whole);
        marks += &draw_band(&band, &x, &y);
        legend += &format!("<span><i class=\"band\"></i>lowest to highest of {} tasks</span>", series.len());
        legend += "<span><i class=\"line0\"></i>median</span>";
        Data { headings: &["Time", "Lowest", "Median", "Highest"], rows: band_rows(&band, unit) }
    } else {
        let buckets = (points / series.len().max(1)).clamp(20, 400);
        for (index, series) in series.iter().enumerate() {
            let title = format!("{}: peak {}", series.name, unit.format_value(series.peak()));
            marks += &line(&format!("c{index}"), &title, &series.pieces, (&x, &y), buckets);
            legend += &format!("<span><i class=\"line{index}\"></i>{}</span>", escape(&series.name));
        }
        let rows = series.iter().map(|series| series_row(series, unit)).collect();
        Data { headings: &["Task", "Lowest", "Highest", "Last"], rows }
    };
    if let Some(limit) = limit {
        let value = unit.format_value(limit.value);
        let swatch =
            if near.is_some() { format!("<i class=\"{}\"></i>", limit.class()) } else { String::new() };
        let not_enforced = if limit.is_enforced { "" } else { ", not enforced" };
        legend += &format!("<span>{swatch}limit {value}{not_enforced}</span>");
    }
    Some(figure.draw(&marks, &legend, &data))
}

impl Limit {
    fn class(self) -> &'static str {
        if self.is_enforced { "limit" } else { "limit unenforced" }
    }
}

fn limit_line(limit: Limit, x: &Scale, y: &Scale) -> String {
    let at = format_number(y.position(limit.value));
    let (from, to) = (format_number(x.first), format_number(x.last));
    format!("<line x1=\"{from}\" x2=\"{to}\" y1=\"{at}\" y2=\"{at}\" class=\"{}\"/>", limit.class())
}

fn series_row(series: &Series, unit: Unit) -> Vec<Cell> {
    let values = || series.pieces.iter().flatten().map(|point| point.1);
    let of =
        |value: Option<f64>| Cell::number(&value.map(|value| unit.format_value(value)).unwrap_or_default());
    vec![
        Cell::text(&series.name),
        of(values().reduce(f64::min)),
        of(values().reduce(f64::max)),
        of(values().next_back()),
    ]
}

/// Some moments of a band.
fn band_rows(band: &Band, unit: Unit) -> Vec<Vec<Cell>> {
    let step = band.moments.len().div_ceil(MAX_BAND_ROWS).max(1);
    let row = |(second, values): &(f64, [f64; 3])| {
        let time = Cell::number(&Unit::Time.format_value(*second));
        let values = values.map(|value| Cell::number(&unit.format_value(value)));
        std::iter::once(time).chain(values).collect()
    };
    band.moments.iter().step_by(step).map(row).collect()
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
