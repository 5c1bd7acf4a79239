//! Files on Windows, which has no modes, and no exchange of two directories.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};

/// Whether a file is executable for the same users as one with this mode.
pub(crate) fn is_executable_as(_metadata: &Metadata, _mode: u32) -> bool {
    true
}

/// A text that changes with every change of the file.
pub(crate) fn identity(file: &Metadata) -> String {
    use std::os::windows::fs::MetadataExt as _;
    format!("{} {} {}", file.file_size(), file.creation_time(), file.last_write_time())
}

/// Creates a file that does not exist.
pub(crate) fn create_new(path: &Path, _mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Exchanges two directories in one step: `false`, as Windows has no call for it.
#[allow(clippy::unnecessary_wraps)] // as on other platforms
pub(crate) fn exchange(_one: &Path, _other: &Path) -> io::Result<bool> {
    Ok(false)
}

/// The real absolute path, as `C:\job` and not `\\?\C:\job`, where programs can use it.
pub(crate) fn canonicalize(path: &Utf8Path) -> io::Result<Utf8PathBuf> {
    Utf8PathBuf::from_path_buf(dunce::canonicalize(path)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the path is not Unicode"))
}
