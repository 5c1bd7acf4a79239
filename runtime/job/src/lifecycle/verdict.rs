//! How a job will have ended.

use super::task::TaskNumber;
use jobc_place::exit_code;
use jobc_place::state::JobState;

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
            JobState::Succeeded => exit_code::SUCCEEDED,
            JobState::TimedOut => exit_code::TIMED_OUT,
            JobState::Stopped => exit_code::STOPPED,
            _ => exit_code::FAILED,
        };
        Self { state, exit_code, explanation, task }
    }

    pub(super) fn could_not_start(explanation: String, task: Option<TaskNumber>) -> Self {
        Self { exit_code: exit_code::NOT_STARTED, ..Self::new(JobState::Failed, explanation, task) }
    }
}
