//! Numbers that a role reports: `metrics` of a job or a role.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number that a role reports: a line of its log with `log`, or a value of a file with `file` and `key`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Regular expression with one group, which matches the number in a line of the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["val_loss=([0-9.e+-]+)"]))]
    pub log: Option<String>,
    /// JSON or JSON Lines file with the number: an absolute path in data or an output of the role. In a JSON Lines
    /// file, the last line counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["/output/result.json"]))]
    pub file: Option<String>,
    /// Key of the number in the file, with dots between the keys of nested objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["eval.loss"]))]
    pub key: Option<String>,
    /// Which values are better, to compare combinations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["lower"]))]
    pub better: Option<Better>,
}

/// Which values of a metric are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Lower values, as for a loss.
    Lower,
    /// Higher values, as for an accuracy.
    Higher,
}

impl Better {
    /// The word of a job file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lower => "lower",
            Self::Higher => "higher",
        }
    }

    /// Whether one value is better than another. A value that is not a number is worse than every number.
    pub fn is_better(self, one: f64, other: f64) -> bool {
        match (one.is_nan(), other.is_nan()) {
            (true, _) => false,
            (false, true) => true,
            (false, false) => match self {
                Self::Lower => one < other,
                Self::Higher => one > other,
            },
        }
    }
}
