//! One row per task: its current usage, and the rates since the last measurement.

use std::collections::BTreeMap;

use jobc_place::output::UsageLine;
use jobc_place::usage::TaskUsage;
use jobc_schema::plural;
use jobc_sys::id::TaskId;
use serde_json::{Value, json};

use crate::runtime::quantity::{bytes, percent};

/// The usage of a task.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What a user calls its job.
    pub job: String,
    pub usage: TaskUsage,
    /// Its place in the order of jobs and plans.
    pub place: usize,
}

/// The last measurement.
#[derive(Debug, Default)]
pub(crate) struct UsageRows {
    last: BTreeMap<(String, TaskId), TaskUsage>,
}

impl UsageRows {
    /// The rows of a measurement, in the order of the jobs and their plans.
    pub(crate) fn update(&mut self, jobs: Vec<(String, Vec<TaskUsage>)>) -> Vec<Row> {
        let mut rows: Vec<Row> = vec![];
        let mut last = BTreeMap::new();
        for (job, tasks) in jobs {
            for mut usage in tasks {
                let key = (job.clone(), usage.task.clone());
                last.insert(key.clone(), usage.clone());
                if let Some(before) = self.last.get(&key) {
                    usage.compare(before);
                }
                rows.push(Row { job: job.clone(), usage, place: rows.len() });
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
        let usage = &self.usage;
        let per_second = |rate: Option<u64>| or_dash(rate.map(|rate| bytes(rate) + "/s"));
        let limit = |limit| {
            if usage.memory_limit_enforced { bytes(limit) } else { "not enforced".to_owned() }
        };
        [
            self.job.clone(),
            usage.task.to_string(),
            or_dash(usage.cpu_millis.map(percent)),
            or_dash(usage.memory.map(bytes)),
            or_dash(usage.memory_limit.map(limit)),
            per_second(usage.read_bytes_per_second),
            per_second(usage.written_bytes_per_second),
            or_dash(usage.pids.map(|pids| pids.to_string())),
            self.gpu(),
        ]
    }

    /// Each GPU: its utilization, and the memory that the task uses. Of a slice by MPS that is not known: then it is the
    /// use of the card, the number of slices that share it, and the limit of the task's memory.
    fn gpu(&self) -> String {
        let gpus = self.usage.gpu.iter().map(|gpu| {
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

    /// The row for programs.
    pub(crate) fn json(&self) -> Value {
        json!(UsageLine { job: &self.job, usage: &self.usage })
    }
}

#[cfg(test)]
mod tests {
    use jobc_place::task::TaskState;
    use jobc_place::time::Time;
    use jobc_place::usage::{GpuUse, MpsUse};

    use super::*;

    fn look(millis: u64, cpu_usec: u64, written: u64) -> Vec<(String, Vec<TaskUsage>)> {
        let task = "worker-0".parse().unwrap();
        let gpu = GpuUse { memory: Some(1 << 30), utilization: Some(97), ..GpuUse::default() };
        let usage = TaskUsage {
            cpu_usec: Some(cpu_usec),
            memory: Some(50 << 20),
            memory_limit: Some(1 << 30),
            written_bytes: Some(written),
            pids: Some(3),
            gpu: vec![gpu],
            ..TaskUsage::new(Time::from_millis(millis), task, 1, TaskState::Running)
        };
        vec![("train.1".to_owned(), vec![usage])]
    }

    #[test]
    fn rates_are_computed_since_the_last_measurement() {
        let mut rows = UsageRows::default();
        let first = rows.update(look(1000, 0, 0)).remove(0);
        assert_eq!(first.cells()[2..], ["-", "50.0 MiB", "1.0 GiB", "-", "-", "3", "97% 1.0 GiB"]);
        let second = rows.update(look(3000, 1_000_000, 2048)).remove(0);
        assert_eq!(
            second.cells(),
            ["train.1", "worker-0", "50%", "50.0 MiB", "1.0 GiB", "-", "1.0 KiB/s", "3", "97% 1.0 GiB"]
        );
        assert_eq!((&second.json()["cpu_millis"], &second.json()["state"]), (&json!(500), &json!("running")));
        // A clock that was set back gives no rate.
        assert_eq!(rows.update(look(2000, 1_000_000, 2048)).remove(0).cells()[2], "-");
        let mut unenforced = look(4000, 0, 0);
        unenforced[0].1[0].memory_limit_enforced = false;
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
    }
}
