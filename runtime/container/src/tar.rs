//! The tar format of image layers: untrusted input is read, and output is reproducible.
//!
//! It reads the format of 1979, ustar (POSIX 1988), pax (POSIX 2001) and GNU tar's, with its long names and all four
//! kinds of sparse files. If a value occurs twice, the precedence is that of Go's archive/tar, which tools for images
//! use: GNU's long names before pax, pax before the header.

mod block;
mod content;
mod entry;
pub mod header;
mod pax;
mod read;
mod sparse;
pub mod write;

pub use block::{BLOCK, MAX_HEADER_SIZE};
pub use content::Content;
pub use entry::{Entry, Kind, Time};
pub use read::{ArchiveEnd, Reader};
pub use sparse::MAX_PIECES;
pub use write::Writer;

#[cfg(test)]
mod tests;
