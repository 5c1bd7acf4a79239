//! How far a role is: `progress` of a job or a role.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The metrics of a plan that are its progress.
pub const DONE: &str = "progress.done";
/// The second of them.
pub const TOTAL: &str = "progress.total";

/// How far a role is: a line of its log with `log`, or two values of a file with `file`, `done` and `total`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Regular expression with the groups `done` and `total`, which match numbers in a line of the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["step (?P<done>[0-9]+)/(?P<total>[0-9]+)"]))]
    pub log: Option<String>,
    /// JSON or JSON Lines file with the numbers: an absolute path in data or an output of the role. In a JSON Lines
    /// file, the last line counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["/output/state.json"]))]
    pub file: Option<String>,
    /// Key of the number in the file that is done, with dots between the keys of nested objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["global_step"]))]
    pub done: Option<String>,
    /// Key of the number in the file that is to do in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["max_steps"]))]
    pub total: Option<String>,
}

/// Whether a metric of a plan is its progress, and none that the job file names.
pub fn is_progress(metric: &str) -> bool {
    metric == DONE || metric == TOTAL
}
