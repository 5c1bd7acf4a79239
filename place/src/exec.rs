//! Commands in running tasks.

use std::os::fd::{BorrowedFd, OwnedFd};

/// A command to run in a task.
#[derive(Clone, Debug, Default)]
pub struct ExecRequest {
    /// The task, or a role for its first task; the only one that runs by default.
    pub task: Option<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Whether it gets a terminal.
    pub terminal: bool,
    /// Whether it must be able to read to the end of its input; otherwise it may wait there for ever on old clusters.
    pub needs_end_of_input: bool,
}

/// The streams of a command.
pub struct ExecStreams<'a> {
    /// Its input; `None` for no input.
    pub stdin: Option<OwnedFd>,
    /// Where its stdout goes; with a terminal, all of its output.
    pub stdout: OwnedFd,
    /// Where its stderr goes.
    pub stderr: OwnedFd,
    /// Callbacks on this side meanwhile.
    pub events: Option<ExecEvents<'a>>,
}

/// Events at the user's side of a command.
pub struct ExecEvents<'a> {
    /// Readable when there is an event.
    pub ready: BorrowedFd<'a>,
    /// Takes the next one.
    pub next: &'a mut dyn FnMut() -> Option<ExecEvent>,
}

/// Callbacks on the user's side of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecEvent {
    /// The terminal has this size now.
    Resized {
        /// Characters in a line.
        columns: u16,
        /// Lines.
        rows: u16,
    },
    /// The connection is to end, with this exit code.
    Interrupted(u8),
}
