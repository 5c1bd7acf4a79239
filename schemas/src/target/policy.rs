//! What a target allows: `policy` of a target.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::Seconds;

/// Limits that every job for the target must keep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Whether images must be named by digest, in the job file or by jobc.lock.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub require_digest: bool,
    /// Registries that images may come from: hosts, or hosts with a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("items" = {"type": "string", "minLength": 1}, "examples" = [["registry.example.com", "docker.io/library"]]))]
    pub allowed_registries: Option<Vec<String>>,
    /// Most GPUs that a job may use at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [64]))]
    pub max_gpus: Option<u32>,
    /// Longest `timeout` of a job, or of each of its roles. Without a timeout a job is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["7d"]))]
    pub max_time: Option<Seconds>,
}
