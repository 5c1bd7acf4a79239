//! Atomic replacement of files: a reader sees the old or the new content, whatever fails or dies.
//!
//! The new content is written to a temporary file in the same directory, `.NAME.jobc-0`, and takes the target's place
//! by rename(2). Until then the target is untouched, so a full disk, a quota or an I/O error leaves it as it was; the
//! temporary file is removed. A symbolic link at the target is replaced, not followed.
//!
//! A writer creates its temporary file exclusively and holds a lock on it (flock(2)) for as long as it works. So two
//! writers of one target never share a temporary file, and the next writer can tell a file that a killed process left
//! behind, which it removes, from one in use, in which case it takes the next number. PIDs would not work: two PID
//! namespaces share directories. On file systems without locks, leftovers stay.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

#[cfg(test)]
use tests::{Step, reach};

/// Maximum number of bytes of the target's name in the temporary file's name: names end at 255 bytes (`NAME_MAX`).
const MAX_NAME: usize = 230;

/// The number of temporary files of a target to look for after a write to the disk.
const MAX_SWEPT: u32 = 16;

/// How often a number is tried that is found in use and free by turns.
const MAX_TRIES: u32 = 16;

/// The durability of a replaced file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The death of this process at any moment, but not a power failure, after which the file may be the old one, the
    /// new one or empty. For files that are in memory (`/run`), can be created again, or are written where nothing may
    /// wait for a disk.
    Rename,
    /// A power failure too: the content is on the disk before the rename, and the rename before this returns.
    Disk,
}

/// Replaces a file as a whole. `mode` holds less the umask, as with open(2).
///
/// # Errors
///
/// The target has its old content, unless the last step of [`Durability::Disk`] fails, the fsync(2) of the directory.
pub fn write_atomic(path: &Path, bytes: &[u8], mode: u32, durability: Durability) -> io::Result<()> {
    let mut file = AtomicFile::create(path, mode)?;
    file.write_all(bytes)?;
    file.commit(durability).map(drop)
}

/// Renames a file that is written to its own name, with its content and its new name on the disk.
///
/// # Errors
///
/// The file keeps its own name, unless the last step fails, the fsync(2) of the directory.
pub fn rename_to_disk(file: &File, from: &Path, to: &Path) -> io::Result<()> {
    let parent = sync_content(CWD, file, to, Durability::Disk)?;
    rename(CWD, from, to)?;
    sync_directory(parent)
}

/// A file that is being written, and is to replace another. Dropped before [`commit`](Self::commit), it goes away.
#[derive(Debug)]
pub struct AtomicFile<'d> {
    // Removed before the lock on the file goes.
    temporary: Temporary<'d>,
    file: File,
    target: PathBuf,
}

/// The name of a temporary file, which is removed with it.
#[derive(Debug)]
struct Temporary<'d> {
    directory: BorrowedFd<'d>,
    path: PathBuf,
    number: u32,
    renamed: bool,
}

/// Other possible writers of the target.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writers {
    Many,
    One,
}

impl AtomicFile<'static> {
    /// Begins a file that is to replace the one at a path.
    ///
    /// # Errors
    ///
    /// Those of open(2).
    pub fn create(path: &Path, mode: u32) -> io::Result<Self> {
        create_temporary(CWD, path, mode, Writers::Many)
    }
}

impl<'d> AtomicFile<'d> {
    /// As above, for a path below an open directory.
    ///
    /// # Errors
    ///
    /// Those of openat(2).
    pub fn create_in(directory: BorrowedFd<'d>, path: impl AsRef<Path>, mode: u32) -> io::Result<Self> {
        create_temporary(directory, path.as_ref(), mode, Writers::Many)
    }

    /// As above, for a caller whose own lock excludes other writers of the target: saves two syscalls.
    ///
    /// # Errors
    ///
    /// Those of openat(2).
    pub fn create_alone_in(directory: BorrowedFd<'d>, path: impl AsRef<Path>, mode: u32) -> io::Result<Self> {
        create_temporary(directory, path.as_ref(), mode, Writers::One)
    }

    /// The file itself, for its owner, its mode or its size.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file the target's name. It comes back open, still locked.
    ///
    /// # Errors
    ///
    /// As [`write_atomic`].
    pub fn commit(self, durability: Durability) -> io::Result<File> {
        let Self { mut temporary, file, target } = self;
        let (directory, number) = (temporary.directory, temporary.number);
        let parent = sync_content(directory, &file, &target, durability)?;
        rename(directory, &temporary.path, &target)?;
        temporary.renamed = true;
        sync_directory(parent)?;
        #[cfg(test)]
        reach(Step::End)?;
        if durability == Durability::Disk || number > 0 {
            for other in (0..MAX_SWEPT).filter(|other| *other != number) {
                remove_abandoned(directory, &name(&target, other)?);
            }
        }
        Ok(file)
    }
}

