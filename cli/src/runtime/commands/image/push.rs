//! `jobc image push`: pushes an image of the store to a registry.

use std::process::ExitCode;

use jobc_image::store::NamedImage;
use jobc_image::{Platform, Reference, Store};
use jobc_schema::reference::ReferenceError;
use jobc_sys::error::{Error, Kind};
use serde_json::json;

use crate::args::FormatArg;
use crate::runtime::args::image::PushArgs;
use crate::runtime::commands::jobs::{Failure, Result};
use crate::runtime::progress::Meter;
use crate::runtime::registries;
use crate::terminal;

pub(super) fn run(args: &PushArgs, store: &Store) -> Result<ExitCode> {
    let NamedImage { name, descriptor, .. } = super::name::find(store, &args.image)?;
    let wrong = |error: ReferenceError| Failure::usage_error(error.into());
    let destination: Reference = match (&args.destination, name) {
        (Some(destination), _) => destination.parse().map_err(wrong)?,
        (None, Some(name)) => name.parse().map_err(wrong)?,
        (None, None) => {
            let error = Error::new(Kind::Config, format!("`{}` has no name to push it to", args.image));
            return Err(Failure::usage_error(
                error.help("add the destination: `jobc image push IMAGE DESTINATION`"),
            ));
        }
    };
    let client = registries::client(args.transfer.plain_http).map_err(Failure::usage_error)?;
    let meter = Meter::new(args.transfer.format, args.transfer.quiet);
    let on_progress = |progress| meter.report(&progress);
    let sent = client.push(store, &descriptor, &Platform::here(), &destination, &on_progress)?;
    meter.clear();
    if args.transfer.format == FormatArg::Json {
        let object = json!({"event": "image", "name": destination.to_string(), "digest": sent.digest});
        terminal::print(&format!("{object}\n"));
    } else if !args.transfer.quiet {
        terminal::print(&format!("{}\n", destination.at(&sent.digest).familiar()));
    }
    Ok(ExitCode::SUCCESS)
}
