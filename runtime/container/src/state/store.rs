//! The directory of all containers' directories.
//!
//! A container's directory is created first and removed last. A command that changes a container holds a lock on its
//! directory (flock(2)), which the kernel releases when the holder dies, so a lock is never stale; readers without the
//! lock read `state.json`, which is replaced atomically by rename.

use std::io::{ErrorKind, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::{Id, Record};
use crate::remove::remove;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::write_atomic::{AtomicFile, Durability};

/// How long to wait for another command that works on the same container.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// The state root: a directory with one directory a container.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

/// One container's directory, locked until it is dropped or [unlocked](Entry::unlock).
#[derive(Debug)]
pub struct Entry {
    path: PathBuf,
    directory: OwnedFd,
    removed: bool,
}

impl Store {
    /// The store in a directory, which need not be there yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The store where this user's containers are: below `/run/jobc` as root, else below `$XDG_RUNTIME_DIR/jobc`, else
    /// below a directory of the user's in the temporary directory.
    ///
    /// Root of a user namespace goes by `XDG_RUNTIME_DIR` too, since `/run` belongs to the host's root.
    pub fn standard() -> Result<Self> {
        let uid = rustix::process::geteuid();
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let runtime = runtime.filter(|path| path.is_absolute() && path.is_dir());
        let root = match runtime {
            _ if uid.is_root() && !jobc_sys::host::in_user_namespace() => PathBuf::from("/run/jobc"),
            Some(runtime) => runtime.join("jobc"),
            None if uid.is_root() => PathBuf::from("/run/jobc"),
            None => own_temporary_directory(uid.as_raw())?,
        };
        Ok(Self::new(root.join("containers")))
    }

    /// The state root's path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes a container's directory and locks it; an error where there is one of that name.
    pub fn create(&self, id: &Id) -> Result<Entry> {
        let path = self.directory(id);
        let directory = || std::fs::DirBuilder::new().mode(0o700).create(&path);
        let made = match directory() {
            Err(error) if error.kind() == ErrorKind::NotFound => self.make_root().and_then(|()| directory()),
            other => other,
        };
        match made {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(Error::new(Kind::State, format!("container `{id}` already exists"))
                    .help(format!("use another name, or remove it with `jobc oci delete --force {id}`")));
            }
            Err(error) => {
                return Err(host_error(format!("make the state directory `{}`", path.display()), &error)
                    .help("pass a writable directory with `--root`, or set `XDG_RUNTIME_DIR`"));
            }
        }
        lock(&path)?.ok_or_else(|| not_found(id))
    }

    /// Finds a container and locks its directory.
    pub fn open(&self, id: &Id) -> Result<Entry> {
        lock(&self.directory(id))?.ok_or_else(|| not_found(id))
    }

    /// The record of a container, read without its lock.
    pub fn read(&self, id: &Id) -> Result<Record> {
        let path = self.directory(id);
        match read(&path)? {
            Some(record) => Ok(record),
            None if path.exists() => {
                Err(Error::new(Kind::State, format!("the creation of container `{id}` was not completed"))
                    .help(format!("remove what is left with `jobc oci delete --force {id}`")))
            }
            None => Err(not_found(id)),
        }
    }

    /// Where a container's directory is.
    pub fn directory(&self, id: &Id) -> PathBuf {
        self.root.join(id.as_ref())
    }

    /// The records of all containers, by name. Unreadable ones are left out: they may be in creation or removal.
    pub fn list(&self) -> Result<Vec<Record>> {
        let directories = match std::fs::read_dir(&self.root) {
            Ok(directories) => directories,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(host_error(format!("read `{}`", self.root.display()), &error)),
        };
        let mut records: Vec<Record> =
            directories.flatten().filter_map(|directory| read(&directory.path()).ok().flatten()).collect();
        records.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(records)
    }

    fn make_root(&self) -> std::io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.root)
    }
}

impl Entry {
    /// The directory's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The record of the container; `None` if the command that created the directory was killed before it wrote one.
    pub fn read(&self) -> Result<Option<Record>> {
        read(&self.path)
    }

    /// Replaces the record of the container atomically.
    pub fn write(&self, record: &Record) -> Result<()> {
        let text = serde_json::to_vec(record).map_err(|error| Error::new(Kind::State, error.to_string()))?;
        self.replace_file("state.json", &text)
    }

