//! An image as it is run: the manifest for a platform with its configuration.

use std::collections::HashSet;

use super::directory::Store;
use super::document::{MAX_INDEX_DEPTH, MAX_LAYERS, parse};
use crate::config::Config;
use crate::manifest::Descriptor;
use crate::manifest::media;
use crate::manifest::{Index, Manifest};
use crate::platform::Platform;
use jobc_schema::digest::Digest;
use jobc_sys::error::{Error, Kind, Result};

/// An image for one platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its manifest's descriptor.
    pub descriptor: Descriptor,
    /// Its manifest.
    pub manifest: Manifest,
    /// Its configuration.
    pub config: Config,
}

impl Image {
    /// Its platform.
    pub fn platform(&self) -> Platform {
        Platform::new(&self.config.os, &self.config.architecture, self.config.variant.as_deref())
    }

    /// Bytes of its layers as they lie in the store.
    pub fn size(&self) -> u64 {
        self.manifest.layers.iter().fold(0, |sum, layer| sum.saturating_add(layer.size))
    }
}

impl Store {
    /// The image that a descriptor of an index or a manifest selects for a platform.
    ///
    /// # Errors
    ///
    /// It is for other platforms, is something else than an image, or lacks documents in this store.
    pub fn image(&self, descriptor: &Descriptor, platform: &Platform) -> Result<Image> {
        let descriptor = self.manifest_for(descriptor, platform)?;
        let image = self.read_image(&descriptor)?;
        let is = image.platform();
        // An image without an architecture, as some tools write them, is accepted for any platform.
        if !is.architecture.is_empty() && is.match_score(platform) == 0 {
            return Err(no_matching_platform(&descriptor, &[is], platform));
        }
        Ok(image)
    }

    /// Whether the store has all blobs of an image for a platform.
    pub fn is_complete(&self, descriptor: &Descriptor, platform: &Platform) -> bool {
        let image = self.image(descriptor, platform);
        image.is_ok_and(|image| image.manifest.layers.iter().all(|layer| self.has(&layer.digest)))
    }

    /// The manifest for a platform: itself, or the best of an index.
    ///
    /// # Errors
    ///
    /// As [`image`](Self::image).
    pub fn manifest_for(&self, descriptor: &Descriptor, platform: &Platform) -> Result<Descriptor> {
        let mut at = descriptor.clone();
        // An index may be in an index; a longer chain is not an image.
        for _ in 0..4 {
            if media::is_manifest(&at.media_type) {
                return Ok(at);
            }
            if !media::is_index(&at.media_type) {
                break;
            }
            at = self.entry_for(&at, platform)?;
        }
        Err(Error::new(
            Kind::Unsupported,
            format!("{} is not an image: its kind is `{}`", descriptor.digest, at.media_type),
        )
        .help("name an image whose manifest is of OCI or of Docker's schema 2"))
    }

    /// Every image that a descriptor references and that is in the store, one per platform. What is not an image is
    /// omitted.
    pub fn images_in(&self, descriptor: &Descriptor) -> Vec<Image> {
        let mut images = Vec::new();
        self.add_images_in(descriptor, MAX_INDEX_DEPTH, &mut HashSet::new(), &mut images);
        images
    }

    /// Indexes may name each other's entries again and again; each is looked at once.
    fn add_images_in(
        &self,
        descriptor: &Descriptor,
        depth: usize,
        seen: &mut HashSet<Digest>,
        images: &mut Vec<Image>,
    ) {
        if !seen.insert(descriptor.digest.clone()) {
            return;
        }
        if !media::is_index(&descriptor.media_type) {
            images.extend(self.read_image(descriptor));
        } else if depth > 0 {
            let index: Index = self.document(descriptor).unwrap_or_default();
            for manifest in &index.manifests {
                self.add_images_in(manifest, depth - 1, seen, images);
            }
        }
    }

    /// The entry of an index in the store that serves a platform best, which need not be in the store itself.
    ///
    /// # Errors
    ///
    /// The index does not exist, or none of its entries is for the platform.
    pub fn entry_for(&self, index: &Descriptor, platform: &Platform) -> Result<Descriptor> {
        select(index, self.document(index)?, platform)
    }

    /// The image of a manifest, for any platform.
    pub(super) fn read_image(&self, descriptor: &Descriptor) -> Result<Image> {
        let manifest: Manifest = self.document(descriptor)?;
        if !media::is_config(&manifest.config.media_type) {
            return Err(Error::new(
                Kind::Unsupported,
                format!(
                    "{} is an artifact of type `{}`, not a runnable image",
                    descriptor.digest, manifest.config.media_type
                ),
            )
            .help("name a container image"));
        }
        let config: Config = self.document(&manifest.config)?;
        let diffs = &config.rootfs.diff_ids;
        if diffs.len() != manifest.layers.len() {
            return Err(Error::new(
                Kind::Config,
                format!(
                    "the image {} has {} layers, and its configuration names {}",
                    descriptor.digest,
                    manifest.layers.len(),
                    diffs.len()
                ),
            ));
        }
        if diffs.len() > MAX_LAYERS {
            let what = format!("the image {} has {} layers", descriptor.digest, diffs.len());
            return Err(Error::new(Kind::Unsupported, format!("{what}; the limit is {MAX_LAYERS}"))
                .help("ask its author for another one"));
        }
        if let Some(layer) = manifest.layers.iter().find(|layer| !media::is_layer(&layer.media_type)) {
            return Err(Error::new(
                Kind::Unsupported,
                format!("the image {} has a layer of kind `{}`", descriptor.digest, layer.media_type),
            )
            .help("layers must be tar archives, uncompressed or compressed with gzip or zstd; convert it with `skopeo copy`"));
        }
        Ok(Image { descriptor: descriptor.bare(), manifest, config })
    }

    /// A document of the store as a value.
    ///
    /// # Errors
    ///
    /// It does not exist, was changed, or is something else.
    pub fn document<T: serde::de::DeserializeOwned>(&self, descriptor: &Descriptor) -> Result<T> {
        let bytes = self.bytes(descriptor)?;
        parse(&bytes).map_err(|error| {
            let what = format!("{} is not a document of kind `{}`", descriptor.digest, descriptor.media_type);
            Error::new(Kind::Config, format!("{what}: {error}"))
        })
    }
}

/// The entry of an index that serves a platform best; the first of equally good ones.
fn select(index_at: &Descriptor, index: Index, platform: &Platform) -> Result<Descriptor> {
    let runs =
        |entry: &Descriptor| media::is_manifest(&entry.media_type) || media::is_index(&entry.media_type);
    let entries: Vec<Descriptor> = index.manifests.into_iter().filter(runs).collect();
    let serves = |entry: &Descriptor| entry.platform.as_ref().map_or(1, |is| is.match_score(platform));
    let best = entries.iter().map(serves).max().unwrap_or(0);
    if let Some(entry) = entries.iter().find(|entry| serves(entry) == best && best > 0) {
        return Ok(entry.clone());
    }
    let others: Vec<Platform> = entries.into_iter().filter_map(|entry| entry.platform).collect();
    Err(no_matching_platform(index_at, &others, platform))
}

fn no_matching_platform(descriptor: &Descriptor, others: &[Platform], platform: &Platform) -> Error {
    let mut names: Vec<String> =
        others.iter().filter(|other| other.os != "unknown").map(|other| format!("`{other}`")).collect();
    names.dedup();
    let names = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    Error::new(
        Kind::Unsupported,
        format!("the image {} is for {names}, and not for `{platform}`", descriptor.digest),
    )
    .help("choose an image for this platform, or build one")
}
