//! The digests of a context's files, kept from one build to the next.
//!
//! A file that has the same device, inode, mode, size and times as before has the same content, except for one that was
//! written at the moment it was read: within the clock's granularity its times may not change. Such files are read
//! again.

mod hash;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use rustix::fs::FileType;

use super::cache::{Key, replace_file};
use super::source_listing::{Entry, SourceListing, c_path, identity, with_path};
use super::tree_writer::read_xattrs;
use crate::store::Store;
use jobc_schema::digest::{Digest, Hasher};
use jobc_sys::open_inside::open_inside;

/// How many seconds old a file's last change must be for its digest to be kept.
const MIN_FILE_AGE_SECONDS: i64 = 2;

/// How many digests are kept of one context.
const MAX_DIGESTS: usize = 200_000;

/// A file's identity, and the 32 bytes of its digest.
const RECORD_SIZE: usize = 8 * 8 + 32;

type Identity = [u64; 8];

/// The cached digests of the files of a context.
#[derive(Debug)]
pub(super) struct ContentDigests {
    path: PathBuf,
    before: HashMap<Identity, [u8; 32]>,
    seen: Mutex<HashMap<Identity, [u8; 32]>>,
    changed: AtomicBool,
}

impl ContentDigests {
    /// Those that a store keeps of a context.
    pub(super) fn of(store: &Store, context: &Path) -> Self {
        let name = Digest::of(context.as_os_str().as_bytes());
        let path = store.root().join("cache/contents").join(name.hex());
        let bytes = fs::read(&path).unwrap_or_default();
        let before = bytes.as_chunks::<RECORD_SIZE>().0.iter().map(|record| {
            let (numbers, digest) = record.split_at(64);
            let mut identity = [0; 8];
            for (number, bytes) in identity.iter_mut().zip(numbers.as_chunks::<8>().0) {
                *number = u64::from_le_bytes(*bytes);
            }
            let mut value = [0; 32];
            value.copy_from_slice(digest);
            (identity, value)
        });
        Self { path, before: before.collect(), seen: Mutex::default(), changed: AtomicBool::new(false) }
    }

    /// Adds to a key what a source's files are: names, kinds, bits and contents. Times and owners are not included.
    pub(super) fn add_to_key(
        &self,
        key: &mut Key,
        tree: &OwnedFd,
        found: &SourceListing,
        stopped: &AtomicBool,
    ) -> io::Result<()> {
        key.add(if found.is_directory() { b"" } else { found.name().as_bytes() });
        for parent in &found.parents {
            key.add(parent.path.as_os_str().as_bytes());
            key.add(parent.status.st_mode.to_le_bytes());
        }
        key.add((found.entries.len() as u64).to_le_bytes());
        for entry in &found.entries {
            if stopped.load(Ordering::Relaxed) {
                return Err(io::Error::other("canceled"));
            }
            let whole = found.path.join(&entry.path);
            key.add(entry.path.as_os_str().as_bytes());
            key.add(entry.status.st_mode.to_le_bytes());
            match entry.kind() {
                FileType::Directory => {}
                FileType::RegularFile => {
                    key.add(
                        self.digest(tree, found, entry, stopped).map_err(|error| with_path(error, &whole))?,
                    );
                }
                FileType::Symlink => {
                    let link = open_inside(
                        tree,
                        &c_path(&whole)?,
                        rustix::fs::OFlags::PATH | rustix::fs::OFlags::NOFOLLOW,
                    )?;
                    key.add(rustix::fs::readlinkat(&link, c"", Vec::new())?.as_bytes());
                }
                _ => key.add(entry.status.st_rdev.to_le_bytes()),
            }
        }
        Ok(())
    }

    fn digest(
        &self,
        tree: &OwnedFd,
        found: &SourceListing,
        entry: &Entry,
        stopped: &AtomicBool,
    ) -> io::Result<[u8; 32]> {
        let identity = identity(&entry.status);
        if let Some(known) = self.before.get(&identity) {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(identity, *known);
            return Ok(*known);
        }
        let mut file = File::from(found.open(tree, entry)?);
        let mut hasher = Hasher::default();
        for (name, value) in read_xattrs(&file)? {
            hasher.update(name.as_bytes_with_nul());
            hasher.update(&(value.len() as u64).to_le_bytes());
            hasher.update(&value);
        }
        hash::content(&mut file, &entry.status, &mut hasher, stopped)?;
        let mut digest = [0; 32];
        let hex = hasher.finish();
        for (byte, pair) in digest.iter_mut().zip(hex.hex().as_bytes().chunks(2)) {
            *byte = std::str::from_utf8(pair)
                .ok()
                .and_then(|pair| u8::from_str_radix(pair, 16).ok())
                .unwrap_or_default();
        }
        let now = SystemTime::UNIX_EPOCH
            .elapsed()
            .map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
        if entry.status.st_ctime < now - MIN_FILE_AGE_SECONDS {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(identity, digest);
            self.changed.store(true, Ordering::Relaxed);
        }
        Ok(digest)
    }

    /// Keeps what was learnt. Whatever fails only costs the next build time.
    pub(super) fn save(self) {
        if !self.changed.into_inner() {
            return;
        }
        let mut all = self.seen.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Another Dockerfile of the context may read files that this build did not.
        for (identity, digest) in self.before {
            if all.len() >= MAX_DIGESTS {
                break;
            }
            all.entry(identity).or_insert(digest);
        }
        let mut records: Vec<(Identity, [u8; 32])> = all.into_iter().collect();
        records.sort_unstable();
        let mut bytes = Vec::with_capacity(records.len() * RECORD_SIZE);
        for (identity, digest) in records {
            bytes.extend(identity.iter().flat_map(|number| number.to_le_bytes()));
            bytes.extend(digest);
        }
        let _ = self.path.parent().map(fs::create_dir_all);
        let _ = replace_file(&self.path, &bytes);
    }
}

#[cfg(test)]
mod tests;
