//! Commands in running tasks.

use std::os::fd::OwnedFd;

use jobc_sys::error::Result;
use jobc_sys::signals::Signals;

/// A command to run in a task.
#[derive(Clone, Debug, Default)]
pub struct ExecRequest {
    /// The task, or a role for its first task; the only one that runs by default.
    pub task: Option<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Whether it gets a terminal.
    pub terminal: bool,
    /// Its working directory; that of the task by default.
    pub directory: Option<String>,
    /// Variables besides those of the task, `NAME=VALUE`.
    pub env: Vec<String>,
    /// Its user, by name or number; that of the task by default.
    pub user: Option<String>,
    /// Whether it gets the variables with secrets of the task's role.
    pub secrets: bool,
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
    /// The signals that this process gets meanwhile. They are passed on, or end the connection.
    pub signals: Option<&'a Signals>,
    /// Called once the command runs, or is about to: from then on this process may have threads.
    pub started: Option<&'a mut dyn FnMut() -> Result<()>>,
}
