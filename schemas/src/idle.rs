//! What happens to a job that holds GPUs and does not use them: `idle` of a job.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::Seconds;
use crate::forms;

/// When the GPUs of a job are idle, and what happens then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Idle {
    /// Utilization in percent below which a GPU is idle.
    #[serde(default = "ten")]
    #[schemars(schema_with = "forms::percent", extend("default" = 10, "examples" = [5]))]
    pub gpu: u32,
    /// How long all GPUs of the job must be idle.
    #[schemars(extend("examples" = ["1h"]))]
    pub after: Seconds,
    /// What happens then.
    #[serde(default)]
    #[schemars(extend("default" = "report", "examples" = ["stop"]))]
    pub action: IdleAction,
}

fn ten() -> u32 {
    10
}

/// What happens to a job with idle GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IdleAction {
    /// Its record says so.
    #[default]
    Report,
    /// It is stopped as by `jobc stop`.
    Stop,
}
