//! The format of `docker save` and `podman save`: manifest.json names a configuration and layers by their paths.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde::Deserialize;

use super::archive::{ArchiveContent, diff_id, normalize_path};
use super::errors::{invalid_source, unreadable};
use super::imported::{ImportedImage, SourceKind};
use super::recompress;
use crate::config::Config;
use crate::manifest::media;
use crate::manifest::{Descriptor, Manifest};
use crate::progress::ProgressFn;
use crate::store::{MAX_LAYERS, Store, parse};
use jobc_schema::digest::Digest;
use jobc_schema::reference::Reference;
use jobc_sys::error::{Error, Kind, Result};

/// An image in manifest.json.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ManifestEntry {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    #[serde(default)]
    layers: Option<Vec<String>>,
}

/// Maximum images of an archive. All may name the same configuration and layers, which are checked for each.
const MAX_IMAGES: usize = 1000;

/// The images of an archive that was read.
pub(super) fn images(
    store: &Store,
    source: &Path,
    content: &ArchiveContent,
    on_progress: ProgressFn<'_>,
    stopped: &AtomicBool,
) -> Result<Vec<ImportedImage>> {
    let text = content.documents.get("manifest.json").ok_or_else(|| {
        Error::new(Kind::Unsupported, format!("`{}` has no `manifest.json`", source.display()))
            .help("save the image again with Docker 1.10 or newer")
    })?;
    let saved: Vec<ManifestEntry> =
        parse(text).map_err(|error| invalid_source(source, format!("`manifest.json`: {error}")))?;
    if saved.len() > MAX_IMAGES {
        let why = format!("`manifest.json` has {} images; the limit is {MAX_IMAGES}", saved.len());
        return Err(invalid_source(source, why));
    }
    let layer = |layer: &Descriptor| layer_of(store, source, layer, on_progress, stopped);
    saved.iter().map(|saved| image(store, source, content, saved, &layer)).collect()
}

fn image(
    store: &Store,
    source: &Path,
    content: &ArchiveContent,
    saved: &ManifestEntry,
    layer_of: &dyn Fn(&Descriptor) -> Result<(Descriptor, Digest)>,
) -> Result<ImportedImage> {
    let config = config_of(store, source, content, &saved.config)?;
    let parsed: Config =
        parse(&config).map_err(|error| invalid_source(source, format!("`{}`: {error}", saved.config)))?;
    let paths = saved.layers.as_deref().unwrap_or_default();
    let diffs = &parsed.rootfs.diff_ids;
    if paths.len() > MAX_LAYERS {
        return Err(invalid_source(
            source,
            format!("it has {} layers; the limit is {MAX_LAYERS}", paths.len()),
        ));
    }
    if paths.len() != diffs.len() {
        let why = format!("it has {} layers, and its configuration names {}", paths.len(), diffs.len());
        return Err(invalid_source(source, why));
    }
    let mut layers = Vec::with_capacity(paths.len());
    for (path, diff) in paths.iter().zip(diffs) {
        let layer =
            blob(content, path).ok_or_else(|| invalid_source(source, format!("`{path}` is missing")))?;
        let (layer, is) = layer_of(layer)?;
        if is != *diff {
            return Err(invalid_source(source, format!("the layer `{path}` is {is}, and should be {diff}")));
        }
        layers.push(layer);
    }
    let config = store.put(&config, media::CONFIG)?;
    let descriptor = store.put_json(&Manifest::new(config, layers), media::MANIFEST)?;
    let names = saved.repo_tags.iter().flatten().filter_map(|name| name.parse::<Reference>().ok());
    Ok(ImportedImage { names: names.collect(), descriptor, kind: SourceKind::DockerArchive })
}

/// A blob as a layer that every tool takes, with its diff id.
fn layer_of(
    store: &Store,
    source: &Path,
    blob: &Descriptor,
    on_progress: ProgressFn<'_>,
    stopped: &AtomicBool,
) -> Result<(Descriptor, Digest)> {
    let mut file = store.blob(&blob.digest)?;
    if recompress::is_needed(&mut file).map_err(|error| unreadable(source, &error))? {
        return recompress::recompress(store, source, file, on_progress, stopped);
    }
    Ok((blob.clone(), diff_id(store, source, blob)?))
}

/// A layer by its path; a layer that two images share is a link at times.
fn blob<'a>(content: &'a ArchiveContent, path: &str) -> Option<&'a Descriptor> {
    let mut path = normalize_path(path);
    for _ in 0..8 {
        match content.links.get(&path) {
            Some(to) => path.clone_from(to),
            None => break,
        }
    }
    content.blobs.get(&path)
}

/// The text of a configuration: a document, or since Docker 25 a blob.
fn config_of(store: &Store, source: &Path, content: &ArchiveContent, path: &str) -> Result<Vec<u8>> {
    if let Some(document) = content.documents.get(&normalize_path(path)) {
        return Ok(document.clone());
    }
    let blob = blob(content, path).ok_or_else(|| invalid_source(source, format!("`{path}` is missing")))?;
    store.bytes(blob)
}
