//! The GPUs of a job: one row each, with their utilization and memory over time.

use std::collections::{BTreeMap, BTreeSet};

use jobc_job::origin::Gpu;
use jobc_sys::id::TaskId;

use super::chart::format_number;
use super::data::ReportData;
use super::html::{Cell, escape, not_shown, table};
use super::series::downsample;
use crate::runtime::quantity::bytes;

/// Maximum number of rows.
const MAX_ROWS: usize = 256;

const WIDTH: f64 = 160.0;
const HEIGHT: f64 = 24.0;

/// Maximum number of points of a line in a row.
const MAX_POINTS: usize = 80;

/// The data of a GPU.
#[derive(Default)]
struct GpuHistory {
    tasks: BTreeSet<String>,
    /// Seconds since submission and percent.
    utilization: Vec<(f64, f64)>,
    /// Bytes by task, as of its last sample.
    held: BTreeMap<String, u64>,
    /// The sum of these.
    total: u64,
    /// Seconds since submission and bytes of all tasks.
    memory: Vec<(f64, f64)>,
    peak: u64,
}

impl GpuHistory {
    /// Records that a task uses this much memory from now on.
    fn set(&mut self, task: &TaskId, second: f64, memory: u64) {
        let before = if memory > 0 {
            self.held.insert(task.to_string(), memory)
        } else {
            self.held.remove(&task.to_string())
        };
        self.total = self.total + memory - before.unwrap_or(0);
        self.peak = self.peak.max(self.total);
        self.memory.push((second, super::series::float(self.total)));
    }
}

/// The section; nothing for a job without GPUs.
pub(super) fn gpus(facts: &ReportData) -> String {
    let known: Vec<Gpu> = facts.origin.iter().flat_map(|origin| origin.host.gpus.clone()).collect();
    let mut histories = histories(facts);
    let mut all: Vec<Gpu> = known;
    for name in histories.keys() {
        if !all.iter().any(|gpu| gpu.name == *name) {
            all.push(Gpu { name: name.clone(), ..Gpu::default() });
        }
    }
    if all.is_empty() {
        return String::new();
    }
    let whole = facts.end().since(facts.begin()).as_secs_f64().max(0.001);
    let rows: Vec<Vec<Cell>> = all
        .iter()
        .take(MAX_ROWS)
        .map(|gpu| row(gpu, &histories.remove(&gpu.name).unwrap_or_default(), whole))
        .collect();
    let headings = [
        "GPU",
        "Model",
        "UUID",
        "Tasks",
        "Mean utilization",
        "Utilization",
        "Peak memory",
        "Memory",
        "Memory over time",
    ];
    let mut out = table("GPUs", &headings, &rows);
    out += "<p class=\"none\">Utilization is that of the whole GPU, whoever uses it; memory is that of the job. Both are \
            sampled every 5 seconds.</p>\n";
    if facts.samples.values().flatten().flat_map(|sample| &sample.gpu).any(|gpu| gpu.mps.is_some()) {
        out += "<p class=\"none\">Tasks with slices by MPS share the GPU's utilization. Their memory is not known, except \
                that it is at most that of their slices: the driver reports the MPS server instead of its clients.</p>\n";
    }
    out + &not_shown(all.len().saturating_sub(MAX_ROWS), "GPUs")
}

fn histories(facts: &ReportData) -> BTreeMap<String, GpuHistory> {
    let mut histories = BTreeMap::<String, GpuHistory>::new();
    for task in &facts.job.tasks {
        for name in &task.gpus {
            histories.entry(name.clone()).or_default().tasks.insert(task.task.to_string());
        }
    }
    let mut samples: Vec<_> = facts.samples.values().flatten().collect();
    samples.sort_by_key(|sample| sample.time);
    // The last known usage of each task.
    let mut used: BTreeMap<&TaskId, Vec<&str>> = BTreeMap::new();
    for sample in samples {
        let second = sample.time.since(facts.begin()).as_secs_f64();
        let now: Vec<&str> = sample.gpu.iter().map(|gpu| gpu.gpu.as_str()).collect();
        let before = used.insert(&sample.task, now.clone()).unwrap_or_default();
        for name in before.into_iter().filter(|name| !now.contains(name)) {
            let Some(history) = histories.get_mut(name) else { continue };
            history.set(&sample.task, second, 0);
        }
        for gpu in &sample.gpu {
            let history = histories.entry(gpu.gpu.clone()).or_default();
            history.tasks.insert(sample.task.to_string());
            history.utilization.extend(gpu.utilization.map(|percent| (second, f64::from(percent))));
            if let Some(memory) = gpu.memory {
                history.set(&sample.task, second, memory);
            }
        }
    }
    histories
}

fn row(gpu: &Gpu, history: &GpuHistory, whole: f64) -> Vec<Cell> {
    let tasks: Vec<&str> = history.tasks.iter().map(String::as_str).collect();
    let tasks = match &tasks[..] {
        [first, .., last] if tasks.len() > 4 => format!("{} tasks, {first} to {last}", tasks.len()),
        _ => tasks.join(", "),
    };
    #[allow(clippy::cast_precision_loss)] // a number of samples
    let mean = history.utilization.iter().map(|(_, percent)| percent).sum::<f64>()
        / history.utilization.len().max(1) as f64;
    let has_samples = !history.utilization.is_empty();
    let busiest = history.utilization.iter().map(|(_, percent)| *percent).fold(0.0, f64::max);
    let total = gpu.memory_bytes.map(super::series::float);
    let ceiling = total.unwrap_or(super::series::float(history.peak)).max(1.0);
    let name = if gpu.number.is_empty() { "?" } else { &gpu.number };
    vec![
        Cell::text(name),
        Cell::text(&gpu.model),
        Cell::html(format!("<code>{}</code>", escape(&gpu.name))),
        Cell::text(&tasks),
        Cell::number(&if has_samples { format!("{mean:.0} %") } else { String::new() }),
        sparkline(
            &history.utilization,
            whole,
            100.0,
            0,
            &format!("utilization of GPU {name}, highest {busiest:.0} %"),
        ),
        Cell::number(&if history.peak > 0 { bytes(history.peak) } else { String::new() }),
        Cell::number(&gpu.memory_bytes.map(bytes).unwrap_or_default()),
        sparkline(
            &history.memory,
            whole,
            ceiling,
            1,
            &format!("memory of GPU {name}, highest {}", bytes(history.peak)),
        ),
    ]
}

/// A small line without axes; an empty cell without values.
fn sparkline(points: &[(f64, f64)], whole: f64, ceiling: f64, color: usize, name: &str) -> Cell {
    if points.is_empty() {
        return Cell::default();
    }
    let place = |(second, value): (f64, f64)| {
        let x = (second / whole).clamp(0.0, 1.0) * WIDTH;
        let y = HEIGHT - 1.0 - (value / ceiling).clamp(0.0, 1.0) * (HEIGHT - 2.0);
        format!("{},{}", format_number(x), format_number(y))
    };
    let points: Vec<String> = downsample(points, (0.0, whole), MAX_POINTS).into_iter().map(place).collect();
    Cell::number_html(format!(
        "<svg class=\"spark\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\"><g class=\"line c{color}\"><polyline points=\"{}\"/></g></svg>",
        escape(name),
        points.join(" ")
    ))
}
