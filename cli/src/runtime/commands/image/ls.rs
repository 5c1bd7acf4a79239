//! `jobc image ls`: lists the images in the store.

use std::process::ExitCode;

use jobc_image::{Image, Store};
use serde_json::json;

use super::name::familiar;
use crate::args::FormatArg;
use crate::runtime::args::image::LsArgs;
use crate::runtime::commands::jobs::{Result, json_text};
use crate::runtime::quantity::bytes;
use crate::table::{Table, escape_control};
use crate::terminal;

pub(super) fn run(args: &LsArgs, store: &Store) -> Result<ExitCode> {
    let images = store.images()?;
    let shown = images.iter().map(|named| (named, store.images_in(&named.descriptor)));
    if args.output_args.format == FormatArg::Json {
        let list: Vec<_> = shown
            .map(|(named, images)| {
                json!({
                    "name": named.name,
                    "digest": named.descriptor.digest,
                    "media_type": named.descriptor.media_type,
                    "platforms": images.iter().map(|image| image.platform().to_string()).collect::<Vec<_>>(),
                    "size_bytes": size(&images),
                    "shared_store": named.shared,
                    "created": created(&images),
                })
            })
            .collect();
        terminal::print(&json_text(&list));
        return Ok(ExitCode::SUCCESS);
    }
    let name =
        |name: Option<&str>| familiar(name).map_or_else(|| "-".to_owned(), |name| escape_control(&name));
    if args.quiet {
        for named in &images {
            let text = familiar(named.name.as_deref()).unwrap_or_else(|| named.descriptor.digest.to_string());
            terminal::print(&format!("{}\n", escape_control(&text)));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let headings = ["NAME", "DIGEST", "PLATFORM", "SIZE", "CREATED"];
    let rows = shown.map(|(named, images)| {
        let platforms: Vec<String> = images.iter().map(|image| image.platform().to_string()).collect();
        let created = created(&images).unwrap_or_default();
        [
            name(named.name.as_deref()),
            named.descriptor.digest.short().to_owned(),
            if platforms.is_empty() { "-".to_owned() } else { escape_control(&platforms.join(", ")) },
            if images.is_empty() { "-".to_owned() } else { bytes(size(&images)) },
            escape_control(created.split('T').next().unwrap_or_default()),
        ]
    });
    // Most hosts have no shared store, so a column for it would be useless.
    let text = if images.iter().any(|named| named.shared.is_some()) {
        let [name, digest, platform, size, created] = headings;
        let mut table = Table::new([name, digest, platform, size, created, "SHARED STORE"]);
        for (named, [name, digest, platform, size, created]) in images.iter().zip(rows) {
            let shared = named.shared.as_ref().map(|path| escape_control(&path.display().to_string()));
            table.row([name, digest, platform, size, created, shared.unwrap_or_else(|| "-".to_owned())]);
        }
        table.render(terminal::columns_of_stdout())
    } else {
        let mut table = Table::new(headings);
        rows.for_each(|row| table.row(row));
        table.render(terminal::columns_of_stdout())
    };
    terminal::print(&text);
    Ok(ExitCode::SUCCESS)
}

/// Bytes of the layers, each counted once.
fn size(images: &[Image]) -> u64 {
    let layers = images.iter().flat_map(|image| &image.manifest.layers);
    let layers: std::collections::BTreeMap<_, _> = layers.map(|layer| (&layer.digest, layer.size)).collect();
    layers.values().fold(0, |sum, size| sum.saturating_add(*size))
}

fn created(images: &[Image]) -> Option<String> {
    images.first()?.config.created.clone()
}
