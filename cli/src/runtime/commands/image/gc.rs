//! `jobc image gc`: removes unused data.

use std::process::ExitCode;

use jobc_image::Store;
use jobc_image::store::CollectionReport;
use jobc_schema::plural;
use jobc_sys::error::{Error, Kind};
use serde_json::json;

use crate::args::FormatArg;
use crate::runtime::args::image::GcArgs;
use crate::runtime::commands::jobs::{Result, json_text};
use crate::runtime::quantity::bytes;
use crate::terminal;

pub(super) fn run(args: &GcArgs, store: &Store) -> Result<ExitCode> {
    let Some(collected) = store.collect(args.cache, true, args.dry_run)? else {
        return Err(Error::new(Kind::State, "the image store is in use by another command")
            .help("wait until it ends: a pull, an import, a build, or a job that unpacks its images")
            .into());
    };
    if args.output_args.format == FormatArg::Json {
        terminal::print(&json_text(&json!({
            "blobs": collected.blobs,
            "layers": collected.layers,
            "partial": collected.partial,
            "bytes": collected.bytes,
            "dry_run": args.dry_run,
        })));
    } else {
        terminal::print(&describe_collected(
            &collected,
            if args.dry_run { "would be removed" } else { "removed" },
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// What was removed, in one line.
pub(super) fn describe_collected(collected: &CollectionReport, verb: &str) -> String {
    let partial = match collected.partial {
        0 => String::new(),
        count => format!(" and {}", plural(count, "incomplete blob")),
    };
    format!(
        "{verb}: {}{partial} of {}, {}\n",
        plural(collected.blobs.len(), "blob"),
        bytes(collected.bytes),
        plural(collected.layers.len(), "unpacked layer")
    )
}
