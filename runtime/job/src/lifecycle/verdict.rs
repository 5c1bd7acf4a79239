//! How a job will have ended.

use super::task::TaskNumber;
use crate::record::JobState;

/// How a job ends once all of its tasks are gone.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) state: JobState,
    pub(super) exit_code: u8,
    pub(super) explanation: String,
    pub(super) task: Option<TaskNumber>,
}

impl Verdict {
    pub(super) fn new(state: JobState, explanation: String, task: Option<TaskNumber>) -> Self {
        let exit_code = match state {
            JobState::Succeeded => 0,
            JobState::TimedOut => 124,
            JobState::Stopped => 130,
            _ => 1,
        };
        Self { state, exit_code, explanation, task }
    }

    pub(super) fn could_not_start(explanation: String, task: Option<TaskNumber>) -> Self {
        Self { exit_code: 125, ..Self::new(JobState::Failed, explanation, task) }
    }
}
