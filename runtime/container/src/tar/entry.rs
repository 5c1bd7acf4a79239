//! An entry of an archive, without its data.

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
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
    /// Its path as written, not validated.
    pub path: Vec<u8>,
    /// Its kind.
    pub kind: Kind,
    /// Permission bits with set-user-id, set-group-id and sticky.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// When it was last modified.
    pub mtime: Time,
    /// The target of a link.
    pub link: Vec<u8>,
    /// The number of a device, major and minor.
    pub device: (u32, u32),
    /// Extended attributes in the order written: names and values.
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
    /// Bytes of a file; its data is shorter where it is sparse.
    pub size: u64,
    /// The data of a sparse file: offsets and lengths, ascending, disjoint, within `size`.
    pub sparse: Option<Vec<(u64, u64)>>,
}

impl Entry {
    /// An empty entry of a type.
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
