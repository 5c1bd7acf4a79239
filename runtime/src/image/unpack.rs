//! Layers as folders that an overlay can lay over each other, each unpacked once and shared by all images that have it.
//!
//! ```text
//! unpacked/<whose ids>/<diff id>/files      the layer, whiteouts in the form of overlays
//! unpacked/<whose ids>/<diff id>/left.json  what it leaves to the layers below it, see `seam`
//! unpacked/<whose ids>/<diff id>/boot       the boot it was unpacked in, until it is known to be on the disk
//! unpacked/<whose ids>/<diff id>.<layers>/  a seam over this layer and those below it
//! unpacked/<whose ids>/….part/              being unpacked, locked by who does it
//! ```
//!
//! A layer gets its name when it is whole, and its content has the digest that its image's configuration says. Nothing waits
//! for the disk then: a layer of another boot that nobody has seen to be on the disk is unpacked anew, for a power cut may
//! have left files of it empty. The next use after a minute sees to it (syncfs(2)), when the kernel has written most of it.

mod apart;
mod layer;
mod limits;
mod part;
mod seam;
mod settled;
mod whose;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::{Descriptor, Digest, Image, Progress, Store, Told};
use crate::bundle::because;
use crate::error::{Error, Kind, Result};
use crate::root::archive::tree::Owners;
use crate::root::layers::Layers;

pub(super) use apart::pack as pack_apart;
pub use apart::{COMMAND, become_worker, remove};
pub use limits::Limits;
pub use whose::Whose;

/// As many layers are unpacked at a time at most: each takes two threads and some megabytes.
const AT_A_TIME: usize = 4;

/// The layers of an image as folders, the lowest first, for containers of whoever asks; what is not unpacked yet is.
///
/// The folders may be one more than the layers, where several of them only together say what a folder is like, and fewer,
/// where a layer comes twice.
///
/// # Errors
///
/// A layer is broken, hostile, or not what the image says it is; no space left; `stopped` has become true. Nothing is left of
/// a layer that is not whole.
pub fn layers(store: &Store, image: &Image, told: Told<'_>, stopped: &AtomicBool) -> Result<Vec<PathBuf>> {
    layers_within(store, image, &Limits::of_environment()?, told, stopped)
}

/// The same with other limits.
pub fn layers_within(
    store: &Store,
    image: &Image,
    limits: &Limits,
    told: Told<'_>,
    stopped: &AtomicBool,
) -> Result<Vec<PathBuf>> {
    let whose = Whose::mine()?;
    let unpacking = Unpacking::new(store, image, limits, told, stopped, whose.folder(store))?;
    if unpacking.missing().is_empty() {
        for (layer, _) in &unpacking.layers {
            let known = Progress::Layer {
                digest: layer.digest.clone(),
                done: layer.size,
                total: layer.size,
                known: true,
            };
            told(known);
        }
        if let Some(folders) = seam::found(&unpacking)? {
            return Ok(folders);
        }
    }
    match &whose {
        Whose::Ids(maps) => apart::unpack(&unpacking, maps)?,
        Whose::Root => unpacking.unpack(Owners::Kept)?,
        Whose::One => unpacking.unpack(Owners::Mine)?,
    }
    seam::found(&unpacking)?.ok_or_else(|| {
        Error::new(Kind::State, "the layers were removed while they were unpacked").help("try again")
    })
}

/// Copies folders, the lowest first, into one that is made: a root without an overlay, for one container, where the kernel or the
/// file system refuses overlays. It takes its time and its bytes, which its user is to be told.
///
/// # Errors
///
/// The folder is there; no space left. Nothing is left then.
pub fn copy(folders: &[PathBuf], to: &Path) -> Result<()> {
    match Whose::mine()? {
        Whose::Ids(maps) => apart::copy(folders, to, &maps),
        Whose::Root | Whose::One => copy_here(folders, to),
    }
}

fn copy_here(folders: &[PathBuf], to: &Path) -> Result<()> {
    let failed = |error: std::io::Error| {
        Error::new(
            Kind::Machine,
            format!("cannot copy the layers to `{}`: {}", to.display(), because(&error)),
        )
    };
    fs::create_dir(to).map_err(failed)?;
    let copied = Layers::open(folders).map_err(std::io::Error::from).and_then(|layers| layers.copy_to(to));
    if copied.is_err() {
        // The first error is the one to tell.
        let _ = crate::root::remove::remove(to);
    }
    copied.map_err(failed)
}

