//! What jobs used of what they asked for, as `jobc history` prints it.

use jobc_schema::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ListedJob;
use crate::energy::EnergyTotal;
use crate::job::JobSummary;
use crate::time::Time;

/// A job, and what it used.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HistoryJob<'a> {
    #[serde(flatten)]
    job: ListedJob<'a>,
    /// Seconds from the start of its first task to its end, or until now; null if no task was started.
    ran_seconds: Option<u64>,
    /// What it used, where the place has measurements.
    usage: Option<&'a JobUsage>,
}

/// What a job used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobUsage {
    /// Its GPUs times the seconds that it held them, over all attempts.
    pub gpu_seconds: u64,
    /// Seconds of CPU time, over all attempts.
    pub cpu_seconds: u64,
    /// The energy of all attempts, as far as it is known.
    #[serde(default)]
    pub energy: EnergyTotal,
    /// The cost by the prices of its target; null without prices.
    #[serde(default)]
    pub cost: Option<Cost>,
    /// Its roles; the combinations of a role's matrix are one role.
    pub roles: Vec<RoleUsage>,
}

/// An amount of money.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// How much.
    pub amount: Decimal,
    /// The currency, as the target calls it.
    pub currency: String,
}

impl Cost {
    /// For people: `12.30 EUR`.
    pub fn text(&self) -> String {
        format!("{} {}", self.amount.rounded(), self.currency)
    }
}

/// What the tasks of a role used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoleUsage {
    /// The role in the job file.
    pub role: String,
    /// The number of its tasks.
    pub tasks: u64,
    /// The attempts of its tasks that were started.
    pub attempts: u64,
    /// What a task may use; the largest, where tasks differ.
    pub asked: TaskLimits,
    /// What a task used at most.
    pub used: Used,
}

/// The limits of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskLimits {
    /// Thousandths of a CPU.
    pub cpu_millis: Option<u64>,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// GPUs.
    pub gpus: u64,
}

/// What a task used, of all tasks of a role the largest number; null where it was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Used {
    /// Peak use between two samples, in thousandths of a CPU.
    pub cpu_millis_peak: Option<u64>,
    /// Mean use over an attempt, in thousandths of a CPU.
    pub cpu_millis_mean: Option<u64>,
    /// Peak memory in bytes, with the page cache that the kernel counts for the task.
    pub memory_peak_bytes: Option<u64>,
    /// Percent of the time in which its GPUs were busy, over all samples.
    pub gpu_percent_mean: Option<u64>,
    /// Peak memory of one of its GPUs, in bytes.
    pub gpu_memory_peak_bytes: Option<u64>,
    /// Processes that the kernel killed for lack of memory, over all tasks and attempts.
    pub oom_kills: u64,
}

impl<'a> HistoryJob<'a> {
    /// A job by the id that commands take.
    pub fn new(id: &'a str, summary: &'a JobSummary, usage: Option<&'a JobUsage>, now: Time) -> Self {
        let ran = summary.started.map(|started| summary.ended.unwrap_or(now).since(started).as_secs());
        Self { job: ListedJob::new(id, summary), ran_seconds: ran, usage }
    }
}
