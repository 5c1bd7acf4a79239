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
mod copied;
mod layer;
mod limits;
mod missing;
mod part;
mod seam;
mod settled;
mod unpacking;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::progress::{Progress, Told};
use crate::store::{Image, Store};
use copied::copy_here;
pub use jobc_container::archive::tree::Owners;
use jobc_sys::error::{Error, Kind, Result};
use unpacking::Unpacking;

pub use crate::whose::Whose;
pub use crate::worker::{COMMAND, remove};
pub use apart::become_worker;
pub use limits::Limits;

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

#[cfg(test)]
mod tests;
