//! When a job starts again and again: `schedule` of a job.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a job starts again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Minute, hour, day of the month, month and day of the week as in crontab(5), or `@hourly`, `@daily`, `@weekly`,
    /// `@monthly` or `@yearly`.
    #[schemars(length(min = 1), extend("examples" = ["0 3 * * *", "*/15 9-17 * * MON-FRI"]))]
    pub cron: String,
    /// Time zone. Default: that of the place that starts the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$"), extend("examples" = ["Europe/Berlin"]))]
    pub zone: Option<String>,
    /// What happens at its time while the job before still runs.
    #[serde(default)]
    #[schemars(extend("default" = "skip", "examples" = ["replace"]))]
    pub overlap: Overlap,
}

/// What happens to a job at its time while the one before still runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    /// It does not start.
    #[default]
    Skip,
    /// The one before is stopped.
    Replace,
    /// Both run.
    Allow,
}
