//! The directory of a store: opened and made, and its blobs read and put in.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::document::{MAX_DOCUMENT_SIZE, sorted_json};
use super::shared::{SharedStore, blob_path};
use crate::manifest::Descriptor;
use jobc_schema::digest::{Algorithm, Digest, Hasher};
use jobc_sys::error::{Error, Kind, Result, describe_io};

/// A store of images. While it is open, nothing in it is collected.
#[derive(Debug)]
pub struct Store {
    pub(super) root: PathBuf,
    pub(super) users: File,
    /// Stores that are only read, below this one.
    pub(super) shared: Vec<SharedStore>,
}

impl Store {
    /// The place of a user's store: `$XDG_DATA_HOME/jobc/images`, below `~/.local/share` unless that is set.
    ///
    /// # Errors
    ///
    /// Neither `XDG_DATA_HOME` nor `HOME` is an absolute path.
    pub fn default_path() -> Result<PathBuf> {
        let absolute =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let data =
            absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/share")));
        data.map(|data| data.join("jobc/images")).ok_or_else(|| {
            Error::new(Kind::System, "no directory for images: neither XDG_DATA_HOME nor HOME is set")
                .help("name one with `--image-root`")
        })
    }

    /// Opens a store, and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// The directory cannot be made or written, or holds something else than an image layout.
    pub fn open(root: &Path) -> Result<Self> {
        let failed = |what: &str, error: &std::io::Error| {
            Error::new(Kind::System, format!("cannot {what} `{}`: {}", root.display(), describe_io(error)))
                .help("name a writable directory with `--image-root`")
        };
        let mut directories = fs::DirBuilder::new();
        directories.recursive(true).mode(0o700);
        directories.create(root).map_err(|error| failed("create the image store", &error))?;
        let root = fs::canonicalize(root).map_err(|error| failed("find the image store", &error))?;
        // Users who can read the directory can read its images. Unpacked layers contain set-user-ID programs, and
        // caches contain data of builds: only the owner has access to them.
        let readers =
            fs::metadata(&root).map_err(|error| failed("find the image store", &error))?.mode() & 0o055;
        for algorithm in Algorithm::ALL {
            directories
                .mode(0o700 | readers)
                .create(root.join("blobs").join(algorithm.name()))
                .map_err(|error| failed("create the image store", &error))?;
        }
        directories.mode(0o700);
        for name in ["partial", "held", "unpacked", "cache"] {
            directories.create(root.join(name)).map_err(|error| failed("create the image store", &error))?;
        }
        let users = open_lock(&root.join("users"))?;
        flock(&users, FlockOperation::LockShared)
            .map_err(|errno| Error::system(format!("lock the store `{}`", root.display()), errno))?;
        let store = Self { root, users, shared: Vec::new() };
        store.create_layout()?;
        Ok(store)
    }

