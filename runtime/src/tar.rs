//! The tar format, as the layers of images have it: read with nothing trusted, and written the same way each time.
//!
//! What is read: the format of 1979, ustar (POSIX 1988), pax (POSIX 2001) and GNU tar's, with its long names and all four
//! kinds of sparse files. Where a header says a thing twice, the last word is that of the tools images are made with (Go's
//! archive/tar): GNU's long names before pax, pax before the header. So a layer is read here as those tools read it.

pub mod header;
mod pax;
mod read;
mod sparse;
pub mod write;

pub use read::{End, Reader};
pub use write::Writer;

/// Bytes of a block; headers and the data of files fill whole blocks.
pub const BLOCK: usize = 512;

/// The most that the names and attributes before one entry may take.
pub const LARGEST_HEADER: u64 = 1 << 20;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Symlink,
    /// One more name for an earlier entry.
    HardLink,
    /// A pipe.
    Fifo,
    /// A character device.
    Character,
    /// A block device.
    Block,
}

/// A time: seconds since 1970, which may be negative, and nanoseconds after them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Seconds.
    pub seconds: i64,
    /// Nanoseconds, less than a second of them.
    pub nanoseconds: u32,
}

/// An entry without its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path as written, whatever that is.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: Kind,
    /// Permission bits with set-user-id, set-group-id and sticky.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// When it was last modified.
    pub mtime: Time,
    /// What a link says.
    pub link: Vec<u8>,
    /// The number of a device, major and minor.
    pub device: (u32, u32),
    /// Extended attributes in the order written: names and values.
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
    /// Bytes of a file; its data is shorter where it is sparse.
    pub size: u64,
    /// Where the data of a sparse file stands: offsets and lengths, ascending, apart from each other, none past `size`.
    pub sparse: Option<Vec<(u64, u64)>>,
}

impl Entry {
    /// An entry of a kind with nothing in it.
    pub fn new(kind: Kind, path: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            kind,
            mode: 0,
            uid: 0,
            gid: 0,
            mtime: Time::default(),
            link: Vec::new(),
            device: (0, 0),
            attributes: Vec::new(),
            size: 0,
            sparse: None,
        }
    }
}

fn invalid(message: impl Into<String>) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, message.into())
}

#[cfg(test)]
mod tests;
