//! A blob that is being fetched by this process or another, read while it comes.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::manifest::Descriptor;
use crate::store::Store;

/// How often to check whether more has come.
const POLL_INTERVAL: Duration = Duration::from_millis(4);

/// The bytes of a blob as they come. Its end is that of the whole blob: the store has verified its digest by then.
///
/// An error of kind `Other` where the fetch began again, or found that it had received something else.
pub(super) struct IncomingBlob<'a> {
    store: &'a Store,
    descriptor: &'a Descriptor,
    stopped: &'a AtomicBool,
    file: Option<File>,
    at: u64,
}

impl<'a> IncomingBlob<'a> {
    pub(super) fn new(store: &'a Store, descriptor: &'a Descriptor, stopped: &'a AtomicBool) -> Self {
        Self { store, descriptor, stopped, file: None, at: 0 }
    }

    /// The file, once its fetch has begun.
    fn open(&self) -> io::Result<Option<File>> {
        let digest = &self.descriptor.digest;
        // It may get its name between the two checks; the next round finds it.
        for path in [self.store.path(digest), self.store.partial_path(digest)] {
            match File::open(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => return other.map(Some),
            }
        }
        Ok(None)
    }

    /// Whether all of the file was read and is the blob.
    fn is_whole(&self, file: &File) -> io::Result<bool> {
        let (data, named) = (file.metadata()?, std::fs::metadata(self.store.path(&self.descriptor.digest)));
        if data.len() < self.at || data.nlink() == 0 {
            return Err(io::Error::other("the fetch began again"));
        }
        match named {
            Ok(named) if (named.dev(), named.ino()) == (data.dev(), data.ino()) => Ok(self.at == data.len()),
            Ok(_) => Err(io::Error::other("it was fetched anew")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Read for IncomingBlob<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.stopped.load(Ordering::Relaxed) {
            if self.file.is_none() {
                self.file = self.open()?;
            }
            if let Some(mut file) = self.file.as_ref() {
                let count = file.read(buffer)?;
                self.at += count as u64;
                if count > 0 || self.is_whole(file)? {
                    return Ok(count);
                }
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Err(io::Error::other("canceled"))
    }
}

/// Waits until a blob is whole in the store.
///
/// # Errors
///
/// `stopped` has become true.
pub(super) fn wait_for_blob(store: &Store, layer: &Descriptor, stopped: &AtomicBool) -> io::Result<()> {
    while !store.has(&layer.digest) {
        if stopped.load(Ordering::Relaxed) {
            return Err(io::Error::other("canceled"));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}
