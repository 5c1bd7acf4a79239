//! Files into tasks and out of them, by `tar` in the task.

use jobc_sys::error::Result;

use super::exec;
use super::program::Connection;
use crate::place::{Copied, CopyRequest, ExecRequest, ExecStreams};
use crate::task_copy::{self, CopyTask};

/// Copies files.
pub(super) fn copy(connection: &Connection, id: &str, request: &CopyRequest) -> Result<Copied> {
    let exec = |command: &ExecRequest, streams: ExecStreams<'_>| {
        let command = ExecRequest { task: Some(request.task.clone()), ..command.clone() };
        exec::exec(connection, id, &command, streams)
    };
    task_copy::copy(&CopyTask { name: &request.task, exec: &exec }, request)
}
