//! An OCI image layout: a directory of blobs, named by index.json.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::errors::{canceled, invalid_source};
use super::imported::{ImportedImage, SourceKind};
use crate::manifest::{CONTAINERD_NAME, REF_NAME, media};
use crate::manifest::{Descriptor, Index, Manifest};
use crate::store::MAX_DOCUMENT_SIZE;
use crate::store::Store;
use jobc_schema::reference::Reference;
use jobc_sys::error::{Error, Kind, Result, describe_io};

/// Copies every image of a layout, with all that it names and that is there.
pub(super) fn import(store: &Store, source: &Path, stopped: &AtomicBool) -> Result<Vec<ImportedImage>> {
    let index = source.join("index.json");
    let failed =
        |error: &std::io::Error| invalid_source(source, format!("`index.json`: {}", describe_io(error)));
    let mut text = Vec::new();
    let file = File::open(&index).map_err(|error| failed(&error))?;
    file.take(MAX_DOCUMENT_SIZE).read_to_end(&mut text).map_err(|error| failed(&error))?;
    let bring = |descriptor: &Descriptor| copy(store, source, descriptor, stopped);
    images(store, source, &text, &bring)
}

/// The images that the text of an index.json names. `bring` puts a blob into the store; false if it does not exist.
pub(super) fn images(
    store: &Store,
    source: &Path,
    text: &[u8],
    bring: &dyn Fn(&Descriptor) -> Result<bool>,
) -> Result<Vec<ImportedImage>> {
    let index: Index = serde_json::from_slice(text)
        .map_err(|error| invalid_source(source, format!("`index.json`: {error}")))?;
    if index.manifests.is_empty() {
        return Err(Error::new(Kind::Config, format!("the layout `{}` contains no image", source.display())));
    }
    let mut images: Vec<ImportedImage> = Vec::new();
    for descriptor in &index.manifests {
        if !import_tree(store, source, descriptor, bring)? {
            return Err(invalid_source(source, format!("{} is missing", descriptor.digest)));
        }
        let names: Vec<Reference> = named(descriptor);
        match images.iter_mut().find(|image| image.descriptor.digest == descriptor.digest) {
            Some(image) => image.names.extend(names),
            None => {
                images.push(ImportedImage { names, descriptor: descriptor.bare(), kind: SourceKind::Layout });
            }
        }
    }
    Ok(images)
}

/// Imports the content of a descriptor and everything that it references; false if it is missing. In an index,
/// manifests of some platforms may be missing, but not all.
fn import_tree(
    store: &Store,
    source: &Path,
    descriptor: &Descriptor,
    bring: &dyn Fn(&Descriptor) -> Result<bool>,
) -> Result<bool> {
    if !bring(descriptor)? {
        return Ok(false);
    }
    if media::is_index(&descriptor.media_type) {
        let index: Index = store.document(descriptor)?;
        let mut any = false;
        for manifest in &index.manifests {
            any |= import_tree(store, source, manifest, bring)?;
        }
        if !any {
            return Err(invalid_source(source, format!("the index {} has no manifest", descriptor.digest)));
        }
    } else if media::is_manifest(&descriptor.media_type) {
        let manifest: Manifest = store.document(descriptor)?;
        for part in std::iter::once(&manifest.config).chain(&manifest.layers) {
            if !bring(part)? {
                return Err(invalid_source(source, format!("{} is missing", part.digest)));
            }
        }
    }
    Ok(true)
}

/// The names of an image, where what is noted is a whole one: some tools note a tag alone.
fn named(descriptor: &Descriptor) -> Vec<Reference> {
    let notes = [CONTAINERD_NAME, REF_NAME].into_iter().filter_map(|key| descriptor.annotations.get(key));
    notes.filter(|name| name.contains([':', '/'])).find_map(|name| name.parse().ok()).into_iter().collect()
}

fn copy(store: &Store, source: &Path, descriptor: &Descriptor, stopped: &AtomicBool) -> Result<bool> {
    let digest = &descriptor.digest;
    if store.has(digest) {
        return Ok(true);
    }
    let path = source.join("blobs").join(digest.algorithm().name()).join(digest.hex());
    let mut file = match File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        other => other.map_err(|error| invalid_source(source, describe_io(&error)))?,
    };
    let Some(mut writer) = store.resume(descriptor)? else { return Ok(true) };
    writer.restart()?;
    let mut buffer = vec![0; 1 << 18];
    loop {
        if stopped.load(Ordering::Relaxed) {
            return Err(canceled());
        }
        match file.read(&mut buffer).map_err(|error| invalid_source(source, describe_io(&error)))? {
            0 => break,
            some => {
                writer.write_all(&buffer[..some]).map_err(|error| match error.kind() {
                    std::io::ErrorKind::Other => invalid_source(source, format!("{digest}: {error}")),
                    _ => store.write_error("write to", &error),
                })?;
            }
        }
    }
    writer.finish(Some(descriptor)).map_err(|error| invalid_source(source, error.message))?;
    Ok(true)
}
