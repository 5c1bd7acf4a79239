//! The tar format, as the layers of images have it: read with nothing trusted, and written the same way each time.
//!
//! What is read: the format of 1979, ustar (POSIX 1988), pax (POSIX 2001) and GNU tar's, with its long names and all
//! four kinds of sparse files. Where a header has a value twice, the precedence is that of the tools images are made
//! with (Go's archive/tar): GNU's long names before pax, pax before the header. So a layer is read here as those tools
//! read it.

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
pub use write::Writer;

#[cfg(test)]
mod tests;
