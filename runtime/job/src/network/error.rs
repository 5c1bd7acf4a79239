//! Errors that several files here have.

use rustix::io::Errno;

use jobc_sys::error::{Error, Kind};

/// The number of an error of the standard library.
pub(super) fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// The error of a number that no task has.
pub(super) fn no_such_task(task: usize) -> Error {
    Error::new(Kind::State, format!("no task has the number {task}"))
}
