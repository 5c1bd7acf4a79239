//! The changes of the reason why a job waits, runs again or ended: a time line that is kept after the job.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::job::JobSummary;
use crate::output::ListedJob;
use crate::time::Time;

/// A change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// When it happened; of a job on a cluster, when a command saw it first.
    pub time: Time,
    /// What holds from then on: the state, and the reasons.
    pub text: String,
}

/// What `jobc why JOB` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WhyJob<'a> {
    /// The job.
    #[serde(flatten)]
    pub job: ListedJob<'a>,
    /// Why it waits or ended, one sentence each, with the line of the job file where one is known.
    pub reasons: &'a [String],
    /// When it may start, as far as the place can tell.
    pub estimate: Option<&'a str>,
    /// The changes of the reasons, the oldest first.
    pub changes: &'a [Change],
}

impl<'a> WhyJob<'a> {
    /// A job by the id that commands take.
    pub fn new(
        (id, job): (&'a str, &'a JobSummary),
        reasons: &'a [String],
        estimate: Option<&'a str>,
        changes: &'a [Change],
    ) -> Self {
        Self { job: ListedJob::new(id, job), reasons, estimate, changes }
    }
}

/// The text of a state with reasons, for a change.
pub fn text(job: &JobSummary, reasons: &[String]) -> String {
    let end = job.end_text();
    let more = reasons.iter().filter(|reason| **reason != end).map(String::as_str);
    std::iter::once(end.as_str()).chain(more).collect::<Vec<_>>().join("; ")
}
