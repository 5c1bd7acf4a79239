//! `jobc image pull`: pulls images from registries into the store.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use jobc_image::store::Store;
use jobc_image::{Reference, unpack};
use serde_json::json;

use super::name::platform;
use crate::args::FormatArg;
use crate::runtime::args::image::PullArgs;
use crate::runtime::commands::jobs::{Failure, Result};
use crate::runtime::progress::Meter;
use crate::runtime::registries;
use crate::terminal;

/// A signal ends this program in the middle.
static CONTINUE: AtomicBool = AtomicBool::new(false);

/// Pulls one image after the other, each with several blobs in parallel.
///
/// If the process is ended at any moment, for example by Ctrl-C, complete blobs stay, and the next pull continues.
pub(super) fn run(args: &PullArgs, store: &Store) -> Result<ExitCode> {
    let images = args.images.iter().map(|image| Ok(image.parse::<Reference>()?));
    let images = images.collect::<jobc_sys::Result<Vec<_>>>().map_err(Failure::usage_error)?;
    let platform = platform(args.platform.as_deref())?;
    let client = registries::client(args.transfer.plain_http).map_err(Failure::usage_error)?;
    let meter = Meter::new(args.transfer.format, args.transfer.quiet);
    for image in &images {
        let report = |progress| meter.report(&progress);
        let descriptor = if args.unpack {
            let descriptor = client.pull_unpacked(store, image, &platform, &report, &CONTINUE)?;
            unpack::layers(store, &store.image(&descriptor, &platform)?, &report, &CONTINUE)?;
            descriptor
        } else {
            client.pull(store, image, &platform, &report)?
        };
        meter.clear();
        let manifest = store.manifest_for(&descriptor, &platform)?;
        if args.transfer.format == FormatArg::Json {
            let object = json!({
                "event": "image", "name": image.to_string(), "digest": descriptor.digest,
                "manifest": manifest.digest, "platform": platform.to_string(),
            });
            terminal::print(&format!("{object}\n"));
        } else if !args.transfer.quiet {
            terminal::print(&format!("{}\n", image.at(&descriptor.digest).familiar()));
        }
    }
    Ok(ExitCode::SUCCESS)
}
