//! Handles among the words of a command line.

use jobc_place::job_ref::{Handle, HandleError};
use jobc_sys::error::{Error, Kind};

pub(super) use crate::runtime::commands::jobs::failure;
use crate::runtime::commands::jobs::{Failure, Result};

/// The handle in a word.
pub(super) fn handle(word: &str) -> Result<Handle> {
    word.parse()
        .map_err(|error: HandleError| Failure::usage_error(Error::new(Kind::Config, error.to_string())))
}
