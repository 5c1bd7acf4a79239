//! What follows a failure or a stall of a task.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::role::{Disruptions, RetryScope};
use crate::stall::{StallAction, StallSign};

/// Retries after a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryPlan {
    /// Maximum number of retries, or `unlimited`.
    #[serde(with = "crate::role::retry_limit")]
    #[schemars(schema_with = "crate::role::retry_limit::schema")]
    pub max: u32,
    /// What is restarted on a retry.
    pub scope: RetryScope,
    /// Exit codes that are retried. Empty means all except 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_exit_codes: Vec<u8>,
    /// Exit codes that are never retried; all others are. Empty if `on_exit_codes` is not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never_on_exit_codes: Vec<u8>,
    /// Time before a retry. Missing means the default of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_seconds: Option<u64>,
    /// Whether failures that the platform causes count as retries.
    #[serde(default, skip_serializing_if = "Disruptions::is_count")]
    pub disruptions: Disruptions,
    /// Kinds of failures that are retried, beside `on_exit_codes`. Empty, with no exit codes either, means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<Failure>,
    /// Memory in bytes of the attempts after one, two and more that ran out of it; the last one stays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_bytes: Vec<u64>,
}

/// When a task makes no progress, and what is done about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StallPlan {
    /// How long two of the signs must last together.
    pub after_seconds: u64,
    /// Signs that are looked at.
    pub signs: Vec<StallSign>,
    /// What is done.
    pub action: StallAction,
}

impl RetryPlan {
    /// Whether a failure with an exit code is retried, as far as the code and the kind of failure decide it.
    pub fn covers(&self, code: u8, kind: Option<Failure>) -> bool {
        let all = self.on_exit_codes.is_empty() && self.on.is_empty();
        let listed = self.on_exit_codes.contains(&code) || kind.is_some_and(|kind| self.on.contains(&kind));
        (all || listed) && !self.never_on_exit_codes.contains(&code)
    }

    /// Whether some failures are final because of their exit code or kind.
    pub fn has_final_codes(&self) -> bool {
        let lists = [&self.on_exit_codes, &self.never_on_exit_codes];
        self.max > 0 && !(lists.into_iter().all(Vec::is_empty) && self.on.is_empty())
    }

    /// The key of the job file that names the exit codes or kinds.
    pub fn codes_key(&self) -> &'static str {
        match (&self.on_exit_codes[..], &self.never_on_exit_codes[..]) {
            ([], []) if !self.on.is_empty() => "on",
            (_, []) => "on_exit_codes",
            _ => "never_on_exit_codes",
        }
    }
}
