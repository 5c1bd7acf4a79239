//! The messages of a supervisor's threads to its event loop.

use std::net::IpAddr;
use std::os::fd::OwnedFd;

use serde_json::Value;

use super::task_process::TaskProcess;
use crate::admission::Admission;
use crate::admission::job_queue::Slot;
use crate::discarded::Discarded;
use crate::event::Kind as EventKind;
use crate::lifecycle::TaskNumber;
use crate::ready::Report;
use crate::record::Claim;
use crate::stall::examine::{Examination, ExamineRequest};
use jobc_sys::error::Result;

/// A message of a thread to the event loop.
#[derive(Debug)]
pub(super) enum Message {
    /// Something the preparation wants written down.
    Preparation(PreparationEvent),
    /// Data, roots and network are ready, or the error.
    Prepared(Result<Box<PreparedHost>>),
    /// A suspended job has its resources again, or the error.
    Readmitted(Result<Box<PreparedHost>>),
    /// An attempt was created, or the error.
    Created {
        /// Whose.
        task: TaskNumber,
        /// Which attempt's.
        attempt: u32,
        /// It.
        held: Result<Box<PendingTask>>,
    },
    /// A task was found ready, or not.
    Readiness(Report),
    /// Tasks that make no progress were looked at.
    Examined(ExamineRequest, Examination),
    /// The resources of an attempt were removed.
    Removed {
        /// Whose.
        task: TaskNumber,
        /// The parts that could not be removed.
        left: Vec<String>,
        /// The last values of its metrics in files, or why there are none.
        numbers: Vec<FileNumber>,
        /// The files that were discarded with its root.
        discarded: Discarded,
    },
    /// The values of a running task's metrics in files.
    Numbers {
        /// Whose.
        task: TaskNumber,
        /// Which attempt's.
        attempt: u32,
        /// The values.
        numbers: Vec<FileNumber>,
    },
}

/// A metric, and its value in a file or why there is none.
pub(super) type FileNumber = (String, std::result::Result<f64, String>);

/// An event of the preparation to record.
#[derive(Debug)]
pub(super) enum PreparationEvent {
    /// Something happened.
    Event(EventKind, Value),
    /// A note for the user.
    Note(String),
    /// The current host resources of the job.
    Claimed(Claim),
    /// Where tasks are reached, by number.
    Addresses(Vec<Option<IpAddr>>),
}

/// The host resources of the job while it runs. Dropping it releases them.
#[derive(Debug)]
#[allow(dead_code)] // held, and given up
pub(super) struct PreparedHost {
    pub(super) admission: Admission,
    pub(super) slot: Option<Slot>,
}

/// A created attempt that waits to be started.
#[derive(Debug)]
pub(super) struct PendingTask {
    /// What runs it.
    pub(super) process: Box<dyn TaskProcess>,
    /// Its standard output and error; `None` if it has a terminal.
    pub(super) output: Option<[OwnedFd; 2]>,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
    /// The task's unenforced limits.
    pub(super) unenforced: Vec<String>,
    /// How much is mounted in its container, for the event.
    pub(super) mounts: Option<usize>,
    /// The node of a cluster that it runs on.
    pub(super) node: Option<String>,
    /// How many attempts there were before the supervisor began.
    pub(super) earlier: u32,
}
