//! What `jobc why JOB` prints.

use schemars::JsonSchema;
use serde::Serialize;

use super::ListedJob;
use crate::change::Change;
use crate::job::JobSummary;

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
