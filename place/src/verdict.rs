//! The verdict on an ended attempt: what kind of end it was, by what is known of it.
//!
//! [`judge`] is a pure function over [`Facts`], which every place collects as far as it can. The sentences of programs
//! and the words of places that it knows are in `verdict/known.json`.

mod judge;
mod known;

use std::fmt;

use jobc_schema::failure::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use judge::{Cut, Facts, NodeFault, is_consequence, is_preflight, judge, says_out_of_memory};
pub use known::xid;

/// What kind of end an attempt had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Verdict {
    /// The program ended with exit code 0.
    #[serde(rename = "success")]
    Success,
    /// The program, its arguments, its image or its data are at fault: another attempt ends the same way.
    #[serde(rename = "user error")]
    UserError,
    /// The memory of the task, of the host or of a GPU was used up.
    #[serde(rename = "out of memory")]
    OutOfMemory,
    /// A time limit ended it, or it was not ready in time.
    #[serde(rename = "timeout")]
    Timeout,
    /// It made no progress.
    #[serde(rename = "stall")]
    Stall,
    /// It was asked to leave for another job, or for maintenance.
    #[serde(rename = "preempted")]
    Preempted,
    /// The node that it ran on is at fault: its disk, a GPU, its memory.
    #[serde(rename = "node")]
    Node,
    /// What is around it is at fault: the network, the storage, another task, the platform.
    #[serde(rename = "infrastructure")]
    Infrastructure,
}

impl Verdict {
    /// The kind of failure that `retry.on` lists; none for a success.
    pub fn failure(self) -> Option<Failure> {
        Some(match self {
            Self::Success => return None,
            Self::UserError => Failure::UserError,
            Self::OutOfMemory => Failure::OutOfMemory,
            Self::Timeout => Failure::Timeout,
            Self::Stall => Failure::Stall,
            Self::Preempted => Failure::Preempted,
            Self::Node => Failure::Node,
            Self::Infrastructure => Failure::Infrastructure,
        })
    }

    /// The words of records and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::UserError => "user error",
            Self::OutOfMemory => "out of memory",
            Self::Timeout => "timeout",
            Self::Stall => "stall",
            Self::Preempted => "preempted",
            Self::Node => "node",
            Self::Infrastructure => "infrastructure",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The verdict on an attempt, with what speaks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Judgment {
    /// What kind of end it was.
    pub kind: Verdict,
    /// What says so: exit code, signal, the place's word, a line of the log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Judgment {
    /// The verdict for a table: nothing for a success, which the state says.
    pub fn of_failure(&self) -> Option<Verdict> {
        Some(self.kind).filter(|kind| *kind != Verdict::Success)
    }
}
