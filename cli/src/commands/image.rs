//! `jobc image`: the images of this user on this machine.

mod gc;
mod import;
mod inspect;
mod ls;
mod name;
mod rm;
mod verify;

use std::path::Path;

use jobc_runtime::error::{Error, Kind};
use jobc_runtime::image::Store;

use super::jobs::{Failure, Result};
use crate::args::image::{ImageArgs, ImageCommand};

/// Carries out a command about images.
pub(crate) fn run(args: &ImageArgs) -> Result<std::process::ExitCode> {
    match &args.command {
        ImageCommand::Pull(_) | ImageCommand::Push(_) => Err(without_registry()),
        ImageCommand::Ls(ls) => ls::run(ls, &open(args.image_root.as_deref())?),
        ImageCommand::Import(import) => import::run(import, &open(args.image_root.as_deref())?),
        ImageCommand::Inspect(inspect) => inspect::run(inspect, &open(args.image_root.as_deref())?),
        ImageCommand::Verify(verify) => verify::run(verify, &open(args.image_root.as_deref())?),
        ImageCommand::Rm(rm) => rm::run(rm, &open(args.image_root.as_deref())?),
        ImageCommand::Gc(gc) => gc::run(gc, &open(args.image_root.as_deref())?),
    }
}

/// The store of images: the one that is named, else this user's.
pub(crate) fn open(root: Option<&Path>) -> std::result::Result<Store, Error> {
    match root {
        Some(root) => Store::open(root),
        None => Store::open(&Store::usual()?),
    }
}

/// Why nothing can be fetched or sent.
fn without_registry() -> Failure {
    let error = Error::new(Kind::Unsupported, "this jobc was built without the feature `registry`");
    Failure::wrong_use(error.help("bring images in as archives or folders with `jobc image import`"))
}
