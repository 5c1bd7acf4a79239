//! Handles on the command line, and the exit codes of errors of clusters.

use jobc_remote::Handle;
use jobc_sys::error::{Error, Kind};

use crate::runtime::commands::jobs::{Failure, Result};

/// The handles among words, if there is one; then all of them must be.
pub(super) fn of_handles(words: &[String]) -> Option<Result<Vec<Handle>>> {
    words.iter().any(|word| Handle::is_meant(word)).then(|| words.iter().map(|word| handle(word)).collect())
}

/// The handle in an argument.
pub(super) fn handle(word: &str) -> Result<Handle> {
    word.parse().map_err(|why: String| Failure::usage_error(Error::new(Kind::Config, why)))
}

/// The exit code of an error of a cluster: 2 for what does not exist or cannot be used, 1 for a job in another state.
pub(super) fn failure(error: Error) -> Failure {
    match error.kind {
        Kind::NotFound | Kind::Config | Kind::Unsupported => Failure::usage_error(error),
        _ => Failure::from(error),
    }
}
