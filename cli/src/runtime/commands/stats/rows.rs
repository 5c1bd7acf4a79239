//! One row per task: its current usage, from the difference to the last sample.

use std::collections::BTreeMap;

use jobc_job::metrics::Sample;
use jobc_job::record::{Record, TaskState};
use jobc_schema::plural;
use jobc_sys::id::TaskId;
use serde_json::{Value, json};

use crate::runtime::quantity::{bytes, percent};

/// The usage of a task.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub job: String,
    pub task: TaskId,
    pub state: TaskState,
    pub sample: Sample,
    /// Thousandths of a CPU; none before the second sample.
    pub cpu_millis: Option<u64>,
    /// Bytes per second.
    pub read: Option<u64>,
    pub written: Option<u64>,
    /// Its memory limit in bytes.
    pub memory_limit: Option<u64>,
    /// Whether the host enforces that limit.
    pub is_enforced: bool,
}

/// The last sample.
#[derive(Debug, Default)]
pub(crate) struct UsageRows {
    last: BTreeMap<(String, TaskId), Sample>,
}

impl UsageRows {
    /// The rows of a sample, in the order of the jobs and their plans.
    pub(crate) fn update(&mut self, jobs: Vec<(Record, Vec<Sample>)>) -> Vec<Row> {
        let mut rows = vec![];
        let mut last = BTreeMap::new();
        for (record, samples) in jobs {
            let job = record.id.to_string();
            for sample in samples {
                let key = (job.clone(), sample.task.clone());
                let before = self.last.get(&key).filter(|before| before.attempt == sample.attempt);
                let known = record.task(&sample.task);
                let rate = |of: fn(&Sample) -> Option<u64>| {
                    let before = before?;
                    let millis = u64::try_from(sample.time.since(before.time).as_millis()).ok()?;
                    let more = of(&sample)?.checked_sub(of(before)?)?;
                    (millis > 0).then(|| more.saturating_mul(1000) / millis)
                };
                rows.push(Row {
                    job: job.clone(),
                    task: sample.task.clone(),
                    state: known.map(|task| task.state).unwrap_or_default(),
                    cpu_millis: before.and_then(|before| sample.cpu_millis_since(before)),
                    read: rate(|sample| sample.usage.read_bytes),
                    written: rate(|sample| sample.usage.written_bytes),
                    memory_limit: known.and_then(|task| task.limits.get("memory_bytes").copied()),
                    is_enforced: !known
                        .is_some_and(|task| task.unenforced.iter().any(|name| name == "memory_bytes")),
                    sample: sample.clone(),
                });
                last.insert(key, sample);
            }
        }
        self.last = last;
        rows
    }
}

impl Row {
    /// Job, task, CPU, memory, its limit, read, written, pids, GPU.
    pub(crate) fn cells(&self) -> [String; 9] {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let usage = &self.sample.usage;
        [
            self.job.clone(),
            self.task.to_string(),
            or_dash(self.cpu_millis.map(percent)),
            or_dash(usage.memory.map(bytes)),
            or_dash(
                self.memory_limit
                    .map(|limit| if self.is_enforced { bytes(limit) } else { "not enforced".to_owned() }),
            ),
            or_dash(self.read.map(|rate| bytes(rate) + "/s")),
            or_dash(self.written.map(|rate| bytes(rate) + "/s")),
            or_dash(usage.pids.map(|pids| pids.to_string())),
            self.gpu(),
        ]
    }

    /// Each GPU: its utilization, and the memory that the task uses. Of a slice by MPS that is not known: then it is the
    /// use of the card, the number of slices that share it, and the limit of the task's memory.
    fn gpu(&self) -> String {
        let gpus = self.sample.gpu.iter().map(|gpu| {
            let busy = gpu.utilization.map(|percent| format!("{percent}%"));
            if let Some(mps) = &gpu.mps {
                let limit = mps.memory_limit.map(|limit| format!(" max {}", bytes(limit)));
                let slices = plural(mps.slices, "slice");
                return format!(
                    "card {} ({slices}){}",
                    busy.as_deref().unwrap_or("-"),
                    limit.unwrap_or_default()
                );
            }
            let words: Vec<String> = busy.into_iter().chain(gpu.memory.map(bytes)).collect();
            words.join(" ")
        });
        let gpus: Vec<String> = gpus.collect();
        if gpus.is_empty() { "-".to_owned() } else { gpus.join(", ") }
    }

