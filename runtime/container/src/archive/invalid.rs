//! The error for what an archive may not have.

use std::io;

/// Something in an archive that is refused, in words.
pub(super) fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.to_owned())
}
