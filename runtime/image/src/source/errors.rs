//! Errors of an import.

use std::path::Path;

use crate::unpack::Limits;
use jobc_sys::error::{Error, Kind, describe_io};

/// The content of a source does not match its description.
pub(super) fn invalid_source(source: &Path, why: impl std::fmt::Display) -> Error {
    Error::new(Kind::Config, format!("`{}` is incomplete or damaged: {why}", source.display()))
        .help("create it again, or copy it again")
}

pub(super) fn canceled() -> Error {
    Error::new(Kind::State, "the import was canceled")
}

/// Why an archive cannot be read.
pub(super) fn unreadable(source: &Path, error: &std::io::Error) -> Error {
    let shown = source.display();
    if error.kind() == std::io::ErrorKind::UnexpectedEof {
        return invalid_source(source, "it ends too early");
    }
    // The text of an error for a corrupt header quotes it, with all its bytes.
    let why = describe_io(error);
    let why = if why.contains(char::is_control) { "invalid tar header" } else { &why };
    Error::new(Kind::Config, format!("`{shown}` is not a readable archive: {why}"))
        .help("use a tar archive, uncompressed or compressed with gzip, zstd, xz or bzip2")
}

/// The content of an archive is larger than an import may be.
pub(super) fn too_large(source: &Path, limits: &Limits) -> Error {
    let message = format!("`{}` becomes larger than {} MiB", source.display(), limits.bytes >> 20);
    Error::new(Kind::Unenforceable, message)
        .help(format!("allow more bytes with `{}=`, if you trust the archive", Limits::VARIABLE))
}
