//! `jobc image import`: imports images from archives and directories.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use jobc_image::source::{self, ImportedImage};
use jobc_image::store::Writer;
use jobc_image::{Reference, Store};
use jobc_sys::error::{Error, Kind};
use jobc_sys::signals::Signals;
use serde_json::json;

use super::name::new_name;
use crate::args::FormatArg;
use crate::runtime::args::image::ImportArgs;
use crate::runtime::commands::jobs::{Failure, Result, json_text};
use crate::runtime::interruptible::{self, exit_by_signal};
use crate::runtime::message::interrupted;
use crate::runtime::progress::Meter;
use crate::terminal;

pub(super) fn run(args: &ImportArgs, store: &Store) -> Result<ExitCode> {
    let tag = args.tag.as_deref().map(new_name).transpose()?;
    let meter = Meter::new(FormatArg::Text, args.quiet || args.output_args.format == FormatArg::Json);
    let images = import(args, store, &meter)?;
    meter.clear();
    let named = assign_names(images, tag, args)?;
    for (image, names) in &named {
        for name in names {
            store.tag(name, &image.descriptor)?;
        }
    }
    if args.quiet {
        return Ok(ExitCode::SUCCESS);
    }
    for (image, names) in &named {
        if args.output_args.format == FormatArg::Json {
            terminal::print(&json_text(&json!({
                "names": names.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "digest": image.descriptor.digest,
                "source": image.kind.describe(),
            })));
            continue;
        }
        for name in names {
            let digest = image.descriptor.digest.short();
            terminal::print(&format!("{} {digest}, from {}\n", name.familiar(), image.kind.describe()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The images of the source, which have no names in the store yet. A signal ends this program in the middle: it may wait
/// for a read of stdin, and blobs without a name are removed later.
fn import(args: &ImportArgs, store: &Store, meter: &Meter) -> Result<Vec<ImportedImage>> {
    let signals = Signals::block_forwarded()?;
    let work = || {
        let copy = (args.source == Path::new("-")).then(|| copy_stdin(store)).transpose()?;
        let source = copy.as_ref().map_or(args.source.as_path(), Writer::path);
        let on_progress = |progress| meter.report(&progress);
        source::import(store, source, &on_progress, &AtomicBool::new(false)).map_err(|mut error| {
            if copy.is_some() {
                error.what = error.what.replace(&*source.to_string_lossy(), "-");
            }
            match error.kind {
                // The source is absent, damaged, or in a form that is not supported.
                Kind::Config | Kind::Unsupported | Kind::Unenforceable => Failure::usage_error(error),
                _ => error.into(),
            }
        })
    };
    interruptible::run(&signals, work, |signal| {
        meter.clear();
        interrupted("nothing was imported");
        exit_by_signal(signal);
    })?
}

/// Stdin, in a temporary file of the store, which exists as long as the writer.
fn copy_stdin(store: &Store) -> Result<Writer<'_>> {
    let mut writer = store.begin()?;
    io::copy(&mut io::stdin().lock(), &mut writer).map_err(|error| store.write_error("write to", &error))?;
    Ok(writer)
}

/// The images with their new names.
fn assign_names(
    images: Vec<ImportedImage>,
    tag: Option<Reference>,
    args: &ImportArgs,
) -> Result<Vec<(ImportedImage, Vec<Reference>)>> {
    let source = args.source.display();
    if let Some(tag) = tag {
        return match <[ImportedImage; 1]>::try_from(images) {
            Ok([image]) => Ok(vec![(image, vec![tag])]),
            Err(images) => {
                let message =
                    format!("`{source}` contains {} images, and `--tag` names only one", images.len());
                Err(Failure::usage_error(
                    Error::new(Kind::Config, message)
                        .help("leave `--tag` out to import them under their own names"),
                ))
            }
        };
    }
    if images.iter().any(|image| image.names.is_empty()) {
        let file = args.source.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let stem = file.split(".tar").next().unwrap_or_default().trim_end_matches(".tgz").to_owned();
        let example = stem.parse::<Reference>().map_or_else(|_| "base:1".to_owned(), |_| format!("{stem}:1"));
        let message = format!("the image in `{source}` has no name");
        return Err(Failure::usage_error(
            Error::new(Kind::Config, message).help(format!("name it with `--tag {example}`")),
        ));
    }
    Ok(images
        .into_iter()
        .map(|image| (image.names.clone(), image))
        .map(|(names, image)| (image, names))
        .collect())
}
