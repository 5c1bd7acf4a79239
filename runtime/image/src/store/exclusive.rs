//! Work that one process of a host does for all others, such as importing an image that many of them start with.

use std::fs::{self, File};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::directory::Store;
use jobc_schema::digest::Digest;
use jobc_sys::error::{Error, Kind, Result};

/// How often to check whether the other process has finished.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A lock that ends with the process at the latest.
#[derive(Debug)]
pub struct ExclusiveLock(File);

impl Store {
    /// Waits until no other process does the work named `what`, and locks it.
    ///
    /// # Errors
    ///
    /// The disk fails; `stopped` has become true.
    pub fn lock_work(&self, what: &str, stopped: &AtomicBool) -> Result<ExclusiveLock> {
        let directory = self.root().join("cache/locks");
        let path = directory.join(Digest::of(what.as_bytes()).hex());
        let open = || {
            fs::create_dir_all(&directory)?;
            // If the file was collected in between, it is created again; two processes may then do the same work, and
            // both succeed.
            File::options().create(true).append(true).open(&path)
        };
        let file = open().map_err(|error| self.write_error("write to", &error))?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(ExclusiveLock(file)),
                Err(Errno::WOULDBLOCK | Errno::INTR) if stopped.load(Ordering::Relaxed) => {
                    return Err(Error::new(Kind::System, "canceled"));
                }
                Err(Errno::WOULDBLOCK) => std::thread::sleep(POLL_INTERVAL),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::system(format!("lock `{}`", path.display()), errno)),
            }
        }
    }
}

impl Drop for ExclusiveLock {
    fn drop(&mut self) {
        // A process that was forked meanwhile may have the file open, too.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn one_at_a_time_does_the_same_work() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let never = AtomicBool::new(false);
        let (working, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let _lock = store.lock_work("image", &never).unwrap();
                    most.fetch_max(working.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(5));
                    working.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 1);
        let held = store.lock_work("image", &never).unwrap();
        let _other = store.lock_work("another image", &never).unwrap();
        let error = store.lock_work("image", &AtomicBool::new(true)).unwrap_err();
        assert_eq!(error.message(), "canceled");
        drop(held);
        store.lock_work("image", &never).unwrap();
    }
}
