//! Errors of an import.

use std::path::Path;

use jobc_sys::error::{Error, Kind};

/// The content of a source does not match its description.
pub(super) fn invalid_source(source: &Path, why: impl std::fmt::Display) -> Error {
    Error::new(Kind::Config, format!("`{}` is incomplete or damaged: {why}", source.display()))
        .help("create it again, or copy it again")
}

pub(super) fn canceled() -> Error {
    Error::new(Kind::State, "the import was canceled")
}
