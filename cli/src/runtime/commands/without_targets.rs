//! Targets, in a build without the feature `remote`: none can be reached.

use jobc_place::Place;
use jobc_place::job::JobSummary;

use super::jobs::{Failure, Result};
use super::remote::absent;

pub(super) fn open_target(_target: &str) -> Result<Box<dyn Place>> {
    Err(absent("talk to clusters"))
}

pub(super) fn list(
    target: Option<&str>,
    _found: &mut Vec<(Option<String>, JobSummary)>,
) -> Result<Option<Failure>> {
    if target.is_some() { Err(absent("talk to clusters")) } else { Ok(None) }
}
