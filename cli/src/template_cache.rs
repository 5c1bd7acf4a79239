//! The files of templates from Git that `jobc lock` has fetched: one file for each digest, below `~/.cache/jobc`.
//!
//! The compiler compares what it reads with the digest, so that nothing here has to be trusted.

use std::io;

use camino::Utf8PathBuf;

use crate::inputs;
use crate::platform::directories;

/// The maximum size of a packed template; larger files are something else.
const MAX_BYTES: u64 = 16 << 20;

/// The directory.
pub(crate) fn directory() -> Option<Utf8PathBuf> {
    Some(directories::cache()?.join("templates"))
}

/// The file with the template of a digest: `sha256-` and its hexadecimal digits.
pub(crate) fn file(digest: &str) -> Option<Utf8PathBuf> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == ':';
    digest.chars().all(is_plain).then(directory).flatten().map(|path| path.join(digest.replace(':', "-")))
}

/// Reads the template of a digest.
pub(crate) fn read(digest: &str) -> io::Result<Vec<u8>> {
    let path = file(digest).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    if std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() > MAX_BYTES) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is too large"));
    }
    let bytes = std::fs::read(&path);
    inputs::note_content(&path, bytes.as_deref().ok());
    bytes
}
