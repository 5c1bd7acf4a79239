//! The files of an MPS daemon: its directories, and the locks by which its users, its holder and joining processes
//! agree.

use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};

use crate::bind_mounts::create_shared_directory;
use jobc_sys::error::{Error, Kind, Result, file_error as failed};
use jobc_sys::process::Process;

/// Maximum bytes of a directory's path: it contains sockets, whose paths are limited to 107 (unix(7)).
const MAX_PATH_LENGTH: usize = 80;

/// Names of the daemon's programs, truncated as in the kernel.
const PROGRAM_PREFIX: &str = "nvidia-cuda-mps";

/// The files of one daemon: a directory, and next to it locks, which are never removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DaemonDirectories {
    directory: PathBuf,
}

impl DaemonDirectories {
    /// The place of a daemon by the name of its cards.
    pub(super) fn create(all: &Path, name: &str) -> Result<Self> {
        let directory = all.join(name);
        if directory.as_os_str().len() > MAX_PATH_LENGTH {
            let message =
                format!("the path `{}` is too long for the sockets of an MPS daemon", directory.display());
            return Err(Error::new(Kind::System, message).help("set XDG_RUNTIME_DIR to a shorter one"));
        }
        let made = DirBuilder::new().recursive(true).mode(0o700).create(all);
        made.map_err(|error| failed("create the directory", all, &error))?;
        Ok(Self { directory })
    }

    pub(super) fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its pipes: what `CUDA_MPS_PIPE_DIRECTORY` names.
    pub(super) fn pipes(&self) -> PathBuf {
        self.directory.join("pipe")
    }

    /// Its logs.
    pub(super) fn logs(&self) -> PathBuf {
        self.directory.join("log")
    }

    /// Its /dev/shm.
    pub(super) fn shm(&self) -> PathBuf {
        self.directory.join("shm")
    }

    /// Its holder's output.
    pub(super) fn log(&self) -> PathBuf {
        self.path_beside("log")
    }

    /// The lock of a process that checks whether there is a daemon.
    pub(super) fn joining_lock(&self) -> PathBuf {
        self.path_beside("joining")
    }

    /// The lock that a daemon's users share.
    pub(super) fn users_lock(&self) -> PathBuf {
        self.path_beside("users")
    }

    /// The lock of the daemon's holder.
    pub(super) fn holder_lock(&self) -> PathBuf {
        self.path_beside("held")
    }

    fn path_beside(&self, what: &str) -> PathBuf {
        let mut name = self.directory.clone().into_os_string();
        name.push(format!(".{what}"));
        name.into()
    }

    /// Creates what the daemon and its users write to.
    pub(super) fn create_directories(&self) -> Result<()> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.directory);
        made.map_err(|error| failed("create the directory", &self.directory, &error))?;
        for directory in [self.pipes(), self.logs(), self.shm()] {
            create_shared_directory(&directory)?;
        }
        Ok(())
    }

    /// Removes them.
    pub(super) fn remove(&self) {
        // The next process removes the rest.
        let _ = std::fs::remove_dir_all(&self.directory);
    }

    /// Kills what is left of a daemon without a holder: its programs, identified by the pipes in their environment.
    pub(super) fn kill_remaining(&self) {
        let wanted = format!("CUDA_MPS_PIPE_DIRECTORY={}", self.pipes().display());
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        for process in pids.filter_map(Process::of) {
            let read =
                |name: &str| std::fs::read(format!("/proc/{}/{name}", process.pid)).unwrap_or_default();
            let is_one = String::from_utf8_lossy(&read("comm")).starts_with(PROGRAM_PREFIX)
                && read("environ").split(|byte| *byte == 0).any(|item| item == wanted.as_bytes());
            if !is_one {
                continue;
            }
            if let Ok(Some(pidfd)) = process.open() {
                let _ = pidfd_send_signal(&pidfd, Signal::KILL);
                let _ = process.wait(1000);
            }
        }
    }
}

/// Takes a lock, shared or exclusive; `None` if another process has it.
pub(super) fn try_lock(path: &Path, shared: bool) -> Result<Option<File>> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path);
    let file = file.map_err(|error| failed("open", path, &error))?;
    let how =
        if shared { FlockOperation::NonBlockingLockShared } else { FlockOperation::NonBlockingLockExclusive };
    match rustix::fs::flock(&file, how) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(Error::system(format!("lock `{}`", path.display()), errno)),
    }
}

/// Removes the files of daemons whose holders were killed and that have no users.
pub fn sweep(directory: &Path) -> Result<()> {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if !path.is_dir() {
            continue;
        }
        let place = DaemonDirectories::at(path);
        let Some(_joining) = try_lock(&place.joining_lock(), false)? else { continue };
        let Some(_users) = try_lock(&place.users_lock(), false)? else { continue };
        if try_lock(&place.holder_lock(), false)?.is_some() {
            place.kill_remaining();
            place.remove();
        }
    }
    Ok(())
}
