//! The changes of the reason why a job waits, runs again or ended: a time line that is kept after the job.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::job::JobSummary;
use crate::time::Time;

/// A change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// When it happened; of a job on a cluster, when a command saw it first.
    pub time: Time,
    /// What holds from then on: the state, and the reasons.
    pub text: String,
}

/// The text of a state with reasons, for a change.
pub fn text(job: &JobSummary, reasons: &[String]) -> String {
    let end = job.end_text();
    let more = reasons.iter().filter(|reason| **reason != end).map(String::as_str);
    std::iter::once(end.as_str()).chain(more).collect::<Vec<_>>().join("; ")
}
