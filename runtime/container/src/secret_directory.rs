//! The directory of a job's secret files: in memory, only for its user, and removed with the job.
//!
//! It is in the job's state directory if that is in memory, as `/run` and `$XDG_RUNTIME_DIR` usually are; otherwise
//! below `/dev/shm/jobc-<uid>`. Its name follows from the job's state directory, so that the process that cleans up
//! after a job finds it.

use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Mode, OFlags, Uid};

use crate::remove::remove;
use crate::secret::Secret;
use jobc_sys::error::{AtPath as _, Error, Kind, Result, file_error};
use jobc_sys::write_atomic::{AtomicFile, Durability};

/// File systems whose files are memory: tmpfs and ramfs (statfs(2)).
const MEMORY_FILE_SYSTEMS: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// A file system in memory that every host has: POSIX shared memory, shm_overview(7).
const SHARED_MEMORY: &str = "/dev/shm";

/// A job's directory for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretDirectory(PathBuf);

impl SecretDirectory {
    /// The directory for secrets of the owner of a state directory, and a name. Nothing is made yet.
    pub fn for_state(state: &Path, name: &str) -> Result<Self> {
        if is_in_memory(state) {
            return Ok(Self(state.join("secrets")));
        }
        let status = std::fs::metadata(state).at_path("look at", state)?;
        // Two state directories may hold jobs of the same name; while this one exists, its inode number is unique.
        let name = format!("{name}-{:x}-{:x}", status.dev(), status.ino());
        let uid = rustix::process::geteuid().as_raw();
        Ok(Self(Path::new(SHARED_MEMORY).join(format!("jobc-{uid}")).join(name)))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Creates a file with a secret, and returns its path; keeps an existing one.
    ///
    /// `name` is a path within the directory. `owner` may read it besides root; only root can change the owner of
    /// files.
    pub fn create_file(
        &self,
        name: &Path,
        secret: &Secret,
        mode: u32,
        owner: Option<(u32, u32)>,
    ) -> Result<PathBuf> {
        let path = self.0.join(name);
        if path.exists() {
            return Ok(path);
        }
        self.create(path.parent().unwrap_or(&self.0))?;
        let write = || {
            let mut file = AtomicFile::create(&path, 0o600)?;
            file.write_all(secret.bytes())?;
            set_mode_and_owner(file.file(), mode, owner)?;
            file.commit(Durability::Rename)
        };
        write().at_path("write", &path)?;
        Ok(path)
    }

    /// Creates a directory in it, for other data that must not be written to disk, and returns its path.
    pub fn create_directory(&self, name: &str) -> Result<PathBuf> {
        let path = self.0.join(name);
        self.create(&path)?;
        Ok(path)
    }

    /// Removes it with its contents; no error if it does not exist.
    pub fn remove(&self) -> Result<()> {
        remove(&self.0)?;
        if let Some(parent) = self.0.parent().filter(|parent| parent.starts_with(SHARED_MEMORY)) {
            // Only once it is empty, which the next job's directory may just change.
            let _ = std::fs::remove_dir(parent);
        }
        Ok(())
    }

    /// Makes the directory and one below it. A name that is not exclusively ours is refused: another user can have made
    /// it.
    fn create(&self, last: &Path) -> Result<()> {
        let own = self.0.parent().filter(|parent| parent.starts_with(SHARED_MEMORY));
        if let Some(own) = own {
            // Removed by another job's end in between, it is made again.
            for _ in 0..8 {
                create_private_directory(own)?;
                refuse_foreign(own)?;
                match DirBuilder::new().mode(0o700).create(&self.0) {
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                        return Err(file_error("make the directory", &self.0, &error));
                    }
                    _ => break,
                }
            }
        } else {
            create_private_directory(&self.0)?;
        }
        // Files below a directory that only this user can enter need no further protection: containers are shown parts
        // of it.
        DirBuilder::new().recursive(true).mode(0o755).create(last).at_path("make the directory", last)?;
        if !is_in_memory(last) {
            let _ = remove(&self.0);
            return Err(Error::new(
                Kind::Unenforceable,
                format!("`{}` is on a disk, where a secret would stay readable", last.display()),
            )
            .help("mount a tmpfs on /dev/shm, or pass the secret to the task as a variable, under `env`"));
        }
        Ok(())
    }
}

/// Whether the file at a path is only in memory.
pub fn is_in_memory(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|status| {
        u64::try_from(status.f_type).is_ok_and(|magic| MEMORY_FILE_SYSTEMS.contains(&magic))
    })
}

fn create_private_directory(path: &Path) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(file_error("make the directory", path, &error))
        }
        _ => Ok(()),
    }
}

/// Refuses a path that is not a directory which only this user can access; links are refused.
pub fn refuse_foreign(path: &Path) -> Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let status = rustix::fs::open(path, flags, Mode::empty())
        .and_then(rustix::fs::fstat)
        .map_err(|errno| Error::system(format!("open the directory `{}`", path.display()), errno))?;
    let uid = rustix::process::geteuid().as_raw();
    let why = if status.st_uid != uid {
        format!("belongs to user {}", status.st_uid)
    } else if status.st_mode & 0o077 != 0 {
        "is open to other users".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::new(Kind::State, format!("the directory for secrets `{}` {why}", path.display()))
        .help("remove it, or ask its owner to remove it"))
}

fn set_mode_and_owner(file: &File, mode: u32, owner: Option<(u32, u32)>) -> std::io::Result<()> {
    if let Some((uid, gid)) = owner.filter(|_| rustix::process::geteuid().is_root()) {
        rustix::fs::fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
    }
    // No more than reading: the container has the file read-only in any case.
    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode & 0o777))?)
}
