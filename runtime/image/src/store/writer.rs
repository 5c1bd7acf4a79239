//! A blob on its way into the store.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::directory::Store;
use crate::manifest::Descriptor;
use jobc_schema::digest::Algorithm;
use jobc_schema::digest::Digest;
use jobc_schema::digest::Hasher;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::write_atomic::rename_to_disk;

/// A blob that is being written. If dropped before [`finish`](Self::finish) it is removed, except one of
/// [`Store::resume`].
#[derive(Debug)]
pub struct Writer<'a> {
    store: &'a Store,
    path: PathBuf,
    file: File,
    hasher: Hasher,
    written: u64,
    /// Its maximum size in bytes.
    max_size: u64,
    resumable: bool,
}

impl Store {
    /// Starts a blob whose digest is not known yet.
    ///
    /// # Errors
    ///
    /// The disk fails.
    pub fn begin(&self) -> Result<Writer<'_>> {
        let directory = self.root.join("partial");
        for number in 0_u32.. {
            let path = directory.join(format!("new-{}-{number}", std::process::id()));
            let made = File::options().read(true).write(true).create_new(true).mode(0o444).open(&path);
            match made {
                // Another process may have just taken it for one that was left behind; then it is gone.
                Ok(file)
                    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err()
                        || !is_at(&file, &path) => {}
                Ok(file) => {
                    let hasher = Hasher::default();
                    return Ok(Writer {
                        store: self,
                        path,
                        file,
                        hasher,
                        written: 0,
                        max_size: u64::MAX,
                        resumable: false,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(self.failed("write", &path, &error)),
            }
        }
        unreachable!("a process has no 2^32 blobs on their way")
    }

    /// Removes blobs that killed processes had begun; those being written are locked.
    ///
    /// # Errors
    ///
    /// The disk fails.
    pub fn remove_abandoned(&self) -> Result<()> {
        let directory = self.root.join("partial");
        for entry in
            fs::read_dir(&directory).map_err(|error| self.failed("read", &directory, &error))?.flatten()
        {
            let path = entry.path();
            let begun = entry.file_name().as_encoded_bytes().starts_with(b"new-");
            let unlocked = |file: &File| flock(file, FlockOperation::NonBlockingLockExclusive).is_ok();
            if begun && File::open(&path).is_ok_and(|file| unlocked(&file)) {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(self.failed("remove", &path, &error));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The file of a blob that is being fetched, there or not.
    pub(crate) fn partial_path(&self, digest: &Digest) -> PathBuf {
        self.root.join("partial").join(format!("{}-{}", digest.algorithm().name(), digest.hex()))
    }

    /// Resumes a blob whose fetch was started before; [`Writer::written`] returns how much of it exists.
    ///
    /// If another process fetches the same blob now, this waits until it is done, and returns `None` if the blob is
    /// whole then.
    ///
    /// # Errors
    ///
    /// The disk fails.
    pub fn resume(&self, descriptor: &Descriptor) -> Result<Option<Writer<'_>>> {
        let digest = &descriptor.digest;
        let path = self.partial_path(digest);
        while !self.has(digest) {
            let opened =
                File::options().read(true).write(true).create(true).truncate(false).mode(0o644).open(&path);
            let mut file = opened.map_err(|error| self.failed("write", &path, &error))?;
            flock_retrying(&file)
                .map_err(|errno| Error::system(format!("lock `{}`", path.display()), errno))?;
            // The previous holder of the lock may have renamed or removed the file.
            if !is_at(&file, &path) {
                continue;
            }
            if self.has(digest) {
                fs::remove_file(&path).map_err(|error| self.failed("remove", &path, &error))?;
                break;
            }
            let mut hasher = Hasher::new(digest.algorithm());
            let mut written = 0;
            let mut buffer = vec![0; 1 << 16];
            loop {
                match file.read(&mut buffer).map_err(|error| self.failed("read", &path, &error))? {
                    0 => break,
                    some => {
                        hasher.update(&buffer[..some]);
                        written += some as u64;
                    }
                }
            }
            let mut writer = Writer {
                store: self,
                path,
                file,
                hasher,
                written,
                max_size: descriptor.size,
                resumable: true,
            };
            if written > descriptor.size {
                writer.restart()?;
            }
            return Ok(Some(writer));
        }
        Ok(None)
    }
}

impl Writer<'_> {
    /// Bytes that are there.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The file with what is there, for readers of it; it is removed with this.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Begins again: what is there is not what it should be.
    ///
    /// # Errors
    ///
    /// The disk fails.
    pub fn restart(&mut self) -> Result<()> {
        let begun = self.file.set_len(0).and_then(|()| self.file.rewind());
        begun.map_err(|error| self.store.failed("empty", &self.path, &error))?;
        self.hasher = Hasher::new(match self.path.file_name().and_then(|name| name.to_str()) {
            Some(name) if name.starts_with("sha512-") => Algorithm::Sha512,
            _ => Algorithm::Sha256,
        });
        self.written = 0;
        Ok(())
    }

    /// Gives the blob its name, once its bytes are on the disk.
    ///
    /// # Errors
    ///
    /// The content does not match the descriptor, and is removed; the disk fails.
    pub fn finish(mut self, expected: Option<&Descriptor>) -> Result<Digest> {
        let digest = std::mem::take(&mut self.hasher).finish();
        if let Some(expected) = expected {
            let wrong = if self.written != expected.size {
                Some(format!("it has {} bytes, not {}", self.written, expected.size))
            } else if digest != expected.digest {
                Some(format!("it has the digest {digest}"))
            } else {
                None
            };
            if let Some(wrong) = wrong {
                self.resumable = false;
                let message = format!("the data received for {} does not match: {wrong}", expected.digest);
                return Err(Error::new(Kind::System, message)
                    .help("retry; if it fails again, report it to the operator of the server"));
            }
        }
        let failed = |error: io::Error| self.store.failed("keep", &self.path, &error);
        rename_to_disk(&self.file, &self.path, &self.store.own_path(&digest)).map_err(failed)?;
        // The entry in `partial` no longer exists.
        self.resumable = true;
        Ok(digest)
    }
}

impl Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.max_size - self.written < bytes.len() as u64 {
            return Err(io::Error::other("more bytes than the size in the descriptor"));
        }
        let written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        if !self.resumable {
            // Remains are removed by garbage collection.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Waits for the lock, and retries after signals.
pub(super) fn flock_retrying(file: &File) -> rustix::io::Result<()> {
    loop {
        match flock(file, FlockOperation::LockExclusive) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Whether an open file is still the one at a path.
pub(super) fn is_at(file: &File, path: &std::path::Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => open.dev() == named.dev() && open.ino() == named.ino(),
        _ => false,
    }
}