impl Write for AtomicFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(test)]
        reach(Step::Write)?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            // The next writer removes what remains.
            let _ = rustix::fs::unlinkat(self.directory, &self.path, AtFlags::empty());
        }
    }
}

fn create_temporary<'d>(
    directory: BorrowedFd<'d>,
    target: &Path,
    mode: u32,
    writers: Writers,
) -> io::Result<AtomicFile<'d>> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for number in 0..=u32::MAX {
        let path = name(target, number)?;
        for _ in 0..MAX_TRIES {
            #[cfg(test)]
            reach(Step::Create)?;
            match rustix::fs::openat(directory, &path, flags, Mode::from_raw_mode(mode)) {
                Ok(file) => {
                    #[cfg(test)]
                    reach(Step::Lock)?;
                    if writers == Writers::One || is_ours(&file) {
                        let temporary = Temporary { directory, path, number, renamed: false };
                        return Ok(AtomicFile { temporary, file: file.into(), target: target.to_owned() });
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::EXIST) if writers == Writers::One => {
                    rustix::fs::unlinkat(directory, &path, AtFlags::empty())?;
                }
                Err(Errno::EXIST) if remove_abandoned(directory, &path) => {}
                Err(Errno::EXIST) => break,
                Err(errno) => return Err(errno.into()),
            }
        }
    }
    Err(Errno::EXIST.into())
}

/// The name of a temporary file of a target.
fn name(target: &Path, number: u32) -> io::Result<PathBuf> {
    let name = target.file_name().ok_or(Errno::INVAL)?.as_bytes();
    let mut hidden = b".".to_vec();
    hidden.extend_from_slice(&name[..name.len().min(MAX_NAME)]);
    hidden.extend_from_slice(format!(".jobc-{number}").as_bytes());
    Ok(target.with_file_name(OsString::from_vec(hidden)))
}

/// Locks a temporary file that was just created; false where another writer took it for an abandoned one meanwhile.
fn is_ours(file: &OwnedFd) -> bool {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => rustix::fs::fstat(file).is_ok_and(|status| status.st_nlink > 0),
        Err(errno) => errno != Errno::WOULDBLOCK,
    }
}

/// Removes a temporary file that no process has locked; returns whether there is none of that name now.
fn remove_abandoned(directory: BorrowedFd<'_>, path: &Path) -> bool {
    // Whatever else has that name is not followed, waited for or removed.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(directory, path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(errno) => return errno == Errno::NOENT,
    };
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return false;
    }
    // Only the holder of the lock renames or removes the file: once it is seen at its name, it stays there.
    match (rustix::fs::fstat(&file), rustix::fs::statat(directory, path, AtFlags::SYMLINK_NOFOLLOW)) {
        (Ok(locked), Ok(there)) if (locked.st_dev, locked.st_ino) == (there.st_dev, there.st_ino) => {
            rustix::fs::unlinkat(directory, path, AtFlags::empty()).is_ok()
        }
        (_, Err(Errno::NOENT)) => true,
        _ => false,
    }
}

/// Syncs a file's content to the disk if it must be durable; returns the directory, to be synced after the rename.
fn sync_content(
    directory: BorrowedFd<'_>,
    file: &File,
    target: &Path,
    durability: Durability,
) -> io::Result<Option<OwnedFd>> {
    if durability == Durability::Rename {
        return Ok(None);
    }
    #[cfg(test)]
    reach(Step::Sync)?;
    file.sync_all()?;
    open_parent(directory, target)
}

fn rename(directory: BorrowedFd<'_>, from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(test)]
    reach(Step::Rename)?;
    Ok(rustix::fs::renameat(directory, from, directory, to)?)
}

/// Brings a directory's names to the disk.
fn sync_directory(parent: Option<OwnedFd>) -> io::Result<()> {
    let Some(parent) = parent else { return Ok(()) };
    #[cfg(test)]
    reach(Step::SyncDirectory)?;
    match rustix::fs::fsync(parent) {
        // Some file systems have nothing to do for a directory (fsync(2)).
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Opens the directory of a path; none where it may be searched and written, but not read.
fn open_parent(directory: BorrowedFd<'_>, path: &Path) -> io::Result<Option<OwnedFd>> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::openat(directory, parent, flags, Mode::empty()) {
        Ok(parent) => Ok(Some(parent)),
        Err(Errno::ACCESS) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests;
