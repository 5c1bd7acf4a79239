//! An OCI image layout: a directory of blobs, named by index.json.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::errors::{canceled, invalid_source};
use super::imported::{ImportedImage, SourceKind};
use crate::manifest::{CONTAINERD_NAME, REF_NAME, media};
use crate::manifest::{Descriptor, Index, Manifest};
use crate::store::{MAX_DOCUMENT_SIZE, MAX_INDEX_DEPTH, MAX_LAYERS, Store, parse};
use jobc_schema::digest::Digest;
use jobc_schema::reference::Reference;
use jobc_sys::error::{Error, Kind, Result, describe_io};

/// Copies every image of a layout, with all of its blobs that exist.
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
    let index: Index =
        parse(text).map_err(|error| invalid_source(source, format!("`index.json`: {error}")))?;
    if index.manifests.is_empty() {
        return Err(Error::new(Kind::Config, format!("the layout `{}` contains no image", source.display())));
    }
    let mut images: Vec<ImportedImage> = Vec::new();
    let mut import = TreeImport { store, source, bring, known: HashMap::new() };
    for descriptor in &index.manifests {
        if !import.import(descriptor, MAX_INDEX_DEPTH)? {
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

/// The import of what indexes name. They may name the same content again and again: each is imported once.
struct TreeImport<'a> {
    store: &'a Store,
    source: &'a Path,
    bring: &'a dyn Fn(&Descriptor) -> Result<bool>,
    /// Whether the last entry exists.
    known: HashMap<(Digest, String), bool>,
}

impl TreeImport<'_> {
    /// Imports the content of a descriptor and everything that it references; false if it is missing. In an index,
    /// manifests of some platforms may be missing, but not all.
    fn import(&mut self, descriptor: &Descriptor, depth: usize) -> Result<bool> {
        let key = (descriptor.digest.clone(), descriptor.media_type.clone());
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let is_there = (self.bring)(descriptor)?;
        self.known.insert(key, is_there);
        if !is_there {
            return Ok(false);
        }
        let invalid = |why: String| Err(invalid_source(self.source, why));
        if media::is_index(&descriptor.media_type) {
            if depth == 0 {
                return invalid(format!("the index {} is in more than 4 others", descriptor.digest));
            }
            let index: Index = self.store.document(descriptor)?;
            let mut any = false;
            for manifest in &index.manifests {
                any |= self.import(manifest, depth - 1)?;
            }
            if !any {
                let why = format!("the index {} has no manifest", descriptor.digest);
                return Err(invalid_source(self.source, why));
            }
        } else if media::is_manifest(&descriptor.media_type) {
            let manifest: Manifest = self.store.document(descriptor)?;
            if manifest.layers.len() > MAX_LAYERS {
                let layers = manifest.layers.len();
                return invalid(format!(
                    "the image {} has {layers} layers; the limit is {MAX_LAYERS}",
                    descriptor.digest
                ));
            }
            for part in std::iter::once(&manifest.config).chain(&manifest.layers) {
                if !(self.bring)(part)? {
                    return invalid(format!("{} is missing", part.digest));
                }
            }
        }
        Ok(true)
    }
}

/// The names of an image, if the annotation is a complete name: some tools only annotate a tag.
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
    writer.finish(Some(descriptor)).map_err(|error| invalid_source(source, error.message()))?;
    Ok(true)
}
