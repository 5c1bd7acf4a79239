//! Ports of tasks on this host, and files from and to tasks.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use serde::Serialize;

/// A port of a task that is made available on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortForward {
    /// The port on loopback; the same number by default, or any if that is taken.
    pub local: Option<u16>,
    /// The task, or a role for its first task.
    pub task: String,
    /// The label of a port of the job, or a number.
    pub port: String,
}

/// Ports of tasks that are made available together.
#[derive(Clone, Copy)]
pub struct ForwardRequest<'a> {
    /// The ports.
    pub forwards: &'a [PortForward],
    /// Readable when it ends.
    pub stop: BorrowedFd<'a>,
    /// Gets what happens.
    pub report: &'a (dyn Fn(PortForwardReport) + Sync),
}

/// The events of forwarded ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortForwardReport {
    /// Connections are accepted now.
    Listening {
        /// The port on loopback.
        local: u16,
        /// The task.
        task: String,
        /// The number of the port there.
        port: u16,
    },
    /// A connection, or the way to the task, failed; others go on.
    Failed(String),
}

/// Files to copy into or out of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyRequest {
    /// The task, or a role for its first task.
    pub task: String,
    /// The path in the task.
    pub remote: String,
    /// The path on this host.
    pub local: PathBuf,
    /// Whether files go into the task.
    pub into_task: bool,
}

/// The copied files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Copied {
    /// Files, directories and links.
    pub entries: u64,
    /// Bytes of files.
    pub bytes: u64,
    /// The files that were skipped, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
}
