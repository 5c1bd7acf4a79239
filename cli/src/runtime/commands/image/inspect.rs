//! `jobc image inspect`: prints the details of an image.

use std::process::ExitCode;

use jobc_image::Store;
use serde_json::json;

use super::name::{find, platform};
use crate::runtime::args::image::InspectArgs;
use crate::runtime::commands::jobs::{Result, json_text};
use crate::terminal;

pub(super) fn run(args: &InspectArgs, store: &Store) -> Result<ExitCode> {
    let platform = platform(args.platform.as_deref())?;
    let found = find(store, &args.image)?;
    let image = store.image(&found.descriptor, &platform)?;
    let names =
        store.images()?.into_iter().filter(|other| other.descriptor.digest == found.descriptor.digest);
    terminal::print(&json_text(&json!({
        "names": names.filter_map(|other| other.name).collect::<Vec<_>>(),
        "digest": found.descriptor.digest,
        "platform": image.platform().to_string(),
        "size_bytes": image.size(),
        "manifest_digest": image.descriptor.digest,
        "manifest": image.manifest,
        "config": image.config,
    })));
    Ok(ExitCode::SUCCESS)
}
