//! `jobc metrics`: the jobs of this host, as Prometheus reads them.

mod exposition;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use jobc_job::directory::Directory;
use jobc_job::metrics::LiveUsage;
use jobc_job::record::Record;
use jobc_place::state::JobState;
use jobc_place::task::TaskStatus;
use jobc_schema::progress::{DONE, TOTAL, is_progress};
use jobc_sys::error::file_error;
use jobc_sys::write_atomic::{Durability, write_atomic};

use super::jobs::{Result, open_local};
use crate::runtime::args::history::MetricsArgs;
use crate::terminal;
use exposition::{Exposition, Family};

/// The file that the textfile collector reads.
const FILE: &str = "jobc.prom";

const JOBS: Family =
    Family::gauge("jobc_jobs", "Jobs of this user by state, as far as their records are kept.");
const SUBMITTED: Family =
    Family::gauge("jobc_job_submitted_timestamp_seconds", "When a job that has not ended was submitted.");
const STARTED: Family = Family::gauge(
    "jobc_job_started_timestamp_seconds",
    "When the first task of a job that has not ended was started.",
);
const TASKS: Family = Family::gauge("jobc_job_tasks", "Tasks of a job that has not ended, by state.");
const GPUS: Family = Family::gauge("jobc_job_gpus", "GPUs that a job that has not ended holds.");
const ATTEMPT: Family = Family::gauge("jobc_task_attempt", "The attempt of a task, from 1.");
const CPU: Family = Family::counter("jobc_task_cpu_seconds_total", "CPU time of the attempt of a task.");
const MEMORY: Family = Family::gauge("jobc_task_memory_bytes", "Memory in use by a task.");
const MEMORY_LIMIT: Family = Family::gauge("jobc_task_memory_limit_bytes", "The memory limit of a task.");
const CPU_LIMIT: Family = Family::gauge("jobc_task_cpu_limit", "The CPU limit of a task in CPUs.");
const OOM_KILLS: Family = Family::counter(
    "jobc_task_oom_kills_total",
    "Processes of the attempt of a task that the kernel killed for lack of memory.",
);
const READ: Family =
    Family::counter("jobc_task_read_bytes_total", "Bytes that the attempt of a task read from disks.");
const WRITTEN: Family =
    Family::counter("jobc_task_written_bytes_total", "Bytes that the attempt of a task wrote to disks.");
const PIDS: Family = Family::gauge("jobc_task_processes", "Processes and threads of a task.");
const GPU_RATIO: Family =
    Family::gauge("jobc_task_gpu_utilization_ratio", "Share of the time in which a GPU of a task was busy.");
const GPU_MEMORY: Family = Family::gauge("jobc_task_gpu_memory_bytes", "Memory of a GPU that a task uses.");
const GPU_ENERGY: Family = Family::counter(
    "jobc_task_gpu_energy_joules_total",
    "Energy of the GPUs of the attempt of a task, by NVML.",
);
const CPU_ENERGY: Family = Family::counter(
    "jobc_task_cpu_energy_joules_total",
    "Energy of the processors by RAPL, as the share of the attempt of a task in all CPU time.",
);
const USER_METRIC: Family = Family::gauge("jobc_job_metric", "The last value of a metric of the job file.");

const DONE_FAMILY: Family = Family::gauge("jobc_role_progress_done", "What a role has done.");
const TOTAL_FAMILY: Family = Family::gauge("jobc_role_progress_total", "What a role has to do in all.");

pub(crate) fn run(args: &MetricsArgs) -> Result<ExitCode> {
    let text = text(&open_local()?.records()?);
    match &args.write {
        Some(directory) => write(directory, &text)?,
        None => terminal::print(&text),
    }
    Ok(ExitCode::SUCCESS)
}

/// Replaces the file in one step, readable by the user of the node exporter.
fn write(directory: &Path, text: &str) -> Result<()> {
    let path = directory.join(FILE);
    write_atomic(&path, text.as_bytes(), 0o644, Durability::Rename).map_err(|error| {
        file_error("write", &path, &error)
            .help("name the directory of `--collector.textfile.directory`, which this user may write to")
    })?;
    Ok(())
}

