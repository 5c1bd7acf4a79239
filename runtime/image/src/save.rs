//! Images as one archive, for hosts that no registry reaches: an image layout (image-spec, image-layout.md) in a tar
//! archive, with the list that `docker save` writes.
//!
//! Docker before version 25 reads that list, `manifest.json`, and does not support layouts; podman, skopeo, containerd
//! and [`source`](super::source) read the layout.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use indexmap::IndexMap;
use serde_json::json;

use crate::manifest::{CONTAINERD_NAME, Descriptor, Index, Manifest, REF_NAME, media};
use crate::platform::Platform;
use crate::progress::{Progress, ProgressFn};
use crate::store::{Image, Store, sorted_json};
use jobc_container::tar::{Entry, Kind as Is, Writer};
use jobc_schema::digest::{Digest, Hasher};
use jobc_schema::reference::Reference;
use jobc_sys::error::{Error, Kind, Result, describe_io};

/// Writes images, each with its name if it has one, as one archive; the same images give the same bytes.
///
/// For a list, the archive has the images of it that are in the store, and the list itself, so that its digest stays
/// the same. Docker's manifest names the one for `platform` if there is one.
///
/// # Errors
///
/// An image is incomplete in the store, a blob was changed, `output` fails, or `stopped` has become true.
pub fn save(
    store: &Store,
    images: &[(Descriptor, Option<Reference>)],
    platform: &Platform,
    on_progress: ProgressFn<'_>,
    stopped: &AtomicBool,
    output: &mut dyn Write,
) -> Result<()> {
    let mut saving = ArchiveContent { store, blobs: IndexMap::new() };
    let (mut index, mut list) = (Index { media_type: None, ..Index::default() }, Vec::new());
    for (descriptor, name) in images {
        saving.add(descriptor)?;
        index.manifests.push(named(descriptor, name.as_ref()));
        let image = saving.docker_image(descriptor, platform)?;
        // Full names: podman treats a name without a registry as a local one.
        let tags: Vec<String> = name.iter().map(ToString::to_string).collect();
        let paths: Vec<String> = image.manifest.layers.iter().map(|layer| path(&layer.digest)).collect();
        list.push(json!({"Config": path(&image.manifest.config.digest), "RepoTags": tags, "Layers": paths}));
    }
    let failed = |error: &io::Error| {
        Error::new(Kind::System, format!("cannot write the archive: {}", describe_io(error)))
    };
    let mut archive = Writer::new(output);
    let documents = [
        // The first entries of an archive tell `source` its format.
        ("oci-layout", sorted_json(&json!({"imageLayoutVersion": "1.0.0"}))),
        ("index.json", sorted_json(&index)),
        ("manifest.json", sorted_json(&list)),
    ];
    for (name, text) in documents {
        file(&mut archive, name, text.len() as u64, &mut &text[..]).map_err(|error| failed(&error))?;
    }
    for (digest, size) in &saving.blobs {
        let tell = |done| {
            on_progress(Progress::Blob { digest: digest.clone(), done, total: Some(*size), known: false });
        };
        let mut blob =
            VerifyingReader { inner: store.blob(digest)?, hasher: Hasher::new(digest.algorithm()), stopped };
        tell(0);
        file(&mut archive, &path(digest), *size, &mut blob).map_err(|error| failed(&error))?;
        if blob.hasher.finish() != *digest {
            return Err(Error::new(Kind::State, format!("the blob {digest} was changed"))
                .help("remove it with `jobc image verify --remove`, then fetch or build the image again"));
        }
        tell(*size);
    }
    archive.finish().map(drop).map_err(|error| failed(&error))
}

/// The content of an archive.
struct ArchiveContent<'a> {
    store: &'a Store,
    /// Blobs in the order that they are named in, each once, with their bytes.
    blobs: IndexMap<Digest, u64>,
}

impl ArchiveContent<'_> {
    /// Adds an image; of an index, the manifests in the store.
    fn add(&mut self, descriptor: &Descriptor) -> Result<()> {
        if self.add_if_complete(descriptor)? {
            return Ok(());
        }
        let digest = &descriptor.digest;
        Err(Error::new(Kind::State, format!("the image {digest} is incomplete in this store"))
            .help("fetch it with `jobc image pull`"))
    }

    /// Adds a descriptor's content; false, and nothing, if it is incomplete.
    fn add_if_complete(&mut self, descriptor: &Descriptor) -> Result<bool> {
        if !self.store.has(&descriptor.digest) {
            return Ok(false);
        }
        let mut parts = vec![];
        if media::is_index(&descriptor.media_type) {
            let mut any = false;
            for entry in &self.store.document::<Index>(descriptor)?.manifests {
                any |= self.add_if_complete(entry)?;
            }
            if !any {
                return Ok(false);
            }
        } else if media::is_manifest(&descriptor.media_type) {
            let manifest: Manifest = self.store.document(descriptor)?;
            parts = std::iter::once(manifest.config).chain(manifest.layers).collect();
        }
        if !parts.iter().all(|part| self.store.has(&part.digest)) {
            return Ok(false);
        }
        self.blobs.insert(descriptor.digest.clone(), descriptor.size);
        self.blobs.extend(parts.into_iter().map(|part| (part.digest, part.size)));
        Ok(true)
    }

    /// The image in the archive for readers that do not know lists.
    fn docker_image(&self, descriptor: &Descriptor, platform: &Platform) -> Result<Image> {
        let here = |image: &Image| self.blobs.contains_key(&image.descriptor.digest);
        let mut images: Vec<Image> = self.store.images_in(descriptor).into_iter().filter(here).collect();
        match images.iter().position(|image| image.platform().match_score(platform) > 0) {
            Some(best) => Ok(images.swap_remove(best)),
            None if !images.is_empty() => Ok(images.swap_remove(0)),
            // The archive names its format instead.
            None => self.store.image(descriptor, platform),
        }
    }
}

/// A descriptor as in the index of a layout.
fn named(descriptor: &Descriptor, name: Option<&Reference>) -> Descriptor {
    let mut named = descriptor.bare();
    if let Some(name) = name {
        for key in [CONTAINERD_NAME, REF_NAME] {
            named.annotations.insert(key.to_owned(), name.to_string());
        }
    }
    named
}

/// Where a blob is in a layout.
fn path(digest: &Digest) -> String {
    format!("blobs/{}/{}", digest.algorithm().name(), digest.hex())
}

fn file(archive: &mut Writer<&mut dyn Write>, path: &str, size: u64, data: &mut dyn Read) -> io::Result<()> {
    archive.file(&Entry { mode: 0o644, size, ..Entry::new(Is::File, path) }, data)
}

/// A blob whose digest is counted as it is read.
struct VerifyingReader<'a> {
    inner: std::fs::File,
    hasher: Hasher,
    stopped: &'a AtomicBool,
}

impl Read for VerifyingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(io::Error::other("canceled"));
        }
        let count = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
