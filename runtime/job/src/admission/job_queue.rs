//! The queue for the jobs of a matrix, which limits how many run at once.
//!
//! They share a directory. A lock on `slot-<n>` is the permission to run, released with its holder; a file `turn-<n>`
//! means that job n waits, so that those behind it let it go first.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::submission::QueuePosition;
use jobc_sys::error::{AtPath as _, Error, Result};

/// How long a job that has its file without its lock may still come: its supervisor is starting.
const SUPERVISOR_START_TIMEOUT: Duration = Duration::from_secs(10);

/// A job that waits in the queue.
#[derive(Debug)]
pub struct WaitingJob {
    turn: QueuePosition,
    /// Its own file, locked; removed when its turn has come, or with it.
    file: QueueFile,
}

/// A job's right to run; dropping it gives it to the next.
#[derive(Debug)]
pub struct Slot {
    directory: PathBuf,
    file: Option<File>,
}

#[derive(Debug)]
struct QueueFile {
    path: PathBuf,
    _locked: Option<File>,
}

impl Drop for QueueFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Prepares the directory for a number of jobs. Their places do not depend on the order in which supervisors start.
pub fn prepare(directory: &Path, jobs: u32) -> Result<()> {
    std::fs::create_dir_all(directory).at_path("create the directory", directory)?;
    (0..jobs).try_for_each(|number| open(&queue_file(directory, number)).map(drop))
}

impl WaitingJob {
    /// Takes a job's place among the others.
    pub fn new(turn: &QueuePosition) -> Result<Self> {
        let path = queue_file(&turn.directory, turn.number);
        let file = open(&path)?;
        // A process that only checks the lock holds it for a moment.
        let mut locked = try_lock(&file, &path)?;
        for _ in 0..100 {
            if locked {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
            locked = try_lock(&file, &path)?;
        }
        Ok(Self { turn: turn.clone(), file: QueueFile { path, _locked: locked.then_some(file) } })
    }

    /// Whether its turn has come: all before it have had theirs, and a slot is free. Polled from time to time.
    pub fn try_take(&mut self) -> Result<Option<Slot>> {
        for number in 0..self.turn.number {
            if is_waiting(&queue_file(&self.turn.directory, number)) {
                return Ok(None);
            }
        }
        for slot in 0..self.turn.slots.max(1) {
            let path = self.turn.directory.join(format!("slot-{slot}"));
            let file = open(&path)?;
            if try_lock(&file, &path)? {
                let _ = std::fs::remove_file(&self.file.path);
                return Ok(Some(Slot { directory: self.turn.directory.clone(), file: Some(file) }));
            }
        }
        Ok(None)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        drop(self.file.take());
        // The last one removes the directory. A job that is still to come has a file in it.
        let _ = remove_if_unused(&self.directory);
    }
}

/// Removes the directory if no job waits or runs.
fn remove_if_unused(directory: &Path) -> std::io::Result<()> {
    let mut slots = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let is_slot = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("slot-"));
        let file = File::open(&path)?;
        if !is_slot || rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(());
        }
        slots.push((path, file));
    }
    for (path, _held) in &slots {
        std::fs::remove_file(path)?;
    }
    std::fs::remove_dir(directory)
}

/// Whether the job of a queue file still waits, or is on its way.
fn is_waiting(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_err() {
        return true;
    }
    // A clock jump can only give or cost a job its place.
    let age = file.metadata().and_then(|status| status.modified()).ok().and_then(|made| made.elapsed().ok());
    age.is_some_and(|age| age < SUPERVISOR_START_TIMEOUT)
}

fn queue_file(directory: &Path, number: u32) -> PathBuf {
    directory.join(format!("turn-{number}"))
}

fn open(path: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(path);
    file.at_path("open", path)
}

fn try_lock(file: &File, path: &Path) -> Result<bool> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(errno) => Err(Error::system(format!("lock `{}`", path.display()), errno)),
    }
}

#[cfg(test)]
mod tests;
