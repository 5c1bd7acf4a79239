//! `jobc image mount` and `jobc image umount`: images as directories that can only be read.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use jobc_image::store::MountRecord;
use jobc_image::{Platform, Store, mount};
use jobc_sys::error::{Error, Kind};
use serde_json::json;

use super::name::{familiar, find};
use crate::args::FormatArg;
use crate::runtime::args::image_tools::{MountArgs, UmountArgs};
use crate::runtime::commands::jobs::{Failure, Result, json_text};
use crate::runtime::progress::Meter;
use crate::table::Table;
use crate::terminal;

pub(super) fn run(args: &MountArgs, store: &Store) -> Result<ExitCode> {
    let Some(image) = &args.image else { return list(args, store) };
    let platform = match &args.platform {
        Some(text) => text.parse().map_err(Failure::usage_error)?,
        None => Platform::here(),
    };
    let image = store.image(&find(store, image)?.descriptor, &platform)?;
    let meter = Meter::new(args.output_args.format, args.quiet || args.output_args.format == FormatArg::Json);
    let on_progress = |progress| meter.report(&progress);
    let stopped = AtomicBool::new(false);
    let directory = mount::mount(store, &image, args.directory.as_deref(), &on_progress, &stopped)?;
    meter.clear();
    if args.output_args.format == FormatArg::Json {
        let object = json!({"digest": image.descriptor.digest, "directory": directory});
        terminal::print(&json_text(&object));
    } else {
        terminal::print(&format!("{}\n", directory.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn list(args: &MountArgs, store: &Store) -> Result<ExitCode> {
    let mounts = store.mounts()?;
    if args.output_args.format == FormatArg::Json {
        let list: Vec<_> = mounts
            .iter()
            .map(|mount| {
                json!({"names": names(store, mount), "digest": mount.digest, "directory": mount.directory})
            })
            .collect();
        terminal::print(&json_text(&list));
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["NAME", "DIGEST", "DIRECTORY"]);
    for mount in &mounts {
        let names = names(store, mount);
        table.row([
            names.first().cloned().unwrap_or_else(|| "-".to_owned()),
            mount.digest.short().to_owned(),
            mount.directory.display().to_string(),
        ]);
    }
    terminal::print(&table.render(terminal::columns_of_stdout()));
    Ok(ExitCode::SUCCESS)
}

/// The names of a mounted image.
fn names(store: &Store, mount: &MountRecord) -> Vec<String> {
    let images = store.images().unwrap_or_default();
    let is_it = |named: &jobc_image::store::NamedImage| {
        store.images_in(&named.descriptor).iter().any(|image| image.descriptor.digest == mount.digest)
    };
    images.iter().filter(|named| is_it(named)).filter_map(|named| familiar(named.name.as_deref())).collect()
}

pub(super) fn unmount(args: &UmountArgs, store: &Store) -> Result<ExitCode> {
    let mounts = store.mounts()?;
    let mut chosen: Vec<&MountRecord> = Vec::new();
    if args.all {
        chosen.extend(&mounts);
    }
    for word in &args.mounts {
        let path = std::fs::canonicalize(word).unwrap_or_else(|_| Path::new(word).to_owned());
        let mut found: Vec<&MountRecord> = mounts.iter().filter(|mount| mount.directory == path).collect();
        if found.is_empty() && !word.starts_with(['/', '.']) {
            let named = find(store, word)?;
            let images = store.images_in(&named.descriptor);
            let is_it =
                |mount: &&MountRecord| images.iter().any(|image| image.descriptor.digest == mount.digest);
            found = mounts.iter().filter(is_it).collect();
        }
        if found.is_empty() {
            let error = Error::new(Kind::State, format!("no image is mounted for `{word}`"));
            return Err(Failure::usage_error(error.help("`jobc image mount` lists the mounted images")));
        }
        chosen.extend(found);
    }
    for record in chosen {
        mount::unmount(store, record)?;
        terminal::print(&format!("{}\n", record.directory.display()));
    }
    Ok(ExitCode::SUCCESS)
}
