//! Errors that several files here have.

use jobc_sys::error::{Error, Kind};

/// The error of a number that no task has.
pub(super) fn no_such_task(task: usize) -> Error {
    Error::new(Kind::State, format!("no task has the number {task}"))
}