/// All metrics.
fn text(records: &[(Directory, Record)]) -> String {
    let mut out = Exposition::default();
    let mut states: BTreeMap<&str, u64> = JobState::ALL.iter().map(|state| (state.as_str(), 0)).collect();
    for (_, record) in records {
        *states.entry(record.state.as_str()).or_default() += 1;
    }
    for (state, count) in states {
        out.add(&JOBS, &[("state", state)], count);
    }
    for (directory, record) in records.iter().filter(|(_, record)| !record.state.is_final()) {
        of_job(&mut out, directory, record);
    }
    out.render()
}

fn of_job(out: &mut Exposition, directory: &Directory, record: &Record) {
    let id = record.id.to_string();
    let labels = [("name", record.id.name.as_str()), ("run", id.as_str())];
    out.add(&SUBMITTED, &labels, seconds(record.submitted.millis()));
    if let Some(started) = record.started {
        out.add(&STARTED, &labels, seconds(started.millis()));
    }
    let mut states: BTreeMap<&str, u64> = BTreeMap::new();
    for task in &record.tasks {
        *states.entry(record.state_of(task)).or_default() += 1;
    }
    for (state, count) in states {
        out.add(&TASKS, &[labels[0], labels[1], ("state", state)], count);
    }
    // Not `job`: that is the label of what Prometheus scrapes.
    out.add(&GPUS, &labels, record.claim.leased.slots.len());
    for (name, family) in [(DONE, &DONE_FAMILY), (TOTAL, &TOTAL_FAMILY)] {
        for metric in record.metrics.iter().filter(|metric| metric.name == name) {
            let role = metric.task.role.as_str();
            out.add(family, &[labels[0], labels[1], ("role", role)], number(metric.value.0));
        }
    }
    for metric in record.metrics.iter().filter(|metric| !is_progress(&metric.name)) {
        let task = metric.task.to_string();
        let all = [labels[0], labels[1], ("task", task.as_str()), ("metric", metric.name.as_str())];
        out.add(&USER_METRIC, &all, number(metric.value.0));
    }
    for sample in LiveUsage::new(directory).sample(record) {
        let task = sample.task.to_string();
        let labels = [labels[0], labels[1], ("role", sample.task.role.as_str()), ("task", task.as_str())];
        out.add(&ATTEMPT, &labels, sample.attempt);
        let usage = &sample.usage;
        let numbers = [
            (&MEMORY, usage.memory),
            (&OOM_KILLS, usage.oom_kills),
            (&READ, usage.read_bytes),
            (&WRITTEN, usage.written_bytes),
            (&PIDS, usage.pids),
        ];
        if let Some(usec) = usage.cpu_usec {
            out.add(&CPU, &labels, format!("{}.{:06}", usec / 1_000_000, usec % 1_000_000));
        }
        let energy = sample.energy.unwrap_or_default();
        for (family, millijoules) in
            [(&GPU_ENERGY, energy.gpu_millijoules), (&CPU_ENERGY, energy.cpu_millijoules)]
        {
            if let Some(millijoules) = millijoules {
                out.add(family, &labels, seconds(millijoules));
            }
        }
        for (family, number) in numbers {
            if let Some(number) = number {
                out.add(family, &labels, number);
            }
        }
        if let Some(task) = record.task(&sample.task) {
            limits(out, task, &labels);
        }
        for gpu in &sample.gpu {
            let labels = [labels[0], labels[1], labels[2], labels[3], ("gpu", gpu.gpu.as_str())];
            if let Some(percent) = gpu.utilization {
                out.add(&GPU_RATIO, &labels, format!("{}.{:02}", percent / 100, percent % 100));
            }
            if let Some(memory) = gpu.memory {
                out.add(&GPU_MEMORY, &labels, memory);
            }
        }
    }
}

/// A number as Prometheus writes it.
fn number(value: f64) -> String {
    match value {
        value if value.is_infinite() => if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned(),
        value => value.to_string(),
    }
}

fn limits(out: &mut Exposition, task: &TaskStatus, labels: &[(&'static str, &str)]) {
    if let Some(bytes) = task.limits.get("memory_bytes") {
        out.add(&MEMORY_LIMIT, labels, bytes);
    }
    if let Some(millis) = task.limits.get("cpu_millis") {
        out.add(&CPU_LIMIT, labels, seconds(*millis));
    }
}

/// Thousandths as a decimal number.
fn seconds(millis: u64) -> String {
    format!("{}.{:03}", millis / 1000, millis % 1000)
}
