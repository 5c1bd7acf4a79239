//! Imports the only image of a source again only if the source has changed.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::import;
use crate::manifest::Descriptor;
use crate::platform::Platform;
use crate::progress::ProgressFn;
use crate::store::{Store, sorted_json};
use jobc_schema::digest::Digest;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::write_atomic::{Durability, write_atomic};

/// Imports the image of a source that contains one, unless the same file was imported before and its image is complete.
///
/// A file is the same if its inode, size and times are. Directories are imported every time.
///
/// # Errors
///
/// As of [`import`], and a source of several images.
pub fn import_one(
    store: &Store,
    source: &Path,
    on_progress: ProgressFn<'_>,
    stopped: &AtomicBool,
) -> Result<Descriptor> {
    let note = cache_path(store, source);
    if let Some(known) = note.as_ref().and_then(|note| read_cache(store, note)) {
        return Ok(known);
    }
    let images = import(store, source, on_progress, stopped)?;
    let [image] = &images[..] else {
        let message = format!("`{}` contains {} images, but one is expected", source.display(), images.len());
        return Err(Error::new(Kind::Config, message)
            .help("import them with `jobc image import`, then name the image to use"));
    };
    if let Some(note) = note {
        // Without the entry, the image is imported again.
        let _ = write_cache(&note, &image.descriptor);
    }
    Ok(image.descriptor.clone())
}

/// The same for concurrent processes: one imports the image, and the others wait for it.
///
/// # Errors
///
/// As of [`import_one`].
pub fn import_once(
    store: &Store,
    source: &Path,
    on_progress: ProgressFn<'_>,
    stopped: &AtomicBool,
) -> Result<Descriptor> {
    let note = cache_path(store, source);
    if let Some(known) = note.as_ref().and_then(|note| read_cache(store, note)) {
        return Ok(known);
    }
    let work = note.as_deref().unwrap_or(source).to_string_lossy();
    let _lock = store.lock_work(&work, stopped)?;
    import_one(store, source, on_progress, stopped)
}

/// Where it is noted what a file holds: by all that changes when it does.
fn cache_path(store: &Store, source: &Path) -> Option<PathBuf> {
    let data = fs::metadata(source).ok().filter(fs::Metadata::is_file)?;
    let times = (data.mtime(), data.mtime_nsec(), data.ctime(), data.ctime_nsec());
    let key = format!("{} {} {} {times:?}", data.dev(), data.ino(), data.size());
    Some(store.root().join("cache/sources").join(Digest::of(key.as_bytes()).hex()))
}

fn read_cache(store: &Store, note: &Path) -> Option<Descriptor> {
    let known: Descriptor = serde_json::from_slice(&fs::read(note).ok()?).ok()?;
    store.is_complete(&known, &Platform::here()).then_some(known)
}

/// Notes in a file what a source holds.
fn write_cache(note: &Path, descriptor: &Descriptor) -> std::io::Result<()> {
    let directory = note.parent().unwrap_or(note);
    std::fs::create_dir_all(directory)?;
    write_atomic(note, &sorted_json(descriptor), 0o666, Durability::Disk)
}