/// An image whose layers are to become folders.
struct Unpacking<'a> {
    store: &'a Store,
    image: &'a Image,
    /// Each layer once, the lowest first: its blob and its diff id.
    layers: Vec<(&'a Descriptor, &'a Digest)>,
    limits: &'a Limits,
    told: Told<'a>,
    stopped: &'a AtomicBool,
    /// Where the folders of layers are.
    folder: PathBuf,
}

impl<'a> Unpacking<'a> {
    fn new(
        store: &'a Store,
        image: &'a Image,
        limits: &'a Limits,
        told: Told<'a>,
        stopped: &'a AtomicBool,
        folder: PathBuf,
    ) -> Result<Self> {
        let diffs = &image.config.rootfs.diff_ids;
        // Of a layer that comes twice the upper one says all that both say, and the kernel takes no folder twice.
        let last = |index: usize, diff: &Digest| !diffs[index + 1..].contains(diff);
        let layers = image.manifest.layers.iter().zip(diffs).enumerate();
        let layers = layers.filter(|(index, (_, diff))| last(*index, diff)).map(|(_, layer)| layer).collect();
        fs::create_dir_all(&folder).map_err(|error| store.full("write to", &error))?;
        Ok(Self { store, image, layers, limits, told, stopped, folder })
    }

    /// The folder of a layer.
    fn place(&self, diff_id: &Digest) -> PathBuf {
        self.folder.join(diff_id.hex())
    }

    /// The layers that are not there as a whole.
    fn missing(&self) -> Vec<(&'a Descriptor, &'a Digest)> {
        self.layers.iter().copied().filter(|(_, diff_id)| !settled::is_whole(&self.place(diff_id))).collect()
    }

    /// Unpacks what is missing, several layers at a time, and makes what holds them together.
    fn unpack(&self, owners: Owners) -> Result<()> {
        let mut missing = self.missing();
        self.refuse_full_disk(&missing)?;
        // The largest first, so that the last to end is not the one that began last.
        missing.sort_by_key(|(layer, _)| std::cmp::Reverse(layer.size));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = missing.len().min(cores).min(AT_A_TIME);
        let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
        let work = || {
            while let Some((layer, diff_id)) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(error) = layer::unpack(self, layer, diff_id, owners) {
                    // The others end with the layers that they are at.
                    next.store(missing.len(), Ordering::Relaxed);
                    let mut failed = failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    failed.get_or_insert(error);
                }
            }
        };
        if threads > 1 {
            std::thread::scope(|scope| {
                for _ in 1..threads {
                    scope.spawn(work);
                }
                work();
            });
        } else {
            work();
        }
        match failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            Some(error) => Err(error),
            None => seam::make(self),
        }
    }

    /// Sees that the layers would fit the disk if they were not compressed at all.
    fn refuse_full_disk(&self, missing: &[(&Descriptor, &Digest)]) -> Result<()> {
        let needed = missing.iter().fold(0u64, |sum, (layer, _)| sum.saturating_add(layer.size));
        let Ok(disk) = rustix::fs::statvfs(&self.folder) else { return Ok(()) };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if needed <= free {
            return Ok(());
        }
        let root = self.store.root().display();
        let message = format!(
            "the layers of the image take more than {} MiB, and {} MiB are left in the store of images `{root}`",
            needed >> 20,
            free >> 20
        );
        Err(Error::new(Kind::Machine, message).help(
            "remove what nothing uses with `jobc image gc`, or name a larger place with `--image-root`",
        ))
    }

    /// The words for what cannot be done in the folder of layers.
    fn failed(&self, what: &str, path: &std::path::Path, error: &std::io::Error) -> Error {
        if matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded) {
            return self.store.full(what, error);
        }
        Error::new(Kind::Machine, format!("cannot {what} `{}`: {}", path.display(), because(error)))
    }
}

#[cfg(test)]
mod tests;
