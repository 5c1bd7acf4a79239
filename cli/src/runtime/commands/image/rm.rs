//! `jobc image rm`: removes images, and the blobs that nothing else uses.

use std::process::ExitCode;

use jobc_image::Store;
use jobc_sys::error::{Error, Kind};

use super::gc;
use super::name::find;
use crate::runtime::args::image::RmArgs;
use crate::runtime::commands::jobs::{Failure, Result};
use crate::terminal;

pub(super) fn run(args: &RmArgs, store: &Store) -> Result<ExitCode> {
    // All of them are looked up before anything is removed.
    let images = args.images.iter().map(|word| find(store, word)).collect::<Result<Vec<_>>>()?;
    for (image, word) in images.iter().zip(&args.images) {
        if let Some(shared) = &image.shared {
            let shared = shared.display();
            let message = format!("the image `{word}` is in the shared store `{shared}`, which is only read");
            let help = format!("whoever owns that store runs `jobc image rm --image-root {shared} {word}`");
            return Err(Failure::usage_error(Error::new(Kind::State, message).help(help)));
        }
    }
    for (image, word) in images.iter().zip(&args.images) {
        let by_digest = word.strip_prefix("sha256:").unwrap_or(word);
        let names = match &image.name {
            // A name removes only that name, a digest all names.
            Some(name) if !image.descriptor.digest.hex().starts_with(by_digest) => {
                store.untag(name)?;
                vec![name.clone()]
            }
            _ => store.untag_all(&image.descriptor.digest)?,
        };
        for name in names {
            terminal::print(&format!("{name}\n"));
        }
    }
    match store.collect(false, false, false)? {
        Some(collected) => terminal::print(&gc::describe_collected(&collected, "removed")),
        None => terminal::print(
            "the image store is in use by another command; `jobc image gc` removes the data later\n",
        ),
    }
    Ok(ExitCode::SUCCESS)
}
