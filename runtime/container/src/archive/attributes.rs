//! The attributes of an archive entry that are applied.

use std::ffi::CString;
use std::io;

use super::invalid::invalid;
use crate::tar::{Entry, Time};

/// The metadata of an entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileAttributes {
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mtime: Time,
    pub(crate) extended: Vec<(CString, Vec<u8>)>,
}

impl FileAttributes {
    /// The attributes of an archive entry that are applied.
    pub(super) fn of(entry: &Entry) -> io::Result<Self> {
        let mut extended = Vec::new();
        for (name, value) in &entry.attributes {
            if is_supported_attribute(name) {
                let name = CString::new(&name[..])
                    .map_err(|_| invalid("an attribute with a NUL byte in its name"))?;
                extended.push((name, value.clone()));
            }
        }
        Ok(Self { mode: entry.mode, uid: entry.uid, gid: entry.gid, mtime: entry.mtime, extended })
    }
}

/// Whether an attribute is taken from archives and put into them: what users write, file capabilities, and access
/// lists. Those of overlays would lead an overlay elsewhere.
pub(crate) fn is_supported_attribute(name: &[u8]) -> bool {
    name.starts_with(b"user.") && !name.starts_with(b"user.overlay.")
        || matches!(name, b"security.capability" | b"system.posix_acl_access" | b"system.posix_acl_default")
}
