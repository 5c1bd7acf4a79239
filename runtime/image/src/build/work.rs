//! The directory that a build works in: a directory for each step, and the containers of its commands.
//!
//! It is a directory in the store's `cache/work`, locked while the build runs. The next build removes what a killed
//! build has left there: its layers were saved one by one, so no work is lost.

use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{FlockOperation, flock};

use crate::store::Store;
use jobc_container::cgroup::{Layout, remove_empty};
use jobc_container::container;
use jobc_container::remove::remove;
use jobc_container::secret::Secret;
use jobc_container::secret_directory::SecretDirectory;
use jobc_container::state::Id;
use jobc_container::state::store::Store as Containers;
use jobc_sys::error::{Error, Kind, Result, describe_io};

/// The cgroup of all builds, below `jobc`.
pub(super) const CGROUP: &str = "build";

/// The directory of a running build. Dropping it removes it.
#[derive(Debug)]
pub(super) struct WorkDirectory {
    path: PathBuf,
    secrets: SecretDirectory,
    next: AtomicUsize,
    _lock: File,
}

impl WorkDirectory {
    /// Removes what builds have left that were killed.
    pub(super) fn sweep(store: &Store) -> Result<()> {
        store.remove_abandoned()?;
        let all = store.root().join("cache/work");
        for entry in fs::read_dir(&all).into_iter().flatten().flatten() {
            let path = entry.path();
            let dead = File::open(&path)
                .is_ok_and(|directory| flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok());
            if dead {
                clear(&path)?;
            }
        }
        Ok(())
    }

    /// Creates one.
    pub(super) fn create(store: &Store) -> Result<Self> {
        let all = store.root().join("cache/work");
        fs::create_dir_all(&all).map_err(|error| store.write_error("write to", &error))?;
        for number in 0_u32.. {
            let path = all.join(format!("{}-{number}", std::process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                other => other.map_err(|error| store.write_error("write to", &error))?,
            }
            let directory = File::open(&path).map_err(|error| store.write_error("read", &error))?;
            // Another build may just take it for a dead one's, and then it is gone.
            if flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok() && path.is_dir() {
                let secrets = secrets(&path)?;
                return Ok(Self { path, secrets, next: AtomicUsize::new(0), _lock: directory });
            }
        }
        unreachable!("a process has no 2^32 builds")
    }

    /// A directory for a step, with the empty directories `upper` and `work` in it. An overlay shows the root of its
    /// upper directory, so that has the bits and the owner of the root `below`.
    pub(super) fn step(&self, below: Option<&PathBuf>) -> Result<StepDirectory> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.path.join(number.to_string());
        for directory in [path.clone(), path.join("upper"), path.join("work")] {
            // An unprivileged user's containers access it as their root, which is the user itself.
            let made = fs::DirBuilder::new().mode(0o755).create(&directory);
            made.map_err(|error| failed(&directory, &error))?;
        }
        let upper = path.join("upper");
        let (mode, owner) = match below {
            None => (0o755, None),
            Some(below) => {
                let status = fs::symlink_metadata(below).map_err(|error| failed(below, &error))?;
                (status.mode() & 0o7777, Some((status.uid(), status.gid())))
            }
        };
        if let Some((uid, gid)) = owner.filter(|_| rustix::process::geteuid().is_root()) {
            std::os::unix::fs::chown(&upper, Some(uid), Some(gid)).map_err(|error| failed(&upper, &error))?;
        }
        // Whatever the umask is.
        fs::set_permissions(&upper, fs::Permissions::from_mode(mode))
            .map_err(|error| failed(&upper, &error))?;
        Ok(StepDirectory { path, number })
    }

    /// Where the containers of this build are.
    pub(super) fn containers(&self) -> Containers {
        containers(&self.path)
    }

    /// A path in it that nothing has yet.
    pub(super) fn new_file(&self) -> PathBuf {
        self.path.join(format!("file-{}", self.next.fetch_add(1, Ordering::Relaxed)))
    }

    /// The directory for the network of this build's commands, which its maker makes.
    pub(super) fn network(&self) -> PathBuf {
        self.path.join("network")
    }

    /// A file in memory with a secret.
    pub(super) fn secret(
        &self,
        name: &str,
        secret: &Secret,
        mode: u32,
        owner: (u32, u32),
    ) -> Result<PathBuf> {
        self.secrets.create_file(Path::new(name), secret, mode, Some(owner))
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        // The next build removes what remains.
        let _ = clear(&self.path);
    }
}

/// The directory of one step. Dropping it removes it.
#[derive(Debug)]
pub(super) struct StepDirectory {
    path: PathBuf,
    number: usize,
}

impl StepDirectory {
    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A name for its container that no other has, on this host.
    pub(super) fn id(&self) -> String {
        format!("build-{}-{}", std::process::id(), self.number)
    }
}

impl Drop for StepDirectory {
    fn drop(&mut self) {
        let _ = remove(&self.path);
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Kind::System, format!("cannot create `{}`: {}", path.display(), describe_io(error)))
}

fn containers(work: &Path) -> Containers {
    Containers::new(work.join("containers"))
}

fn secrets(work: &Path) -> Result<SecretDirectory> {
    SecretDirectory::for_state(work, "build")
}

/// Removes a build's directory and its resources elsewhere: cgroups, and secrets in memory.
fn clear(path: &Path) -> Result<()> {
    let containers = containers(path);
    let layout = Layout::detect();
    for entry in fs::read_dir(containers.root()).into_iter().flatten().flatten() {
        if let Some(id) = entry.file_name().to_str().and_then(|name| Id::new(name).ok()) {
            container::delete(&containers, &id, true)?;
            // A build that was killed between creating the cgroup and recording it.
            if let Ok(layout) = &layout {
                remove_empty(layout, &format!("{CGROUP}/{id}"));
            }
        }
    }
    secrets(path)?.remove()?;
    remove(path)
}
