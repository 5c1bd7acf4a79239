//! `jobc image mount` and `jobc image umount`: images as directories that can only be read.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use jobc_image::store::MountRecord;
use jobc_image::{Store, mount};
use jobc_sys::error::{Error, Kind};
use serde_json::json;

use super::name::{familiar, find, platform};
use crate::args::FormatArg;
use crate::runtime::args::image_tools::{MountArgs, UmountArgs};
use crate::runtime::commands::jobs::{Failure, Result, json_text, print_list};
use crate::runtime::progress::Meter;
use crate::table::Table;
use crate::terminal;

pub(super) fn run(args: &MountArgs, store: &Store) -> Result<ExitCode> {
    let Some(image) = &args.image else { return list(args, store) };
    let platform = platform(args.platform.as_deref())?;
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
    let rows: Vec<_> = mounts.iter().map(|mount| (mount, names(store, mount))).collect();
    let object = |(mount, names): &(&MountRecord, Vec<String>)| json!({"names": names, "digest": mount.digest, "directory": mount.directory});
    print_list(args.output_args.format, &rows.iter().map(object).collect::<Vec<_>>(), || {
        let mut table = Table::new(["NAME", "DIGEST", "DIRECTORY"]);
        for (mount, names) in &rows {
            let name = names.first().map_or("-", String::as_str);
            let directory = mount.directory.display().to_string();
            table.row([name.to_owned(), mount.digest.short().to_owned(), directory]);
        }
        table
    });
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
