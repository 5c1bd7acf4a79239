//! How commands of `jobc oci` fail.

/// The exit code of a failed command, as of runc. `exec`, which exits with its program's code, has another.
pub(crate) const FAILURE_EXIT_CODE: u8 = 1;
