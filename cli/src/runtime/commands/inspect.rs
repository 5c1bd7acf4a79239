//! `jobc inspect`: prints the details of a job.

use std::process::ExitCode;

use jobc_gpu::device_names::short_name;
use jobc_gpu::lease::Slot;
use jobc_job::directory::Directory;
use jobc_job::record::{Claim, Record};
use jobc_job::time::Time;
use jobc_schema::Bytes;
use jobc_schema::plural;
use serde_json::{Value, json};

use super::jobs::{Jobs, Result, format_ago, format_duration, json_text, name};
use super::newest;
use super::ps;
use super::sweep::choices;
use crate::args::FormatArg;
use crate::report::cpus;
use crate::runtime::args::jobs::InspectArgs;
use crate::runtime::args::metric::MetricArgs;
use crate::table::escape_control;
use crate::terminal;

pub(crate) fn run(args: &InspectArgs) -> Result<ExitCode> {
    let (directory, record) = newest::named_or_newest(&Jobs::open()?, name(args.job.as_ref())?)?;
    if args.output_args.format == FormatArg::Json {
        terminal::print(&json_text(&json_details(&directory, &record)));
    } else {
        let now = Time::now();
        terminal::print(&(text_details(&directory, &record, now) + "\n"));
        let metrics = choices(&MetricArgs::default(), std::iter::once(&record));
        let tasks = ps::tasks_table(&directory, &record, &metrics, now);
        terminal::print(&tasks.render(terminal::columns_of_stdout()));
        terminal::print(&earlier_attempts(&record));
    }
    Ok(ExitCode::SUCCESS)
}

/// The record, the paths of its files, and the plan.
fn json_details(directory: &Directory, record: &Record) -> Value {
    let mut value = json!(record);
    let plan = std::fs::read(directory.plan_file()).ok();
    let plan: Option<Value> = plan.and_then(|text| serde_json::from_slice(&text).ok());
    value["files"] = json!({
        "record": directory.record,
        "events": directory.events_file(),
        "samples": directory.samples_file(),
        "logs": directory.record.join("logs"),
        "state": directory.state.exists().then_some(&directory.state),
    });
    value["plan"] = json!(plan);
    value
}

fn text_details(directory: &Directory, record: &Record, now: Time) -> String {
    let mut lines = vec![("job", directory.id.to_string())];
    lines.extend(record.description.clone().map(|text| ("description", text)));
    lines.push(("state", record.state.as_str().to_owned()));
    lines.extend(record.end.iter().map(|end| ("end", end.cause(record.state).to_owned())));
    lines.extend(record.end.iter().map(|end| ("exit code", end.exit_code.to_string())));
    lines.push(("source", record.source.display().to_string()));
    lines.push(("target", record.target.clone()));
    let moment = |time: Time| format!("{time} ({})", format_ago(time, now));
    lines.push(("submitted", moment(record.submitted)));
    lines.extend(record.started.map(|time| ("started", moment(time))));
    lines.extend(record.ended.map(|time| ("ended", moment(time))));
    lines
        .extend(record.started.map(|time| ("ran", format_duration(record.ended.unwrap_or(now).since(time)))));
    if record.attempt > 1 {
        lines.push(("attempt", record.attempt.to_string()));
    }
    lines.push(("network", record.network.clone()));
    lines.push(("takes", describe_claim(&record.claim)));
    lines.extend(record.claim.leased.slots.iter().map(|slot| ("gpu", gpu(slot))));
    lines.extend(record.scope.iter().map(|unit| ("scope", unit.clone())));
    lines.extend(record.notes.iter().map(|note| ("note", note.clone())));
    lines.push(("record", directory.record.display().to_string()));
    lines.iter().map(|(what, text)| format!("{what:12} {}\n", escape_control(text))).collect()
}

/// The resources of the host that are counted, as text.
pub(crate) fn describe_claim(claim: &Claim) -> String {
    let mut parts = Vec::new();
    if claim.cpu_millis > 0 {
        parts.push(cpus(claim.cpu_millis));
    }
    if claim.memory_bytes > 0 {
        parts.push(format!("{} of memory", Bytes(claim.memory_bytes).amount()));
    }
    if claim.gpus > 0 {
        parts.push(plural(claim.gpus, "GPU"));
    }
    let slices = claim.leased.slots.iter().filter(|slot| slot.slice.is_some()).count();
    if slices > 0 {
        parts.push(if slices == 1 {
            "a slice of a GPU".to_owned()
        } else {
            format!("{slices} slices of GPUs")
        });
    }
    if claim.disk_bytes > 0 {
        parts.push(format!("{} of disk", Bytes(claim.disk_bytes)));
    }
    if !claim.ports.is_empty() {
        let numbers: Vec<String> = claim.ports.iter().map(u16::to_string).collect();
        parts.push(format!("ports {}", numbers.join(", ")));
    }
    if parts.is_empty() { "nothing that is counted".to_owned() } else { parts.join(", ") }
}

/// A GPU of a job: its number, its name, and the amount.
fn gpu(slot: &Slot) -> String {
    let device = format!("{} {}", short_name(slot.device), slot.name);
    let Some(slice) = &slot.slice else { return device };
    let memory = slice.memory_bytes.map(|bytes| format!("{} of memory", Bytes(bytes).amount()));
    let cores = slice.cores_percent.map(|percent| format!("{percent} % of the cores"));
    let parts: Vec<String> = memory.into_iter().chain(cores).collect();
    let amount = if parts.is_empty() { String::new() } else { format!(", {}", parts.join(" and ")) };
    format!("{device}{amount}, shared by {}, enforced by {}", slice.by.as_str(), slice.enforced_by.words())
}

/// The attempts before the last one, one per line.
fn earlier_attempts(record: &Record) -> String {
    let attempts =
        record.tasks.iter().flat_map(|task| task.earlier.iter().map(move |attempt| (&task.task, attempt)));
    attempts
        .map(|(task, attempt)| {
            let end = attempt.end_text().unwrap_or_default();
            format!("{task}, attempt {}: {}\n", attempt.attempt, escape_control(&end))
        })
        .collect()
}
