//! Layers as directories that an overlay can lay over each other, each unpacked once and shared by all images that have
//! it.
//!
//! ```text
//! unpacked/<whose ids>/<diff id>/files      the layer, whiteouts in the form of overlays
//! unpacked/<whose ids>/<diff id>/left.json  what it leaves to the layers below it, see `seam`
//! unpacked/<whose ids>/<diff id>/boot       the boot it was unpacked in, until it is known to be on the disk
//! unpacked/<whose ids>/<diff id>.<layers>/  a seam over this layer and those below it
//! unpacked/<whose ids>/….part/              being unpacked, locked by the process that does it
//! ```
//!
//! A layer gets its name when it is complete and its content has the digest in its image's configuration. It does not
//! wait for the disk then: a layer of an earlier boot that was not synced is unpacked again, because a power failure
//! may have left files of it empty. The next use after a minute syncs it (syncfs(2)), when the kernel has written most
//! of it.

mod copy_layers;
mod follow;
mod incoming;
mod layer;
mod limits;
mod merge_layer;
mod missing;
mod partial;
mod sync;
mod unpacker;
mod userns_worker;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::ownership::LayerDirectories;
use crate::progress::{Progress, ProgressFn};
use crate::store::{Image, Store};
use copy_layers::copy_here;
pub use jobc_container::archive::tree::Owners;
use jobc_sys::error::{Error, Kind, Result};
use unpacker::Unpacker;

pub use crate::ownership::Ownership;
pub use crate::worker::{COMMAND, remove};
pub use follow::follow;
pub use limits::Limits;
pub use userns_worker::become_worker;

/// The layers of an image as directories, the lowest first, for containers of the calling user; layers that are not
/// unpacked yet are unpacked.
///
/// There may be one directory more than layers, if only several of them together define the attributes of a directory,
/// and fewer, if a layer occurs twice.
///
/// # Errors
///
/// A layer is corrupt, hostile, or does not match the image; no space left; `stopped` has become true. Nothing is left
/// of an incomplete layer.
pub fn layers(
    store: &Store,
    image: &Image,
    on_progress: ProgressFn<'_>,
    stopped: &AtomicBool,
) -> Result<Vec<PathBuf>> {
    layers_within(store, image, &Limits::of_environment()?, on_progress, stopped)
}

/// The same for containers in which the calling user, without privileges, is this user and group of the image.
///
/// # Errors
///
/// Those of [`layers`].
pub fn layers_as(
    store: &Store,
    image: &Image,
    inside: (u32, u32),
    on_progress: ProgressFn<'_>,
    stopped: &AtomicBool,
) -> Result<Vec<PathBuf>> {
    let whose = Ownership::of_current_user_as(Some(inside))?;
    let limits = Limits::of_environment()?;
    let unpacker =
        Unpacker::new(store, image, &limits, on_progress, stopped, whose.layer_directories(store))?;
    unpack_missing(&unpacker, &whose)
}

/// The same, in the store itself: of directories in shared stores none is used, since their owner does not see for how
/// long.
///
/// # Errors
///
/// Those of [`layers`].
pub fn own_layers(
    store: &Store,
    image: &Image,
    on_progress: ProgressFn<'_>,
    stopped: &AtomicBool,
) -> Result<Vec<PathBuf>> {
    let whose = Ownership::of_current_user()?;
    let directories = LayerDirectories { shared: Vec::new(), ..whose.layer_directories(store) };
    let limits = Limits::of_environment()?;
    let unpacker = Unpacker::new(store, image, &limits, on_progress, stopped, directories)?;
    unpack_missing(&unpacker, &whose)
}

/// The same with other limits.
pub fn layers_within(
    store: &Store,
    image: &Image,
    limits: &Limits,
    on_progress: ProgressFn<'_>,
    stopped: &AtomicBool,
) -> Result<Vec<PathBuf>> {
    let whose = Ownership::of_current_user()?;
    let unpacker = Unpacker::new(store, image, limits, on_progress, stopped, whose.layer_directories(store))?;
    unpack_missing(&unpacker, &whose)
}

fn unpack_missing(unpacking: &Unpacker<'_>, whose: &Ownership) -> Result<Vec<PathBuf>> {
    let on_progress = unpacking.progress;
    if unpacking.missing().is_empty() {
        for (layer, _) in &unpacking.layers {
            let known = Progress::Layer {
                digest: layer.digest.clone(),
                done: layer.size,
                total: layer.size,
                known: true,
            };
            on_progress(known);
        }
        if let Some(directories) = merge_layer::directories(unpacking)? {
            return Ok(directories);
        }
    }
    match whose {
        Ownership::Mapped(maps) => userns_worker::unpack(unpacking, maps)?,
        Ownership::Root => unpacking.unpack(Owners::FromArchive)?,
        Ownership::SingleUser => unpacking.unpack(Owners::CurrentUser)?,
    }
    merge_layer::directories(unpacking)?.ok_or_else(|| {
        Error::new(Kind::State, "the layers were removed while they were unpacked").help("try again")
    })
}

/// Copies directories, the lowest first, into a new one: a root without an overlay, for one container, if the kernel or
/// the file system refuses overlays. It takes time and disk space, which the caller should report to the user.
///
/// # Errors
///
/// The directory exists, or no space is left. Partial files are removed.
pub fn copy(directories: &[PathBuf], to: &Path) -> Result<()> {
    match Ownership::of_current_user()? {
        Ownership::Mapped(maps) => userns_worker::copy(directories, to, &maps),
        Ownership::Root | Ownership::SingleUser => copy_here(directories, to),
    }
}

#[cfg(test)]
mod tests;
