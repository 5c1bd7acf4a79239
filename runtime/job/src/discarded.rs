//! Files that a task on the files of the host has written outside its mounts: they are in the writable layers in memory,
//! and are discarded with them.
//!
//! A task's process sends the directory of its layers while it starts. The supervisor keeps it open, and sums up what is
//! in it once the task has ended.

mod summary;

use std::ffi::CStr;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, openat2, statat};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType, recvmsg,
    socketpair,
};

use jobc_container::root::Root;
use jobc_sys::error::{Error, Result};
use summary::Summary;
pub use summary::{DirectorySize, Discarded};

/// Maximum number of directory entries to read, so that a layer of any size does not delay the end of the run.
const MAX_ENTRIES: usize = 20_000;

/// How deep directories are looked into.
const MAX_DEPTH: usize = 40;

/// The writable layers of a container that is being made.
#[derive(Debug)]
pub(crate) struct ExpectedLayers {
    socket: OwnedFd,
    written: Vec<(String, PathBuf)>,
}

/// The writable layers of a container, which stay in memory as long as this value lives.
#[derive(Debug)]
pub(crate) struct WrittenLayers {
    directory: OwnedFd,
    written: Vec<(String, PathBuf)>,
}

impl ExpectedLayers {
    /// Where the layers of a root will arrive, and the end for the container; nothing if its files are not discarded.
    pub(crate) fn of(root: &Root) -> Result<Option<(Self, OwnedFd)>> {
        let written = root.written();
        if written.is_empty() {
            return Ok(None);
        }
        let (socket, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(|errno| Error::system("create a socket pair", errno))?;
        Ok(Some((Self { socket, written }, theirs)))
    }

    /// Takes what has arrived; nothing if the container sent none.
    pub(crate) fn receive(self) -> Option<WrittenLayers> {
        let mut bytes = [0; 16];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        recvmsg(&self.socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags).ok()?;
        let directory = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        })?;
        Some(WrittenLayers { directory, written: self.written })
    }
}

impl WrittenLayers {
    /// Sums up the files that are worth naming; `home` is the home directory of the task's user.
    pub(crate) fn discarded(&self, home: Option<&Path>) -> Discarded {
        let mut walk = Walk { summary: Summary::new(home), left: MAX_ENTRIES, is_complete: true };
        for (name, path) in &self.written {
            if let Ok(layer) = open_directory(&self.directory, name.as_bytes()) {
                walk.directory(&layer, path, 0);
            }
        }
        walk.summary.finish(walk.is_complete)
    }
}

/// A walk through the layers, which ends early where there are too many files.
struct Walk<'a> {
    summary: Summary<'a>,
    left: usize,
    is_complete: bool,
}

impl Walk<'_> {
    fn directory(&mut self, directory: &OwnedFd, path: &Path, depth: usize) {
        let Ok(entries) = Dir::read_from(directory) else { return };
        for entry in entries {
            let Ok(entry) = entry else { return };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if self.left == 0 || depth > MAX_DEPTH {
                self.is_complete = false;
                return;
            }
            self.left -= 1;
            let path = path.join(std::ffi::OsStr::from_bytes(name.to_bytes()));
            match entry.file_type() {
                FileType::Directory if !summary::is_ignored_directory(&path) => {
                    // One that belongs to another user of the container may be closed.
                    match open_directory(directory, name.to_bytes()) {
                        Ok(inner) => self.directory(&inner, &path, depth + 1),
                        Err(_) => self.is_complete = false,
                    }
                }
                FileType::RegularFile => self.file(directory, name, &path),
                _ => {}
            }
        }
    }

    fn file(&mut self, directory: &OwnedFd, name: &CStr, path: &Path) {
        let status = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        if let Ok(bytes) = status.map(|status| u64::try_from(status.st_size).unwrap_or_default()) {
            self.summary.add(path, bytes);
        }
    }
}

/// Opens a directory in a directory; a link or a mount is none.
fn open_directory(directory: impl AsFd, name: &[u8]) -> std::result::Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    openat2(directory, name, flags, Mode::empty(), resolve)
}

#[cfg(test)]
mod tests;
