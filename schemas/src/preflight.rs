//! Checks before the command: `preflight` of a job or a role.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::Seconds;
use crate::quantity::Bytes;

/// The exit code of a task of which a check failed, and the node is at fault.
pub const NODE_AT_FAULT: u8 = 86;
/// The exit code of a task of which a check failed, and the job is at fault.
pub const JOB_AT_FAULT: u8 = 87;

/// The variable with the name of the node for the checks, where it is not that of the host.
pub const NODE: &str = "JOBC_NODE";
/// The word that names the checks in the command of a task: the fourth, after `sh -c SCRIPT`.
pub const NAME: &str = "jobc-preflight";

/// A check before the command of each attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Check {
    /// A check by its name alone.
    Word(CheckWord),
    /// A check with what it measures against.
    Measured(MeasuredCheck),
}

/// Checks that need no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CheckWord {
    /// The task sees as many GPUs as it asked for.
    Gpus,
    /// The GPU driver is new enough for the image, and for `driver` of the GPUs.
    Driver,
    /// Each GPU multiplies two matrices of whole numbers, and the product is right. Needs PyTorch.
    Matmul,
    /// A file of each entry of `data` can be read.
    Data,
    /// The clocks of the tasks of `distributed` differ by at most a second. Needs Python.
    Clock,
    /// The tasks of `distributed` reach the first one at the port of the rendezvous, within 5 minutes. Needs Python.
    Network,
    /// The processes of `distributed` add up a tensor, by NCCL with GPUs and by gloo without. Needs PyTorch.
    Allreduce,
}

/// A check with what it measures against. Exactly one of `disk`, `clock`, `network`, `allreduce` and `run` is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasuredCheck {
    /// Bytes that are free in each output, or in the working directory without outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["100GiB"]))]
    pub disk: Option<Bytes>,
    /// Directory of the task in which `disk` must be free, instead of the outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["/scratch"]))]
    pub path: Option<String>,
    /// By how much the clocks of the tasks of `distributed` may differ. Needs Python.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["2s"]))]
    pub clock: Option<Seconds>,
    /// How long the tasks of `distributed` wait for each other at the port of the rendezvous. Needs Python.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["10m"]))]
    pub network: Option<Seconds>,
    /// Bytes a second that the processes of `distributed` reach at least as they add up a tensor: the bus bandwidth of
    /// NCCL's own tests. Needs PyTorch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["5GB"]))]
    pub allreduce: Option<Bytes>,
    /// Command line for `sh` in the task. The check fails with its exit code, of which 87 says that the job is at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["./check.sh"]))]
    pub run: Option<String>,
    /// Maximum run time of `run`. Default: `1m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["1m"]))]
    pub timeout: Option<Seconds>,
}
