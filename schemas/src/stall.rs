//! Tasks that make no progress: `stall` of a job or a role.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::Seconds;

/// When a task makes no progress, and what is done about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// How long two of the signs must last together.
    #[schemars(extend("examples" = ["10m"]))]
    pub after: Seconds,
    /// Signs that are looked at, at least two. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["logs", "cpu"]]))]
    pub signs: Vec<StallSign>,
    /// What is done when it makes no progress, after what was seen of it was recorded.
    #[serde(default)]
    #[schemars(extend("default" = "report", "examples" = ["restart"]))]
    pub action: StallAction,
}

/// A sign that a task makes no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StallSign {
    /// It writes no line.
    Logs,
    /// It reads and writes nothing: disks, files, a network of its own.
    Io,
    /// It uses no CPU time.
    Cpu,
    /// Its GPUs are used all the time and draw little power, as while they wait in a collective.
    Gpu,
    /// NCCL reports that ranks have lost each other, by its RAS service.
    Nccl,
}

impl StallSign {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Logs, Self::Io, Self::Cpu, Self::Gpu, Self::Nccl];

    /// As text: `no log line`.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Logs => "no log line",
            Self::Io => "no I/O",
            Self::Cpu => "no CPU time",
            Self::Gpu => "GPUs at full use with low power",
            Self::Nccl => "NCCL has lost ranks",
        }
    }
}

/// What is done about a task that makes no progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StallAction {
    /// It is reported, and goes on.
    #[default]
    Report,
    /// Its attempt is ended, for good.
    Fail,
    /// Its attempt is ended and retried, as `retry` says.
    Restart,
}
