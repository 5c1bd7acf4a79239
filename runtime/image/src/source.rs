//! Sources of images other than registries, detected by their content.
//!
//! | | |
//! |---|---|
//! | a directory with `oci-layout` | an OCI image layout |
//! | another directory | a root file system |
//! | an archive with `oci-layout` or `blobs/` | an OCI image layout |
//! | an archive with `manifest.json` | what `docker save` writes |
//! | another archive | a root file system: what `docker export`, debootstrap and the from-scratch tutorials make |
//! | `scratch` | an image without files |
//!
//! A root file system may be in a single directory of the archive or directory, as in `tar -czf rootfs.tar.gz rootfs`.
//!
//! Archives may be compressed by gzip, zstd, xz or bzip2, and are read once, from their beginning to their end.

mod archive;
mod assemble;
mod docker;
mod errors;
mod import_cache;
mod imported;
mod layout;
mod open;
mod recompress;
mod rootfs;
mod strip;

use std::fs::Metadata;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::config::Config;
use crate::progress::ProgressFn;
use crate::store::Store;
use jobc_schema::reference::Reference;
use jobc_sys::error::{Error, Kind, Result, describe_io};

pub use import_cache::{import_once, import_one};
pub use imported::{ImportedImage, SourceKind};

/// Brings in every image of a source, under no name; `stopped` set to true ends it soon.
///
/// # Errors
///
/// It is none of the above, is corrupt, or does not fit on the disk. Blobs imported until then are left for garbage
/// collection.
pub fn import(
    store: &Store,
    source: &Path,
    on_progress: ProgressFn<'_>,
    stopped: &AtomicBool,
) -> Result<Vec<ImportedImage>> {
    store.remove_abandoned()?;
    if source == Path::new("scratch") && !source.exists() {
        let descriptor = assemble::add_image(store, Config::default(), Vec::new())?;
        return Ok(vec![ImportedImage { names: Vec::new(), descriptor, kind: SourceKind::Scratch }]);
    }
    if !status(source)?.is_dir() {
        return archive::import(store, source, on_progress, stopped);
    }
    if source.join("oci-layout").is_file() {
        return layout::import(store, source, stopped);
    }
    rootfs::directory(store, source, on_progress)
}

/// The status of the file or directory of a source.
///
/// # Errors
///
/// It does not exist, or this user may not look.
pub fn status(source: &Path) -> Result<Metadata> {
    std::fs::metadata(source).map_err(|error| {
        let error =
            Error::new(Kind::Config, format!("cannot open `{}`: {}", source.display(), describe_io(&error)));
        let text = source.to_string_lossy();
        if text == "host" {
            error.help("`host` needs no import: write `image: host` in the job file")
        } else if text.parse::<Reference>().is_ok() && !text.contains(".tar") {
            error.help(format!(
                "name an archive or a directory; to get an image from a registry, run `jobc image pull {text}`"
            ))
        } else {
            error.help("name an archive or a directory")
        }
    })
}

#[cfg(test)]
mod tests;
