//! `jobc image`: the images of this user on this machine.

use jobc_runtime::error::{Error, Kind};

use super::jobs::{Failure, Result};
use crate::args::image::{ImageArgs, ImageCommand};

/// Carries out a command about images.
pub(crate) fn run(args: &ImageArgs) -> Result<std::process::ExitCode> {
    match &args.command {
        ImageCommand::Pull(_) | ImageCommand::Push(_) => Err(without_registry()),
    }
}

/// Why nothing can be fetched or sent.
fn without_registry() -> Failure {
    let error = Error::new(Kind::Unsupported, "this jobc was built without the feature `registry`");
    Failure::wrong_use(error.help("bring images in as archives or folders with `jobc image import`"))
}
