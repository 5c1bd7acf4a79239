//! The builder of this program.

use std::process::ExitCode;

use jobc_runtime::error::{Error, Kind};
use jobc_runtime::image::Store;
use jobc_runtime::image::dockerfile::Build;

use super::File;
use super::given::Given;
use crate::args::image::BuildArgs;
use crate::commands::jobs::{Failure, Result};

/// Builds, and says what was built, or why not.
pub(super) fn build(_: &Build, _: &BuildArgs, _: &File, given: Given, _: &Store) -> Result<ExitCode> {
    drop((given.secrets, given.labels));
    let error = Error::new(Kind::Unsupported, "this jobc reads a Dockerfile and has no builder of its own");
    Err(Failure::wrong_use(error.help("take `--builder buildah` or `--builder docker`")))
}
