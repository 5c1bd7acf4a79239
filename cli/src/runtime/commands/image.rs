//! `jobc image`: the images of this user on this host.

pub(crate) mod build;
mod diff;
pub(crate) mod dockerfile_errors;
mod gc;
mod history;
mod import;
mod inspect;
mod ls;
mod mount;
mod name;
mod pull;
mod push;
mod rm;
mod save;
pub(crate) mod sbom;
mod signature;
mod tag;
mod verify;

use crate::runtime::settings::image_root;
use std::path::Path;
use std::process::ExitCode;

use jobc_image::Store;
use jobc_image::store::listed_shared_stores;
use jobc_sys::error::Error;

use super::jobs::Result;
use crate::runtime::args::image::{ImageArgs, ImageCommand};
use crate::runtime::message::container_warning;
use crate::terminal;

/// Runs a command about images.
pub(crate) fn run(args: &ImageArgs) -> Result<ExitCode> {
    let open = || open(args.image_root.as_deref());
    match &args.command {
        ImageCommand::Pull(pull) => pull::run(pull, &open()?),
        ImageCommand::Push(push) => push::run(push, &open()?),
        ImageCommand::Build(build) => build::run(build, &open()?),
        ImageCommand::Ls(ls) => ls::run(ls, &open()?),
        ImageCommand::Import(import) => import::run(import, &open()?),
        ImageCommand::Save(save) => save::run(save, &open()?),
        ImageCommand::Tag(tag) => tag::run(tag, &open()?),
        ImageCommand::History(history) => history::run(history, &open()?),
        ImageCommand::Diff(diff) => diff::run(diff, &open()?),
        ImageCommand::Mount(mount) => mount::run(mount, &open()?),
        ImageCommand::Umount(umount) => mount::unmount(umount, &open()?),
        ImageCommand::Inspect(inspect) => inspect::run(inspect, &open()?),
        ImageCommand::Sbom(args) => sbom::run(args, &open()?),
        ImageCommand::Verify(verify) => match &verify.image {
            Some(name) => signature::run(verify, name),
            None => verify::run(verify, &open()?),
        },
        ImageCommand::Rm(rm) => rm::run(rm, &open()?),
        ImageCommand::Gc(gc) => gc::run(gc, &open()?),
    }
}

/// The image store: the given one, or that of this user, on top of the shared stores of this host. Unreadable shared
/// stores are reported and skipped.
pub(crate) fn open(root: Option<&Path>) -> std::result::Result<Store, Error> {
    let shared = listed_shared_stores()?;
    let (store, unreadable) = match root.map(Path::to_owned).or_else(image_root) {
        Some(root) => Store::open_above(&root, &shared)?,
        None => Store::open_above(&Store::default_path()?, &shared)?,
    };
    for error in unreadable {
        terminal::eprint(&container_warning(&error.to_string()));
    }
    Ok(store)
}
