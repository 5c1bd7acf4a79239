//! The resource usage of tasks.

use jobc_sys::id::TaskId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::energy::EnergyUse;
use crate::task::TaskState;
use crate::time::Time;

/// The resource usage of an attempt of a task at one time.
///
/// CPU time and bytes of disks are sums since the attempt began; a place has those, or the rates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskUsage {
    /// When.
    pub time: Time,
    /// The task.
    #[schemars(with = "String")]
    pub task: TaskId,
    /// Its attempt, from 1.
    pub attempt: u32,
    /// Its state.
    pub state: TaskState,
    /// CPU time in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_usec: Option<u64>,
    /// CPU time per time, in thousandths of a processor.
    #[serde(default)]
    pub cpu_millis: Option<u64>,
    /// Its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_limit_millis: Option<u64>,
    /// Memory in use, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Its limit.
    #[serde(default)]
    pub memory_limit: Option<u64>,
    /// Whether something enforces that limit.
    #[serde(default)]
    pub memory_limit_enforced: bool,
    /// Bytes read from disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes written to disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// The same in a second.
    #[serde(default)]
    pub read_bytes_per_second: Option<u64>,
    /// The same in a second.
    #[serde(default)]
    pub written_bytes_per_second: Option<u64>,
    /// Processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u64>,
    /// The GPUs that it uses; empty if it has none, or their use is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu: Vec<GpuUse>,
    /// The energy that it has used, where something counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyUse>,
    /// What else the place measures, for programs.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// The usage of a GPU by a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GpuUse {
    /// The GPU's UUID, where it is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gpu: String,
    /// Bytes of its memory that the task's processes hold; not known of a slice by MPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Percent of the time in which the GPU was busy, with whichever processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<u8>,
    /// The task's slice of it by MPS. NVML reports the server instead of the processes that it serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mps: Option<MpsUse>,
}

/// What is known of the use of a slice by MPS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MpsUse {
    /// Bytes of the GPU's memory that the task may use, if they are limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
    /// How many slices of the GPU jobs have, this one included.
    pub slices: u32,
}

impl TaskUsage {
    /// A task of which nothing is measured yet.
    pub fn new(time: Time, task: TaskId, attempt: u32, state: TaskState) -> Self {
        Self { time, task, attempt, state, memory_limit_enforced: true, ..Self::default() }
    }

    /// Computes the rates since an earlier measurement of the same attempt, where the place has only sums.
    pub fn compare(&mut self, earlier: &Self) {
        if earlier.attempt != self.attempt || earlier.task != self.task {
            return;
        }
        let micros = u64::try_from(self.time.since(earlier.time).as_micros()).unwrap_or(u64::MAX);
        let rate = |now: Option<u64>, before: Option<u64>, scale: u64| {
            let more = now?.checked_sub(before?)?;
            more.saturating_mul(scale).checked_div(micros)
        };
        let per_second = |now, before| rate(now, before, 1_000_000);
        self.cpu_millis = self.cpu_millis.or_else(|| rate(self.cpu_usec, earlier.cpu_usec, 1000));
        self.read_bytes_per_second =
            self.read_bytes_per_second.or_else(|| per_second(self.read_bytes, earlier.read_bytes));
        self.written_bytes_per_second =
            self.written_bytes_per_second.or_else(|| per_second(self.written_bytes, earlier.written_bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(millis: u64, attempt: u32, cpu_usec: u64, written: u64) -> TaskUsage {
        let task = "worker-0".parse().unwrap();
        TaskUsage {
            cpu_usec: Some(cpu_usec),
            written_bytes: Some(written),
            ..TaskUsage::new(Time::from_millis(millis), task, attempt, TaskState::Running)
        }
    }

    #[test]
    fn rates_are_computed_since_the_last_measurement() {
        let first = usage(1000, 1, 0, 0);
        let mut second = usage(3000, 1, 1_000_000, 2048);
        second.compare(&first);
        assert_eq!((second.cpu_millis, second.written_bytes_per_second), (Some(500), Some(1024)));
        assert_eq!(second.read_bytes_per_second, None);
        // Another attempt begins at 0 again, and no time may have passed.
        let mut other = usage(4000, 2, 0, 0);
        other.compare(&second);
        assert_eq!(other.cpu_millis, None);
        let mut same = usage(1000, 1, 5, 5);
        same.compare(&first);
        assert_eq!(same.cpu_millis, None);
    }
}