    /// Writes a file into the directory, for its owner's eyes only.
    pub fn write_file(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let write = || {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&self.directory, name, flags, Mode::RUSR | Mode::WUSR)?;
            let mut rest = bytes;
            while !rest.is_empty() {
                let written = rustix::io::retry_on_intr(|| rustix::io::write(&file, rest))?;
                rest = &rest[written..];
            }
            Ok(())
        };
        write().map_err(|errno: Errno| {
            Error::system(format!("write `{}`", self.path.join(name).display()), errno)
        })
    }

    /// Gives a file that was written elsewhere in the directory another name.
    pub fn link_file(&self, from: &Path, name: &str) -> Result<()> {
        rustix::fs::linkat(&self.directory, from, &self.directory, name, AtFlags::empty())
            .map_err(|errno| Error::system(format!("link `{}`", self.path.join(name).display()), errno))
    }

    /// Puts another file in the place of one, for readers who hold no lock: they see the one or the other.
    pub fn replace_file(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let write = || {
            // Our lock keeps other writers away. The state is gone with the host's power in any case.
            let mut file = AtomicFile::create_alone_in(self.directory.as_fd(), name, 0o600)?;
            file.write_all(bytes)?;
            file.commit(Durability::Rename)
        };
        write()
            .map(drop)
            .map_err(|error| host_error(format!("write `{}`", self.path.join(name).display()), &error))
    }

    /// The directory itself, open.
    pub fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// Unlocks the container even if others hold the file descriptor: a process forked meanwhile has a copy of it.
    pub fn unlock(&self) {
        let _ = rustix::fs::flock(&self.directory, FlockOperation::Unlock);
    }

    /// Takes the lock again; an error where the directory was removed meanwhile.
    pub fn lock(&self) -> Result<()> {
        wait_for_lock(&self.directory, &self.path)
    }

    /// Removes the directory with its contents; no error if it no longer exists.
    pub fn remove(mut self) -> Result<()> {
        // As a rule these are all, and to name them is a third of the calls of looking.
        let (file, directory) = (AtFlags::empty(), AtFlags::REMOVEDIR);
        let of_bundle = [("bundle/config.json", file), ("bundle", directory), ("root", directory)];
        for names in [&[("state.json", file), ("config.json", file)][..], &of_bundle] {
            for (name, kind) in names {
                let _ = rustix::fs::unlinkat(&self.directory, *name, *kind);
            }
            if rustix::fs::rmdir(&self.path).is_ok() {
                // Processes that wait for the lock find no directory when they get it.
                self.removed = true;
                return Ok(());
            }
        }
        remove(&self.path)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.removed {
            self.unlock();
        }
    }
}

fn not_found(id: &Id) -> Error {
    Error::new(Kind::State, format!("container does not exist: `{id}`"))
        .help("`jobc oci list` shows the existing ones")
}

fn host_error(what: String, error: &std::io::Error) -> Error {
    Error::system(what, Errno::from_io_error(error).unwrap_or(Errno::IO))
}

fn read(directory: &Path) -> Result<Option<Record>> {
    let path = directory.join("state.json");
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(host_error(format!("read `{}`", path.display()), &error)),
    };
    serde_json::from_slice(&text).map(Some).map_err(|error| {
        Error::new(
            Kind::State,
            format!("`{}` was not written by this version of jobc: {error}", path.display()),
        )
    })
}

/// Opens a directory and locks it; `None` if there is none, also if it was removed while we waited.
fn lock(path: &Path) -> Result<Option<Entry>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => {
            return Err(Error::system(format!("open the state directory `{}`", path.display()), errno));
        }
    };
    wait_for_lock(&directory, path)?;
    let ours = rustix::fs::fstat(&directory).ok().map(|status| (status.st_dev, status.st_ino));
    let there = std::fs::symlink_metadata(path).ok().map(|status| (status.dev(), status.ino()));
    Ok((ours == there).then(|| Entry { path: path.to_owned(), directory, removed: false }))
}

fn wait_for_lock(directory: &OwnedFd, path: &Path) -> Result<()> {
    let began = Instant::now();
    loop {
        match rustix::fs::flock(directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if began.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(Error::new(
                    Kind::State,
                    format!(
                        "another command has held the lock on `{}` for {} seconds",
                        path.display(),
                        LOCK_TIMEOUT.as_secs()
                    ),
                )
                .help("wait until it exits, or kill it"));
            }
            Err(errno) => return Err(Error::system(format!("lock `{}`", path.display()), errno)),
        }
    }
}

/// A directory below the temporary directory that no other user may write to; another user may have made it first.
fn own_temporary_directory(uid: u32) -> Result<PathBuf> {
    let path = std::env::temp_dir().join(format!("jobc-{uid}"));
    let unsafe_directory = |why: &str| {
        Error::new(Kind::State, format!("the state directory `{}` {why}", path.display()))
            .help("remove it, or set `XDG_RUNTIME_DIR` to a directory of your own")
    };
    match std::fs::DirBuilder::new().mode(0o700).create(&path) {
        Ok(()) => return Ok(path),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => {
            return Err(host_error(format!("make the state directory `{}`", path.display()), &error));
        }
    }
    let status = std::fs::symlink_metadata(&path)
        .map_err(|error| host_error(format!("look at the state directory `{}`", path.display()), &error))?;
    if !status.is_dir() {
        return Err(unsafe_directory("is not a directory"));
    }
    if status.uid() != uid {
        return Err(unsafe_directory("belongs to another user"));
    }
    if status.mode() & 0o077 != 0 {
        return Err(unsafe_directory("is open to other users"));
    }
    Ok(path)
}

#[cfg(test)]
mod tests;
