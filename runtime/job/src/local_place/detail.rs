//! A job of this host as every place describes it.

use std::time::Duration;

use jobc_gpu::device_names::short_name;
use jobc_gpu::lease::{Sharing, Slot};
use jobc_place::job::{JobDetail, JobSummary, TaskCounts};
use jobc_place::progress::Progress;
use jobc_place::state::JobState;
use jobc_place::task::TaskState;
use jobc_place::time::{Time, format_duration};
use jobc_schema::Bytes;
use jobc_sys::error::Result;
use serde_json::{Map, Value, json};

use crate::admission::estimate::Start;
use crate::admission::ledger::Ledger;
use crate::directory::Directory;
use crate::event;
use crate::record::Record;
use crate::unmet;

/// A job as every place lists it.
pub fn summary(record: &Record) -> JobSummary {
    let mut states: Vec<(&'static str, u64)> = Vec::new();
    for task in &record.tasks {
        let state = record.state_of(task);
        match states.iter_mut().find(|(known, _)| *known == state) {
            Some((_, count)) => *count += 1,
            None => states.push((state, 1)),
        }
    }
    let count = |is_meant: fn(TaskState) -> bool| {
        record.tasks.iter().filter(|task| is_meant(task.state)).count() as u64
    };
    JobSummary {
        tasks: TaskCounts {
            wanted: record.tasks.len() as u64,
            active: count(TaskState::is_alive),
            succeeded: count(|state| state == TaskState::Succeeded),
            failed: count(|state| state == TaskState::Failed),
        },
        states,
        submitted: Some(record.submitted),
        started: record.started,
        ended: record.ended,
        end: record.end.clone(),
        is_short: record.tasks.iter().any(|task| task.state == TaskState::Waiting),
        description: record.description.clone(),
        source: Some(record.source.clone()),
        progress: Progress::of_job(&record.metrics, &record.tasks, Time::now()),
        sweep: record.sweep.clone(),
        ..JobSummary::new(record.id.to_string(), &record.id.name, record.state)
    }
}

/// A job with its tasks.
pub fn detail(directory: &Directory, record: Record) -> JobDetail {
    let summary = summary(&record);
    let facts = facts(directory, &record);
    let Record { mut tasks, attempt, notes, combinations, metrics, claim, end, .. } = record;
    for task in &mut tasks {
        let number = |name: &String| {
            claim.leased.slot_named(name).map_or_else(|| name.clone(), |slot| short_name(slot.device))
        };
        task.gpu_numbers = task.gpus.iter().map(number).collect();
    }
    JobDetail {
        attempt,
        reasons: end.into_iter().map(|end| end.explanation).collect(),
        notes,
        facts,
        combinations,
        metrics,
        directory: Some(record.directory),
        ..JobDetail::new(summary, tasks)
    }
}

/// A job with its tasks, and the needs that it waits for.
pub(super) fn with_needs(directory: &Directory, record: Record) -> Result<JobDetail> {
    let needs = unmet::of_job(directory, &record)?;
    let waits = (record.state == JobState::Queued).then(|| last_wait(directory)).flatten();
    let turn = turn_of(directory, &record);
    let mut detail = detail(directory, record);
    detail.reasons.extend(waits.into_iter().chain(turn).chain(needs));
    Ok(detail)
}

/// Whose turn it is on the GPUs of a job that shares them by time, as a sentence.
pub(super) fn turn_of(directory: &Directory, record: &Record) -> Option<String> {
    let is_frozen = record.state == JobState::Paused;
    let takes_turns = !record.claim.leased.cards_in_turns().is_empty();
    if !takes_turns || !is_frozen && record.state != JobState::Running {
        return None;
    }
    Ledger::standard(&directory.parents()).ok()?.turn_of(&record.id, is_frozen)
}

/// What a job of the queue waits for, by its last event.
fn last_wait(directory: &Directory) -> Option<String> {
    let events = event::Reader::new(directory).read().ok()?;
    events.iter().rev().find_map(super::changes::waits)
}

/// When a job of the queue starts, as a sentence.
pub(super) fn estimate(start: &Start, now: Time) -> String {
    match start {
        Start::Within(0, _) => "it can start now".to_owned(),
        Start::Within(seconds, last) => {
            let at = Time::from_millis(now.millis().saturating_add(seconds.saturating_mul(1000)));
            let wait = format_duration(Duration::from_secs(*seconds));
            format!("it starts in {wait} at the latest, at {at}, when {last} reaches its `timeout`")
        }
        Start::Unknown(holders) => match &holders[..] {
            [one] => format!("nothing limits the wait: {one} has no `timeout`"),
            several => format!("nothing limits the wait: {} have no `timeout`", several.join(", ")),
        },
    }
}

/// The record without its tasks, the paths of its files, and the plan.
pub(super) fn more(directory: &Directory, record: Record) -> Map<String, Value> {
    let plan = std::fs::read(directory.plan_file()).ok();
    let plan: Option<Value> = plan.and_then(|text| serde_json::from_slice(&text).ok());
    let files = json!({
        "record": directory.record,
        "events": directory.events_file(),
        "samples": directory.samples_file(),
        "logs": directory.record.join("logs"),
        "state": directory.state.exists().then_some(&directory.state),
    });
    let Value::Object(mut more) = json!(Record { tasks: vec![], ..record }) else { return Map::new() };
    more.remove("tasks");
    more.insert("files".to_owned(), files);
    more.insert("plan".to_owned(), json!(plan));
    more
}

fn facts(directory: &Directory, record: &Record) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("target", record.target.clone()),
        ("network", record.network.clone()),
        ("takes", record.claim.describe()),
    ];
    facts.extend(record.claim.leased.slots.iter().map(|slot| ("gpu", gpu(slot))));
    facts.extend(record.scope.iter().map(|unit| ("scope", unit.clone())));
    facts.push(("record", directory.record.display().to_string()));
    facts
}

/// A GPU of a job: its number, its name, and the amount.
fn gpu(slot: &Slot) -> String {
    let device = format!("{} {}", short_name(slot.device), slot.name);
    let Some(slice) = &slot.slice else { return device };
    let memory = slice.memory_bytes.map(|bytes| format!("{} of memory", Bytes(bytes).amount()));
    let cores = slice.cores_percent.map(|percent| format!("{percent} % of the cores"));
    let parts: Vec<String> = memory.into_iter().chain(cores).collect();
    let amount = if parts.is_empty() { String::new() } else { format!(", {}", parts.join(" and ")) };
    if slice.by == Sharing::Time {
        return format!("{device}{amount}, in turns with other jobs");
    }
    format!("{device}{amount}, shared by {}, enforced by {}", slice.by.as_str(), slice.enforced_by.words())
}
