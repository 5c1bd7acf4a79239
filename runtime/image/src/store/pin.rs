//! Content in use: a locked file for each user of the store, with what must stay.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};

use super::directory::Store;
use super::shared::SharedStore;
use jobc_schema::digest::Digest;
use jobc_sys::error::Result;

/// Images in use. They stay until this is dropped, or its process has exited in any way.
#[derive(Debug)]
pub struct ContentPin {
    path: PathBuf,
    _file: File,
    /// Locks of the shared stores: nothing is removed from them either.
    _shared: Vec<File>,
}

impl Store {
    /// Says that manifests, or indexes, are in use.
    ///
    /// # Errors
    ///
    /// The disk fails.
    pub fn pin(&self, digests: &[Digest]) -> Result<ContentPin> {
        let directory = self.root.join("held");
        let text: String = digests.iter().map(|digest| format!("{digest}\n")).collect();
        for number in 0_u32.. {
            let path = directory.join(format!("{}-{number}", std::process::id()));
            let made = File::options().write(true).create_new(true).open(&path);
            match made {
                Ok(mut file) => {
                    // Locked before it has content; no process collects meanwhile, because this store is open.
                    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| {
                        jobc_sys::error::Error::system("lock a file of this process", errno)
                    })?;
                    file.write_all(text.as_bytes()).map_err(|error| self.failed("write", &path, &error))?;
                    let shared = self.shared.iter().filter_map(SharedStore::lock).collect();
                    return Ok(ContentPin { path, _file: file, _shared: shared });
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(self.failed("write", &path, &error)),
            }
        }
        unreachable!("a process has no 2^32 holds")
    }

    /// Content in use; files without a lock holder are removed.
    pub(super) fn pinned(&self) -> Result<Vec<Digest>> {
        let directory = self.root.join("held");
        let entries = fs::read_dir(&directory).map_err(|error| self.failed("read", &directory, &error))?;
        let mut digests = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| self.failed("read", &directory, &error))?.path();
            let Ok(mut file) = File::open(&path) else { continue };
            if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
                let _ = fs::remove_file(&path);
                continue;
            }
            let mut text = String::new();
            file.read_to_string(&mut text).map_err(|error| self.failed("read", &path, &error))?;
            digests.extend(text.lines().filter_map(|line| line.parse::<Digest>().ok()));
        }
        Ok(digests)
    }
}

impl Drop for ContentPin {
    fn drop(&mut self) {
        // Unlocked, it would be removed by the next process that checks it.
        let _ = fs::remove_file(&self.path);
    }
}
