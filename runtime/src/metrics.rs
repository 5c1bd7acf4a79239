//! What tasks use while they run: read from their control groups, and from the driver for GPUs.
//!
//! A [`Sampler`] is part of a job's supervisor. It asks the kernel once a second, or less often where that would cost more than a
//! thousandth of a CPU, and appends what has changed to `samples.jsonl`, a [`Sample`] a line. That file stays small: the longer a
//! job runs, the further apart are the samples that are kept ([`Keep`]).

mod gpu;
mod keep;
mod live;
mod sampler;

use serde::{Deserialize, Serialize};

pub use gpu::GpuUse;
pub use keep::Keep;
pub use live::Live;
pub use sampler::Sampler;

use crate::cgroup::Usage;
use crate::job::{Folder, TaskId, Time};

/// What an attempt of a task had used at a time: a line of `samples.jsonl`.
///
/// CPU time, peaks, hits, kills and bytes of disks are sums since the attempt began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When.
    pub time: Time,
    /// Which task.
    pub task: TaskId,
    /// Its attempt, from 1.
    pub attempt: u32,
    /// What it had used.
    #[serde(flatten)]
    pub usage: Usage,
    /// The GPUs that its processes used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu: Vec<GpuUse>,
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

/// Reads a job's samples, in the order they were taken; lines that are none are left out.
pub fn read(folder: &Folder) -> Vec<Sample> {
    let text = std::fs::read(folder.samples_file()).unwrap_or_default();
    text.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}
