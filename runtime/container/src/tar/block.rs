//! Blocks, which all of an archive is made of, and how large headers may be.

/// Bytes of a block; headers and the data of files fill whole blocks.
pub const BLOCK: usize = 512;

/// Maximum size of the names and attributes before one entry.
pub const MAX_HEADER_SIZE: u64 = 1 << 20;

pub(super) fn invalid(message: impl Into<String>) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, message.into())
}
