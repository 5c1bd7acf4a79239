//! The resource usage of an attempt of a task at one time.

use serde::{Deserialize, Serialize};

use jobc_container::cgroup::Usage;
use jobc_place::energy::EnergyUse;
use jobc_place::time::Time;
use jobc_place::usage::GpuUse;
use jobc_sys::id::TaskId;

/// The resource usage of an attempt of a task at one time: a line of `samples.jsonl`.
///
/// CPU time, peaks, hits, kills and bytes of disks are sums since the attempt began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When.
    pub time: Time,
    /// The task.
    pub task: TaskId,
    /// Its attempt, from 1.
    pub attempt: u32,
    /// Its resource usage.
    #[serde(flatten)]
    pub usage: Usage,
    /// The GPUs that its processes used, or of which it has slices by MPS.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu: Vec<GpuUse>,
    /// The energy that it has used, where something counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyUse>,
    /// Whether no cgroup counts all of it: then CPU time, memory, disks and processes are sums over the processes, from
    /// /proc.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_processes: bool,
    /// Whether it is the attempt's last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub last: bool,
}

impl Sample {
    /// Thousandths of a CPU used between an earlier sample of the same attempt and this one.
    pub fn cpu_millis_since(&self, earlier: &Self) -> Option<u64> {
        let used = self.usage.cpu_usec?.checked_sub(earlier.usage.cpu_usec?)?;
        let micros = u64::try_from(self.time.since(earlier.time).as_micros()).ok()?;
        (micros > 0).then(|| used.saturating_mul(1000) / micros)
    }
}
