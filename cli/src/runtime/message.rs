//! The messages about containers and jobs, and the exit code of a command that was interrupted.

pub(crate) use jobc_oci::message::{error as container_error, warning as container_warning};

/// The exit code of a command that a signal ended, and of a job that a user stopped.
pub(crate) const INTERRUPTED: u8 = 130;
