//! Files on Linux and macOS.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// Whether a file is executable for the same users as one with this mode.
pub(crate) fn is_executable_as(metadata: &Metadata, mode: u32) -> bool {
    metadata.permissions().mode() & 0o111 == mode & 0o111
}

/// A text that changes with every change of the file, also if it keeps its size and time.
pub(crate) fn identity(file: &Metadata) -> String {
    let changed = (file.ctime(), file.ctime_nsec(), file.mtime(), file.mtime_nsec());
    format!("{}:{} {} {changed:?}", file.dev(), file.ino(), file.size())
}

/// Creates a file that does not exist.
pub(crate) fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

/// Exchanges two directories in one step. `false` if the file system cannot do that.
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<bool> {
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The real absolute path.
pub(crate) fn canonicalize(path: &Utf8Path) -> io::Result<Utf8PathBuf> {
    path.canonicalize_utf8()
}
