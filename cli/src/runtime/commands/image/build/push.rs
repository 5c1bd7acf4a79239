//! `--push`: the image goes to the registries of its names.

use jobc_image::{Descriptor, Platform, Reference, Store};

use crate::runtime::args::image::BuildArgs;
use crate::runtime::commands::jobs::Result;
use crate::runtime::registries;
use crate::terminal;

/// Pushes an image under all its names.
pub(super) fn push(
    args: &BuildArgs,
    tags: &[Reference],
    descriptor: &Descriptor,
    store: &Store,
) -> Result<()> {
    let client = registries::client(args.plain_http)?;
    for tag in tags {
        let meter = args.meter();
        let on_progress = |progress| meter.report(&progress);
        let sent = client.push(store, descriptor, &Platform::here(), tag, &on_progress);
        meter.clear();
        let digest = sent?.digest;
        if !args.quiet {
            terminal::eprint(&format!("jobc: pushed {}\n", tag.at(&digest).familiar()));
        }
    }
    Ok(())
}
