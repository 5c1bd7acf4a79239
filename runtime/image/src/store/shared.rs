//! Stores that an administrator shares with all users of a host: they are only read.
//!
//! A user's store lies above them. What is looked for is looked for in the own store first, then in each shared one in
//! the order of the list; new images go to the user's own store. A shared store is never modified.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::document::read_index;
use crate::manifest::Index;
use jobc_schema::digest::Digest;
use jobc_sys::error::{Error, Kind, Result, describe_io};

/// The file that lists shared stores for all users of the host, a directory per line.
pub const SHARED_STORES_FILE: &str = "/etc/jobc/image-stores";

/// The environment variable that lists shared stores, with a colon between; it takes the place of the file.
pub const SHARED_STORES_VARIABLE: &str = "JOBC_IMAGE_STORES";

/// A store that is only read.
#[derive(Debug)]
pub struct SharedStore {
    root: PathBuf,
    /// The store's `users` file with a shared lock, so that nothing is collected meanwhile; absent where the file system
    /// has no locks for readers.
    lock: Option<File>,
}

impl SharedStore {
    /// Opens a store without changing anything in it.
    ///
    /// # Errors
    ///
    /// It is absent, not readable for this user, or not an image layout.
    pub(super) fn open(root: &Path) -> Result<Self> {
        let failed = |error: &std::io::Error| {
            let why = match error.kind() {
                ErrorKind::NotFound => "no such image store".to_owned(),
                _ => describe_io(error),
            };
            Error::new(
                Kind::System,
                format!("cannot read the shared image store `{}`: {why}", root.display()),
            )
            .help(format!("correct the list in `{SHARED_STORES_FILE}` or `{SHARED_STORES_VARIABLE}`"))
        };
        let root = fs::canonicalize(root).map_err(|error| failed(&error))?;
        fs::metadata(root.join("oci-layout")).map_err(|error| failed(&error))?;
        let lock = File::open(root.join("users")).ok();
        let lock = lock.filter(|lock| flock(lock, FlockOperation::LockShared).is_ok());
        let store = Self { root, lock };
        store.read_index()?;
        Ok(store)
    }

    /// The directory of the store.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The file of a blob, there or not.
    pub(super) fn path(&self, digest: &Digest) -> PathBuf {
        blob_path(&self.root, digest)
    }

    /// The names of its images.
    pub(super) fn read_index(&self) -> Result<Index> {
        read_index(&self.root)
    }

    /// A file descriptor that keeps the store from being collected as long as it is open.
    pub(super) fn lock(&self) -> Option<File> {
        self.lock.as_ref()?.try_clone().ok()
    }

    /// The directory of root's unpacked layers, if only root can have changed them: a container executes their files.
    pub(crate) fn layers_of_root(&self) -> Option<PathBuf> {
        let unpacked = self.root.join("unpacked");
        let layers = unpacked.join("root");
        let is_of_root = |path: &Path| {
            fs::symlink_metadata(path)
                .is_ok_and(|data| data.is_dir() && data.uid() == 0 && data.mode() & 0o022 == 0)
        };
        [&self.root, &unpacked, &layers].iter().all(|path| is_of_root(path)).then_some(layers)
    }
}

/// The shared stores that the environment or the administrator lists.
///
/// `JOBC_IMAGE_STORES` takes the place of the administrator's list, also if it is empty. Lines of the list that are empty
/// or begin with `#` are passed over.
///
/// # Errors
///
/// A path that is not absolute, or a list that cannot be read.
pub fn listed_shared_stores() -> Result<Vec<PathBuf>> {
    if let Some(list) = std::env::var_os(SHARED_STORES_VARIABLE) {
        let paths = std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty());
        return absolute(paths, SHARED_STORES_VARIABLE);
    }
    read_list(Path::new(SHARED_STORES_FILE))
}

fn read_list(file: &Path) -> Result<Vec<PathBuf>> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => {
            let message = format!("cannot read `{}`: {}", file.display(), describe_io(&error));
            return Err(Error::new(Kind::Config, message));
        }
    };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    absolute(lines.map(PathBuf::from), &file.display().to_string())
}

fn absolute(paths: impl Iterator<Item = PathBuf>, list: &str) -> Result<Vec<PathBuf>> {
    paths
        .map(|path| {
            if path.is_absolute() {
                return Ok(path);
            }
            let message = format!("`{}` in `{list}` is not an absolute path", path.display());
            Err(Error::new(Kind::Config, message).help("write the path of an image store from `/` on"))
        })
        .collect()
}

/// The file of a blob in an image layout.
pub(super) fn blob_path(root: &Path, digest: &Digest) -> PathBuf {
    root.join("blobs").join(digest.algorithm().name()).join(digest.hex())
}

#[cfg(test)]
mod tests;