    /// The row for programs: the sample, and the values computed from it.
    pub(crate) fn json(&self) -> Value {
        let mut value = json!({ "job": self.job, "state": self.state });
        let sample = json!(self.sample);
        if let (Some(row), Some(sample)) = (value.as_object_mut(), sample.as_object()) {
            row.extend(sample.clone());
        }
        value["cpu_millis"] = json!(self.cpu_millis);
        value["memory_limit"] = json!(self.memory_limit);
        value["memory_limit_enforced"] = json!(self.is_enforced);
        value["read_bytes_per_second"] = json!(self.read);
        value["written_bytes_per_second"] = json!(self.written);
        value
    }
}

#[cfg(test)]
mod tests {
    use jobc_job::metrics::{GpuUse, MpsUse};
    use jobc_job::time::Time;

    use super::*;

    fn look(millis: u64, cpu_usec: u64, written: u64) -> Vec<(Record, Vec<Sample>)> {
        let record = json!({
            "version": 1, "id": "train.1", "source": "/job.yaml", "target": "local", "owner": 0, "state": "running",
            "submitted": "2026-11-21T13:31:53.250Z", "attempt": 1, "network": "host",
            "claim": {"cpu_millis": 0, "memory_bytes": 0, "gpus": 0, "disk_bytes": 0},
            "tasks": [{"task": "worker-0", "state": "running", "attempt": 1, "limits": {"memory_bytes": 1_073_741_824}}],
        });
        let sample = json!({
            "time": Time::from_millis(millis), "task": "worker-0", "attempt": 1, "cpu_usec": cpu_usec,
            "memory": 52_428_800, "written_bytes": written, "pids": 3,
            "gpu": [{"gpu": "GPU-1", "memory": 1_073_741_824, "utilization": 97}],
        });
        vec![(serde_json::from_value(record).unwrap(), vec![serde_json::from_value(sample).unwrap()])]
    }

    #[test]
    fn rates_are_computed_since_the_last_sample() {
        let mut rows = UsageRows::default();
        let first = rows.update(look(1000, 0, 0)).remove(0);
        assert_eq!(first.cells()[2..], ["-", "50.0 MiB", "1.0 GiB", "-", "-", "3", "97% 1.0 GiB"]);
        let second = rows.update(look(3000, 1_000_000, 2048)).remove(0);
        assert_eq!(
            second.cells(),
            ["train.1", "worker-0", "50%", "50.0 MiB", "1.0 GiB", "-", "1.0 KiB/s", "3", "97% 1.0 GiB"]
        );
        assert_eq!(second.json()["cpu_millis"], 500);
        let mut unenforced = look(4000, 0, 0);
        unenforced[0].0.tasks[0].unenforced = vec!["memory_bytes".to_owned()];
        assert_eq!(UsageRows::default().update(unenforced).remove(0).cells()[4], "not enforced");
        let mut sliced = look(5000, 0, 0);
        let mps = |limit, slices| Some(MpsUse { memory_limit: limit, slices });
        let gpu = |number: u32, utilization, mps| GpuUse {
            gpu: format!("GPU-{number}"),
            memory: None,
            utilization,
            mps,
        };
        sliced[0].1[0].gpu = vec![gpu(1, Some(97), mps(Some(8 << 30), 3)), gpu(2, None, mps(None, 1))];
        let sliced = UsageRows::default().update(sliced).remove(0);
        assert_eq!(sliced.cells()[8], "card 97% (3 slices) max 8.0 GiB, card - (1 slice)");
        assert_eq!(
            sliced.json()["gpu"][0],
            json!({"gpu": "GPU-1", "utilization": 97, "mps": {"memory_limit": 8_u64 << 30, "slices": 3}})
        );
        // A clock that was set back gives no rate.
        assert_eq!(rows.update(look(2000, 1_000_000, 2048)).remove(0).cells()[2], "-");
    }
}
