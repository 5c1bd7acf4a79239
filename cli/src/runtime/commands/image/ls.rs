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
    let mut table = Table::new(["NAME", "DIGEST", "PLATFORM", "SIZE", "CREATED"]);
    for (named, images) in shown {
        let platforms: Vec<String> = images.iter().map(|image| image.platform().to_string()).collect();
        let created = created(&images).unwrap_or_default();
        table.row([
            name(named.name.as_deref()),
            named.descriptor.digest.short().to_owned(),
            if platforms.is_empty() { "-".to_owned() } else { escape_control(&platforms.join(", ")) },
            if images.is_empty() { "-".to_owned() } else { bytes(size(&images)) },
            escape_control(created.split('T').next().unwrap_or_default()),
        ]);
    }
    terminal::print(&table.render(terminal::columns_of_stdout()));
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
