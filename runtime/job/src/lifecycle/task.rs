//! A task and its progress.

use std::time::Duration;

use jobc_container::process::Exit;
use jobc_place::task::TaskState;
use jobc_place::verdict::{Cut, Judgment};
use jobc_sys::id::TaskId;

/// A task's number: tasks are counted through the job, role after role in the plan's order.
pub type TaskNumber = usize;

/// A role's number: its place in the plan.
pub(super) type RoleNumber = usize;

/// A task, as records show it.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its name.
    pub id: TaskId,
    /// The role's place in the plan.
    pub role: usize,
    /// Where it is in its life.
    pub state: TaskState,
    /// The attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// How the last attempt ended.
    pub exit: Option<Exit>,
    /// Why, as text.
    pub reason: Option<String>,
    /// The verdict on the last attempt that ended by itself or was ended for a fault.
    pub verdict: Option<Judgment>,
}

/// The state of a task in addition to its record.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
pub(super) struct TaskProgress {
    /// Why it is being stopped, if it is.
    pub(super) ending: Option<EndReason>,
    /// Whether its latest attempt was started.
    pub(super) start_requested: bool,
    /// Whether its latest attempt has run.
    pub(super) started: bool,
    /// Whether its latest attempt has once been ready.
    pub(super) ready: bool,
    /// The gang whose start it waits for, or waited for.
    pub(super) gang: Option<usize>,
    /// Whether that gang counts it as made.
    pub(super) counted_by_gang: bool,
    /// How often it was retried automatically.
    pub(super) retries: u32,
    /// Whether the failure of its latest attempt is final.
    pub(super) is_final: bool,
    /// Whether its latest attempt ended by a check before its command.
    pub(super) is_unfit: bool,
    /// How often it was tried again after such an attempt.
    pub(super) unfit_retries: u32,
    /// How often it was resumed in a row, each time soon.
    pub(super) quick_resumes: u32,
    /// When its latest attempt was seen running.
    pub(super) started_at: Option<Duration>,
    /// Whether its last attempt used up its memory, by the kernel's counter.
    pub(super) ran_out: bool,
    /// How often its memory has grown.
    pub(super) growths: usize,
    /// Whether it only serves those that launch.
    pub(super) serves: bool,
    /// Whether others serve it.
    pub(super) launches: bool,
}

/// Why an attempt is stopped before its program exits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndRequest<'a> {
    /// It has failed already: it took too long, or was not ready in time; why, as text.
    Failure(&'a str),
    /// It is stopped, and has not failed.
    Stop,
}

/// Why a task is being ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum EndReason {
    /// Its attempt has failed already: it took too long, or was not ready in time.
    Failed {
        /// By which rule.
        cut: Cut,
        /// Why, as text.
        why: String,
    },
    /// Its role or job is retried.
    Restart,
    /// Its job is suspended.
    Suspended,
    /// It served, and those that it served have ended.
    Served,
    /// The job is over.
    JobEnded,
}
