//! How tasks are asked to leave, and resumed: `preemption` of a job.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::Seconds;

/// Variable with the path of the checkpoints.
pub const CHECKPOINT_DIR: &str = "JOBC_CHECKPOINT_DIR";
/// Variable that is `1` where an earlier attempt of the task was ended, and empty in the first.
pub const RESUME: &str = "JOBC_RESUME";
/// Variable with the number of the attempt, from 1.
pub const ATTEMPT: &str = "JOBC_ATTEMPT";

/// How tasks are asked to leave, how they say that they want to be resumed, and where they save. Attempts that end this
/// way do not count as retries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Preemption {
    /// Signal that asks a task to leave. Default: `stop_signal` of the role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["SIGTERM", "SIGUSR2"]))]
    pub signal: Option<String>,
    /// Time between the signal and SIGKILL. Default: `grace_period`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["2m"]))]
    pub grace: Option<Seconds>,
    /// Exit codes by which a task says that it has saved and wants to be resumed, whether or not it was asked to leave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(range(min = 1, max = 255)), extend("examples" = [[85]]))]
    pub exit_codes: Vec<u8>,
    /// Output with the checkpoints. Its path is `JOBC_CHECKPOINT_DIR` in the roles that mount it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["checkpoints"]))]
    pub checkpoint: Option<String>,
}
