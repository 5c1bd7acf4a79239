//! How a job will have ended.

use super::task::TaskNumber;
use jobc_place::exit_code;
use jobc_place::state::JobState;
use jobc_place::verdict::{Judgment, Verdict};

/// How a job ends once all of its tasks are gone.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) state: JobState,
    pub(super) exit_code: u8,
    pub(super) explanation: String,
    pub(super) task: Option<TaskNumber>,
    /// The verdict on the job, where it is not that on the task.
    pub(super) verdict: Option<Judgment>,
}

impl Outcome {
    pub(super) fn new(state: JobState, explanation: String, task: Option<TaskNumber>) -> Self {
        let exit_code = match state {
            JobState::Succeeded => exit_code::SUCCEEDED,
            JobState::TimedOut => exit_code::TIMED_OUT,
            JobState::Stopped => exit_code::STOPPED,
            _ => exit_code::FAILED,
        };
        Self { state, exit_code, explanation, task, verdict: None }
    }

    pub(super) fn could_not_start(explanation: String, task: Option<TaskNumber>) -> Self {
        let outcome = Self::new(JobState::Failed, explanation, task);
        Self { exit_code: exit_code::NOT_STARTED, ..outcome }
    }

    /// With a verdict on the job as a whole.
    pub(super) fn judged(self, kind: Verdict, next: &str) -> Self {
        let evidence = vec![self.explanation.clone()];
        Self { verdict: Some(Judgment { kind, evidence, next: Some(next.to_owned()) }), ..self }
    }
}
