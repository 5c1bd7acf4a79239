//! Why a source does not come in.

use std::path::Path;

use jobc_sys::error::{Error, Kind};

/// What a source says is not so.
pub(super) fn broken(source: &Path, why: impl std::fmt::Display) -> Error {
    Error::new(Kind::Config, format!("`{}` is not whole: {why}", source.display()))
        .help("make it again, or copy it again")
}

pub(super) fn given_up() -> Error {
    Error::new(Kind::State, "the import was given up")
}