    /// Opens a store as [`open`](Self::open) does, above shared ones; returns the errors of those that cannot be read,
    /// which are passed over. The store itself may be in the list.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn open_above(root: &Path, shared: &[PathBuf]) -> Result<(Self, Vec<Error>)> {
        let mut store = Self::open(root)?;
        let mut unreadable = Vec::new();
        for path in shared {
            match SharedStore::open(path) {
                Ok(other) if other.root() == store.root => {}
                Ok(other) => store.shared.push(other),
                Err(error) => unreadable.push(error),
            }
        }
        Ok((store, unreadable))
    }

    /// The shared stores below this one, the first to be looked at first.
    pub fn shared(&self) -> &[SharedStore] {
        &self.shared
    }

    /// The directories of the shared stores, for another process that opens this store.
    pub fn shared_roots(&self) -> Vec<PathBuf> {
        self.shared.iter().map(|store| store.root().to_owned()).collect()
    }

    /// The directory of the store.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The file of a blob: of this store, else of a shared one that has it, else where this store would have it.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        let own = self.own_path(digest);
        if self.shared.is_empty() || own.is_file() {
            return own;
        }
        self.shared.iter().map(|store| store.path(digest)).find(|path| path.is_file()).unwrap_or(own)
    }

    /// The file of a blob in this store, there or not.
    pub(super) fn own_path(&self, digest: &Digest) -> PathBuf {
        blob_path(&self.root, digest)
    }

    /// Whether this store or a shared one has a blob.
    pub fn has(&self, digest: &Digest) -> bool {
        self.path(digest).is_file()
    }

    /// Opens a blob.
    ///
    /// # Errors
    ///
    /// It does not exist.
    pub fn blob(&self, digest: &Digest) -> Result<File> {
        File::open(self.path(digest)).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::new(
                Kind::State,
                format!("the store `{}` lacks the blob {digest}", self.root.display()),
            )
            .help("pull or import the image again"),
            _ => self.failed("read", &self.path(digest), &error),
        })
    }

    /// Reads a whole document, and verifies that it matches its descriptor.
    ///
    /// # Errors
    ///
    /// It is missing, larger than [`MAX_DOCUMENT_SIZE`], or corrupt.
    pub fn bytes(&self, descriptor: &Descriptor) -> Result<Vec<u8>> {
        let digest = &descriptor.digest;
        if descriptor.size > MAX_DOCUMENT_SIZE {
            return Err(Error::new(
                Kind::Unsupported,
                format!("{digest} claims to be a document of {} bytes; the limit is 4 MiB", descriptor.size),
            ));
        }
        let mut bytes = Vec::new();
        let blob = self.blob(digest)?;
        blob.take(MAX_DOCUMENT_SIZE + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| self.failed("read", &self.path(digest), &error))?;
        let mut hasher = Hasher::new(digest.algorithm());
        hasher.update(&bytes);
        if bytes.len() as u64 != descriptor.size || hasher.finish() != *digest {
            return Err(Error::new(
                Kind::System,
                format!("the blob {digest} in the store `{}` was changed", self.root.display()),
            )
            .help("check the store with `jobc image verify`, then pull or import the image again"));
        }
        Ok(bytes)
    }

    /// Adds a document.
    ///
    /// # Errors
    ///
    /// No space left, or the disk fails.
    pub fn put(&self, bytes: &[u8], media_type: &str) -> Result<Descriptor> {
        let descriptor = Descriptor::new(media_type, Digest::of(bytes), bytes.len() as u64);
        if !self.has(&descriptor.digest) {
            let mut writer = self.begin()?;
            std::io::Write::write_all(&mut writer, bytes)
                .map_err(|error| self.write_error("write to", &error))?;
            writer.finish(Some(&descriptor))?;
        }
        Ok(descriptor)
    }

    /// Adds a value as JSON with sorted keys, so that the same value always gives the same digest.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    pub fn put_json(&self, value: &impl serde::Serialize, media_type: &str) -> Result<Descriptor> {
        self.put(&sorted_json(value), media_type)
    }

    pub(super) fn failed(&self, what: &str, path: &Path, error: &std::io::Error) -> Error {
        if is_full(error) {
            return self.write_error(what, error);
        }
        Error::new(Kind::System, format!("cannot {what} `{}`: {}", path.display(), describe_io(error)))
    }

    /// The error for a failed write into the store.
    pub fn write_error(&self, what: &str, error: &std::io::Error) -> Error {
        let root = self.root.display();
        if is_full(error) {
            return Error::new(Kind::System, format!("no space left in the image store `{root}`")).help(
                "remove unused images with `jobc image gc`, or choose a larger directory with `--image-root`",
            );
        }
        Error::new(Kind::System, format!("cannot {what} the image store `{root}`: {}", describe_io(error)))
    }
}

fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
}

/// Opens a file that only its lock matters of.
pub(super) fn open_lock(path: &Path) -> Result<File> {
    File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|error| Error::new(Kind::System, format!("cannot open `{}`", path.display())).because(error))
}
