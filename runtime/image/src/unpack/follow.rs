//! Layers are unpacked while their blobs are being fetched.
//!
//! The fetch does not wait for it, and what goes wrong here is tried again from the whole blobs by
//! [`layers`](super::layers), whose error is the one to report.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::limits::Limits;
use super::unpacker::Unpacker;
use super::userns_worker;
use crate::ownership::Ownership;
use crate::progress::ProgressFn;
use crate::store::{Image, Store};
use crate::worker;
use jobc_container::archive::tree::Owners;
use jobc_sys::error::Result;

/// How often to check whether the caller has canceled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Fetches an image's blobs with `fetch`, and unpacks its layers as their bytes come; returns what `fetch` returns.
///
/// A layer gets its name once the store has verified its blob's digest, and its content matches the diff id. Whoever
/// needs the directories calls [`layers`](super::layers) afterwards, which unpacks what is missing.
///
/// # Errors
///
/// Those of `fetch`. In that case incomplete layers are removed.
pub fn follow<T>(
    store: &Store,
    image: &Image,
    on_progress: ProgressFn<'_>,
    stopped: &AtomicBool,
    fetch: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let (limits, whose) = (Limits::of_environment()?, Ownership::of_current_user()?);
    let ended = AtomicBool::new(false);
    let unpacker = Unpacker::new(store, image, &limits, on_progress, &ended, whose.layer_directories(store))?;
    let unpacker = Unpacker { is_incoming: true, ..unpacker };
    if unpacker.missing().is_empty() {
        return fetch();
    }
    std::thread::scope(|scope| {
        let work = scope.spawn(|| match &whose {
            Ownership::Mapped(maps) => {
                let result = userns_worker::unpack(&unpacker, maps);
                if result.is_err() {
                    remove_partial(&unpacker, maps);
                }
            }
            // The error comes again where it is reported.
            Ownership::Root => drop(unpacker.unpack(Owners::FromArchive)),
            Ownership::SingleUser => drop(unpacker.unpack(Owners::CurrentUser)),
        });
        let fetched = fetch();
        ended.fetch_or(fetched.is_err(), Ordering::Relaxed);
        while !work.is_finished() {
            ended.fetch_or(stopped.load(Ordering::Relaxed), Ordering::Relaxed);
            std::thread::sleep(POLL_INTERVAL);
        }
        fetched
    })
}

/// Removes what a worker that was killed has left of layers, unless another process is at them.
fn remove_partial(of: &Unpacker<'_>, maps: &jobc_sys::id_map::IdMaps) {
    for (_, diff_id) in of.missing() {
        let part = of.directories.own.join(format!("{}.part", diff_id.hex()));
        let free = |file: File| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if File::open(&part).is_ok_and(free) {
            // The next process that unpacks it removes what remains.
            let _ = worker::remove(&part, maps);
        }
    }
}

#[cfg(test)]
mod tests;
