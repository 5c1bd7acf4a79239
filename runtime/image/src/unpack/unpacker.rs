//! An image that is being unpacked: its layers, and which of them are missing.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::limits::Limits;
use super::sync;
use crate::manifest::Descriptor;
use crate::ownership::LayerDirectories;
use crate::progress::ProgressFn;
use crate::store::{Image, Store};
use jobc_schema::digest::Digest;
use jobc_sys::error::{Error, Kind, Result, describe_io};

/// An image whose layers are to become directories.
pub(super) struct Unpacker<'a> {
    pub(super) store: &'a Store,
    pub(super) image: &'a Image,
    /// Each layer once, the lowest first: its blob and its diff id.
    pub(super) layers: Vec<(&'a Descriptor, &'a Digest)>,
    pub(super) limits: &'a Limits,
    pub(super) progress: ProgressFn<'a>,
    pub(super) stopped: &'a AtomicBool,
    /// Where the directories of layers are.
    pub(super) directories: LayerDirectories,
    /// Whether blobs that are not in the store are being fetched, and waited for.
    pub(super) is_incoming: bool,
}

impl<'a> Unpacker<'a> {
    pub(super) fn new(
        store: &'a Store,
        image: &'a Image,
        limits: &'a Limits,
        on_progress: ProgressFn<'a>,
        stopped: &'a AtomicBool,
        directories: LayerDirectories,
    ) -> Result<Self> {
        let diffs = &image.config.rootfs.diff_ids;
        // If a layer occurs twice, the upper one is sufficient, and overlayfs refuses the same directory twice.
        let last = |index: usize, diff: &Digest| !diffs[index + 1..].contains(diff);
        let layers = image.manifest.layers.iter().zip(diffs).enumerate();
        let layers = layers.filter(|(index, (_, diff))| last(*index, diff)).map(|(_, layer)| layer).collect();
        fs::create_dir_all(&directories.own).map_err(|error| store.write_error("write to", &error))?;
        Ok(Self {
            store,
            image,
            layers,
            limits,
            progress: on_progress,
            stopped,
            directories,
            is_incoming: false,
        })
    }

    /// The directory of a layer: where it is complete, or else where it will be unpacked.
    pub(super) fn layer_path(&self, diff_id: &Digest) -> PathBuf {
        self.find_complete(diff_id.hex()).unwrap_or_else(|| self.directories.own.join(diff_id.hex()))
    }

    /// The directory of that name which is whole, in the own store or a shared one.
    pub(super) fn find_complete(&self, name: &str) -> Option<PathBuf> {
        let directories = std::iter::once(&self.directories.own).chain(&self.directories.shared);
        directories.map(|directory| directory.join(name)).find(|path| sync::is_complete(path))
    }

    /// The layers that do not exist as a whole.
    pub(super) fn missing(&self) -> Vec<(&'a Descriptor, &'a Digest)> {
        self.layers
            .iter()
            .copied()
            .filter(|(_, diff_id)| self.find_complete(diff_id.hex()).is_none())
            .collect()
    }

    /// The error for a failed operation in the directory of layers.
    pub(super) fn failed(&self, what: &str, path: &std::path::Path, error: &std::io::Error) -> Error {
        if matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded) {
            return self.store.write_error(what, error);
        }
        Error::new(Kind::System, format!("cannot {what} `{}`: {}", path.display(), describe_io(error)))
    }
}
