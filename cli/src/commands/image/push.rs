//! `jobc image push`: an image of the store to a registry.

use std::process::ExitCode;

use jobc_runtime::error::{Error, Kind};
use jobc_runtime::image::store::Store;
use jobc_runtime::image::{Platform, Reference};
use serde_json::json;

use crate::args::FormatArg;
use crate::args::image::PushArgs;
use crate::commands::jobs::{Failure, Result};
use crate::progress::Meter;
use crate::{registries, terminal};

pub(super) fn run(args: &PushArgs, store: &Store) -> Result<ExitCode> {
    let image: Reference = args.image.parse().map_err(Failure::wrong_use)?;
    let destination = match &args.destination {
        Some(destination) => destination.parse().map_err(Failure::wrong_use)?,
        None => image.clone(),
    };
    let descriptor = store.find(&image)?.ok_or_else(|| {
        let message = format!("there is no image `{}` here", image.familiar());
        let error = Error::new(Kind::State, message).help("`jobc image ls` shows the images that are here");
        Failure::wrong_use(error)
    })?;
    let client = registries::client(args.plain_http).map_err(Failure::wrong_use)?;
    let meter = Meter::new(args.format, args.quiet);
    let told = |progress| meter.tell(&progress);
    let sent = client.push(store, &descriptor, &Platform::here(), &destination, &told)?;
    meter.clear();
    if args.format == FormatArg::Json {
        let object = json!({"event": "image", "name": destination.to_string(), "digest": sent.digest});
        terminal::print(&format!("{object}\n"));
    } else if !args.quiet {
        terminal::print(&format!("{}\n", destination.at(&sent.digest).familiar()));
    }
    Ok(ExitCode::SUCCESS)
}
