//! How commands of `jobc oci` fail.

/// The exit code of a failed command, as of runc.
pub(crate) const FAILURE_EXIT_CODE: u8 = 1;

/// The exit code of a failed `exec`, which otherwise exits with its program's code, as of runc.
pub(crate) const EXEC_FAILURE_EXIT_CODE: u8 = 255;
