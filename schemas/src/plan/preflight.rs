//! The checks of a role before its command.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A check before the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CheckPlan {
    /// The task sees its GPUs.
    Gpus {},
    /// The driver is at least this version.
    Driver {
        /// The version. Default: what the image's own `CUDA_VERSION` needs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        oldest: Option<String>,
        /// What needs it, as text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        needed_by: Option<String>,
    },
    /// Each GPU multiplies matrices correctly.
    Matmul {},
    /// A file below each path can be read.
    Data {
        /// Paths of the task.
        paths: Vec<String>,
    },
    /// Bytes are free.
    Disk {
        /// How many.
        bytes: u64,
        /// Directories of the task.
        paths: Vec<String>,
    },
    /// The members of the rendezvous reach the first one.
    Network {
        /// How long they wait for each other.
        seconds: u64,
    },
    /// The clocks of the members of the rendezvous are the same.
    Clock {
        /// By how much they may differ.
        seconds: u64,
    },
    /// The processes of the rendezvous add up a tensor.
    Allreduce {
        /// Bytes a second of the bus that they reach at least.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes_per_second: Option<u64>,
    },
    /// A command of the user.
    Run {
        /// The command line for `sh`.
        command: String,
        /// How long it may take.
        timeout_seconds: u64,
    },
}
