//! What can be brought into the store without a registry, told apart by what it is.
//!
//! | | |
//! |---|---|
//! | a folder with `oci-layout` | an OCI image layout |
//! | another folder | a root file system |
//! | an archive with `oci-layout` or `blobs/` | an OCI image layout |
//! | an archive with `manifest.json` | what `docker save` writes |
//! | another archive | a root file system: what `docker export`, debootstrap and the from-scratch tutorials make |
//! | `scratch` | an image without files |
//!
//! Archives may be compressed by gzip or zstd, and are read once, from their beginning to their end.

mod archive;
mod docker;
mod known;
mod layout;
mod rootfs;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::{Config, Descriptor, Manifest, Platform, Reference, Store, Told};
use crate::bundle::because;
use crate::error::{Error, Kind, Result};
use crate::image::manifest::media;

pub use known::the_image;

/// An image that was brought in, and what it is called where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Its names; none where the source has none.
    pub names: Vec<Reference>,
    /// Its manifest or index.
    pub descriptor: Descriptor,
    /// What it came from.
    pub kind: SourceKind,
}

/// What an image came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// An OCI image layout.
    Layout,
    /// What `docker save` writes.
    DockerArchive,
    /// A root file system.
    RootFs,
    /// Nothing.
    Scratch,
}

impl SourceKind {
    /// In words, with its article.
    pub fn words(self) -> &'static str {
        match self {
            Self::Layout => "an OCI layout",
            Self::DockerArchive => "a Docker archive",
            Self::RootFs => "a root file system",
            Self::Scratch => "an empty image",
        }
    }
}

/// Brings in every image of a source, under no name; `stopped` set to true ends it soon.
///
/// # Errors
///
/// It is none of the above, is broken, or does not fit the disk. What came in until then is left to be collected.
pub fn import(store: &Store, source: &Path, told: Told<'_>, stopped: &AtomicBool) -> Result<Vec<Imported>> {
    if source == Path::new("scratch") && !source.exists() {
        let descriptor = finish(store, Config::default(), Vec::new())?;
        return Ok(vec![Imported { names: Vec::new(), descriptor, kind: SourceKind::Scratch }]);
    }
    let data = std::fs::metadata(source).map_err(|error| {
        let error =
            Error::new(Kind::Config, format!("cannot open `{}`: {}", source.display(), because(&error)));
        let text = source.to_string_lossy();
        if text == "host" {
            error.help("`host` needs no import: write `image: host` in the job file")
        } else if text.parse::<Reference>().is_ok() && !text.contains(".tar") {
            error.help(format!(
                "give an archive or a folder; an image of a registry comes with `jobc image pull {text}`"
            ))
        } else {
            error.help("give an archive or a folder")
        }
    })?;
    if !data.is_dir() {
        return archive::import(store, source, told, stopped);
    }
    if source.join("oci-layout").is_file() {
        return layout::import(store, source, stopped);
    }
    rootfs::folder(store, source)
}

/// Puts an image of layers in, for the platform of this machine; each layer with its diff id.
fn finish(store: &Store, mut config: Config, layers: Vec<(Descriptor, super::Digest)>) -> Result<Descriptor> {
    let here = Platform::here();
    (config.os, config.architecture) = (here.os, here.architecture);
    let (layers, diff_ids): (Vec<_>, Vec<_>) = layers.into_iter().unzip();
    config.rootfs.diff_ids = diff_ids;
    let config = store.put_json(&config, media::CONFIG)?;
    store.put_json(&Manifest::new(config, layers), media::MANIFEST)
}

/// Notes in a file what a source holds.
fn kept(note: &Path, descriptor: &Descriptor) -> std::io::Result<()> {
    let folder = note.parent().unwrap_or(note);
    std::fs::create_dir_all(folder)?;
    let new = note.with_extension(std::process::id().to_string());
    std::fs::write(&new, super::store::sorted_json(descriptor))?;
    std::fs::rename(&new, note)
}

/// What a source says is not so.
fn broken(source: &Path, why: impl std::fmt::Display) -> Error {
    Error::new(Kind::Config, format!("`{}` is not whole: {why}", source.display()))
        .help("make it again, or copy it again")
}

fn given_up() -> Error {
    Error::new(Kind::State, "the import was given up")
}

#[cfg(test)]
mod tests;
