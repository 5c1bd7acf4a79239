//! The resource usage of tasks on this host, as every place shows it.

use jobc_place::task::TaskState;
use jobc_place::usage::TaskUsage;
use serde_json::{Map, Value, json};

use crate::metrics::Sample;
use crate::record::Record;

/// The measured tasks of a job.
pub fn measured(record: &Record, samples: Vec<Sample>) -> Vec<TaskUsage> {
    samples.into_iter().map(|sample| of_sample(record, sample)).collect()
}

/// A measured task.
fn of_sample(record: &Record, sample: Sample) -> TaskUsage {
    let known = record.task(&sample.task);
    let state = known.map_or(TaskState::Waiting, |task| task.state);
    let is_unenforced = known.is_some_and(|task| task.unenforced.iter().any(|name| name == "memory_bytes"));
    let more = more(&sample);
    let Sample { time, task, attempt, usage, gpu, energy, .. } = sample;
    TaskUsage {
        cpu_usec: usage.cpu_usec,
        memory: usage.memory,
        memory_limit: known.and_then(|task| task.limits.get("memory_bytes").copied()),
        memory_limit_enforced: !is_unenforced,
        read_bytes: usage.read_bytes,
        written_bytes: usage.written_bytes,
        pids: usage.pids,
        gpu,
        energy,
        more,
        ..TaskUsage::new(time, task, attempt, state)
    }
}

/// What only this host measures.
fn more(sample: &Sample) -> Map<String, Value> {
    let names = ["memory_peak", "memory_limit_hits", "oom_kills", "from_processes", "last"];
    let Value::Object(mut all) = json!(sample) else { return Map::new() };
    all.retain(|name, _| names.contains(&name.as_str()));
    all
}
