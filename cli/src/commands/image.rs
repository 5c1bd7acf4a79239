//! `jobc image`: the images of this user on this machine.

#[cfg(feature = "registry")]
mod pull;
#[cfg(feature = "registry")]
mod push;

use std::path::Path;
use std::process::ExitCode;

use jobc_runtime::image::store::Store;

use super::jobs::Result;
use crate::args::image::{ImageArgs, ImageCommand};

/// Carries out a command about images.
pub(crate) fn run(args: &ImageArgs) -> Result<ExitCode> {
    let root = args.image_root.as_deref();
    match &args.command {
        #[cfg(feature = "registry")]
        ImageCommand::Pull(pull) => pull::run(pull, &open(root)?),
        #[cfg(feature = "registry")]
        ImageCommand::Push(push) => push::run(push, &open(root)?),
        #[cfg(not(feature = "registry"))]
        ImageCommand::Pull(_) | ImageCommand::Push(_) => {
            Err(super::jobs::Failure::wrong_use(crate::registries::absent()))
        }
    }
}

/// The store that was named, or the usual one.
pub(crate) fn open(root: Option<&Path>) -> Result<Store> {
    let root = root.map_or_else(Store::usual, |root| Ok(root.to_owned()))?;
    Ok(Store::open(&root)?)
}
