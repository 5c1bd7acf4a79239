//! A directory that is being made, by one process at a time, and gets its name when it is whole.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::sync;
use jobc_container::remove::remove;
use jobc_sys::error::Result;

/// How often to check whether another process has finished.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A directory without its name yet. Dropped, it is removed; killed, its lock is free and the next takes it over.
pub(super) struct PartialDirectory {
    target: PathBuf,
    partial: PathBuf,
    _lock: File,
    done: bool,
}

impl PartialDirectory {
    /// Starts to create a directory; `None` if it exists, possibly because another process has just created it.
    pub(super) fn create(place: &Path, stopped: &AtomicBool) -> io::Result<Option<Self>> {
        let mut part = place.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        loop {
            if sync::is_complete(place) {
                return Ok(None);
            }
            match fs::create_dir(&part) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            let lock = match File::open(&part) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) if stopped.load(Ordering::Relaxed) => {
                    return Err(io::Error::other("canceled"));
                }
                Err(Errno::WOULDBLOCK) => {
                    std::thread::sleep(LOCK_POLL_INTERVAL);
                    continue;
                }
                other => other?,
            }
            // The previous holder of the lock may have renamed or removed the directory.
            let same = |there: fs::Metadata| Ok::<_, io::Error>(there.ino() == lock.metadata()?.ino());
            let ours = match fs::symlink_metadata(&part) {
                Ok(there) => same(there)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => false,
                Err(error) => return Err(error),
            };
            if ours {
                let ours = Self { target: place.to_owned(), partial: part, _lock: lock, done: false };
                if sync::is_complete(place) {
                    return Ok(None);
                }
                ours.clear()?;
                return Ok(Some(ours));
            }
        }
    }

    /// The directory as it is called now.
    pub(super) fn path(&self) -> &Path {
        &self.partial
    }

    /// Gives it its name.
    pub(super) fn finish(mut self) -> io::Result<()> {
        sync::record_boot(&self.partial)?;
        fs::rename(&self.partial, &self.target)?;
        self.done = true;
        Ok(())
    }

    /// Removes what a killed process has left, and a directory of that name which is not whole.
    pub(super) fn clear(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.partial)? {
            remove_error(remove(&entry?.path()))?;
        }
        remove_error(remove(&self.target))
    }
}

fn remove_error(result: Result<()>) -> io::Result<()> {
    result.map_err(|error| io::Error::other(error.message()))
}

impl Drop for PartialDirectory {
    fn drop(&mut self) {
        if !self.done {
            // The error that led here is the one to report.
            let _ = remove(&self.partial);
        }
    }
}
