//! The error for invalid content of an archive.

use std::io;

/// The reason why an archive is rejected.
pub(super) fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.to_owned())
}
