//! Layers that are missing are unpacked, several at a time.

use super::unpacker::Unpacker;
use super::{layer, merge_layer};
use crate::manifest::Descriptor;
use jobc_container::archive::tree::Owners;
use jobc_schema::digest::Digest;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::parallel;

/// Maximum concurrent layers: each takes two threads and some megabytes.
const MAX_CONCURRENT: usize = 4;

impl Unpacker<'_> {
    /// Unpacks missing layers, several at a time, and creates the merge layer.
    pub(super) fn unpack(&self, owners: Owners) -> Result<()> {
        let mut missing = self.missing();
        self.refuse_full_disk(&missing)?;
        // The largest first, so that the last to finish is not the one that started last.
        missing.sort_by_key(|(layer, _)| std::cmp::Reverse(layer.size));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // A layer that waits for the network uses no core.
        let most = if self.is_incoming { MAX_CONCURRENT } else { cores.min(MAX_CONCURRENT) };
        // After an error, the others end with the layers that they are at.
        parallel::for_each(&missing, most, |(layer, diff_id), _| {
            layer::unpack(self, layer, diff_id, owners)
        })?;
        merge_layer::create(self)
    }

    /// Checks that the layers would fit the disk if they were not compressed at all.
    fn refuse_full_disk(&self, missing: &[(&Descriptor, &Digest)]) -> Result<()> {
        let needed = missing.iter().fold(0u64, |sum, (layer, _)| sum.saturating_add(layer.size));
        let Ok(disk) = rustix::fs::statvfs(&self.directories.own) else { return Ok(()) };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if needed <= free {
            return Ok(());
        }
        let root = self.store.root().display();
        let message = format!(
            "the layers of the image take more than {} MiB, and {} MiB are left in the image store `{root}`",
            needed >> 20,
            free >> 20
        );
        Err(Error::new(Kind::System, message).help(
            "remove unused images with `jobc image gc`, or choose a larger directory with `--image-root`",
        ))
    }
}
