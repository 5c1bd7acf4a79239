//! The upper folder of an overlay as a layer of an image: the opposite of unpacking.
//!
//! What an overlay notes for itself becomes what image-spec's layer.md says: a character device 0:0 is a file `.wh.NAME`, and an
//! opaque folder has a file `.wh..wh..opq`, before all else in it. The same folder always gives the same bytes: names are in
//! order, no owner has a name, and of the times only that of the last modification is kept. In a user namespace owners are those
//! of the namespace, as an image has them.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};

use crate::bundle::because;
use crate::root::layers::is_opaque;
use crate::tar::{Entry, Kind, Time, Writer};

/// Writes a layer.
///
/// `own` says whether the folder itself has an entry: that of the image's root.
///
/// # Errors
///
/// Something cannot be read, or is changed meanwhile; the output fails; `stopped` has become true.
pub fn upper(folder: &Path, own: bool, output: &mut dyn Write, stopped: &AtomicBool) -> io::Result<()> {
    let root = rustix::fs::open(folder, FOLDER, Mode::empty())?;
    let mut packing = Packing { writer: Writer::new(output), linked: HashMap::new(), stopped };
    if own {
        packing.folder(&root, b"./")?;
    }
    packing.below(&root, b"")?;
    packing.writer.finish().map(drop)
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

struct Packing<'a> {
    writer: Writer<&'a mut dyn Write>,
    /// Files with several names, and the first of them.
    linked: HashMap<(u64, u64), Vec<u8>>,
    stopped: &'a AtomicBool,
}

impl Packing<'_> {
    /// Writes what is in a folder; `path` is its path with a slash at the end, or empty.
    fn below(&mut self, folder: &OwnedFd, path: &[u8]) -> io::Result<()> {
        for name in names(folder)? {
            if self.stopped.load(Ordering::Relaxed) {
                return Err(io::Error::other("it was given up"));
            }
            let whole = [path, name.as_bytes()].concat();
            let name = CString::new(name.into_vec())?;
            self.one(folder, &name, &whole).map_err(|error| {
                let shown = String::from_utf8_lossy(&whole).into_owned();
                io::Error::new(error.kind(), format!("`{shown}`: {}", because(&error)))
            })?;
        }
        Ok(())
    }

    fn one(&mut self, folder: &OwnedFd, name: &CStr, path: &[u8]) -> io::Result<()> {
        let status = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = match FileType::from_raw_mode(status.st_mode) {
            FileType::Directory => {
                let inner = rustix::fs::openat(folder, name, FOLDER, Mode::empty())?;
                let path = [path, b"/"].concat();
                self.folder(&inner, &path)?;
                return self.below(&inner, &path);
            }
            FileType::CharacterDevice if status.st_rdev == 0 => return self.whiteout(path),
            // Nobody listens any more.
            FileType::Socket => return Ok(()),
            FileType::Symlink => Kind::Symlink,
            FileType::CharacterDevice => Kind::Character,
            FileType::BlockDevice => Kind::Block,
            FileType::Fifo => Kind::Fifo,
            _ => Kind::File,
        };
        let mut entry = entry(kind, path, &status);
        if status.st_nlink > 1 {
            let first = self.linked.entry((status.st_dev, status.st_ino)).or_insert_with(|| path.to_vec());
            if first.as_slice() != path {
                entry.kind = Kind::HardLink;
                entry.link.clone_from(first);
                return self.writer.entry(&entry);
            }
        }
        match kind {
            Kind::File => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
                entry.attributes = attributes(&file)?;
                self.writer.file(&entry, &mut io::BufReader::with_capacity(1 << 17, file))
            }
            Kind::Symlink => {
                entry.link = rustix::fs::readlinkat(folder, name, Vec::new())?.into_bytes();
                self.writer.entry(&entry)
            }
            _ => self.writer.entry(&entry),
        }
    }

    /// The entry of a folder, and that which hides what is below it.
    fn folder(&mut self, folder: &OwnedFd, path: &[u8]) -> io::Result<()> {
        let mut entry = entry(Kind::Folder, path, &rustix::fs::fstat(folder)?);
        entry.attributes = attributes(folder)?;
        self.writer.entry(&entry)?;
        if is_opaque(folder) { self.writer.entry(&mark([path, b".wh..wh..opq"].concat())) } else { Ok(()) }
    }

    fn whiteout(&mut self, path: &[u8]) -> io::Result<()> {
        let at = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        self.writer.entry(&mark([&path[..at], b".wh.", &path[at..]].concat()))
    }
}

/// The names in a folder, in order.
fn names(folder: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name.to_vec()));
        }
    }
    names.sort();
    Ok(names)
}

/// A file that stands for something that is not there.
fn mark(path: Vec<u8>) -> Entry {
    Entry::new(Kind::File, path)
}

fn entry(kind: Kind, path: &[u8], status: &Stat) -> Entry {
    let size = if kind == Kind::File { u64::try_from(status.st_size).unwrap_or_default() } else { 0 };
    let device = matches!(kind, Kind::Character | Kind::Block);
    let device =
        if device { (rustix::fs::major(status.st_rdev), rustix::fs::minor(status.st_rdev)) } else { (0, 0) };
    #[allow(clippy::cast_possible_truncation)] // Nanoseconds are below a billion.
    let nanoseconds = status.st_mtime_nsec as u32;
    Entry {
        mode: status.st_mode & 0o7777,
        uid: status.st_uid,
        gid: status.st_gid,
        mtime: Time { seconds: status.st_mtime, nanoseconds },
        device,
        size,
        ..Entry::new(kind, path)
    }
}

/// The extended attributes that are the image's: a user's own, and capabilities; not those of the overlay.
fn attributes(file: &impl std::os::fd::AsFd) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    use rustix::io::Errno;
    let mut list = vec![0; 1 << 12];
    let size = loop {
        match rustix::fs::flistxattr(file, &mut list[..]) {
            Ok(size) => break size,
            Err(Errno::NOTSUP) => return Ok(Vec::new()),
            // The kernel gives no longer lists than 64 KiB (xattr(7)).
            Err(Errno::RANGE) if list.len() < 1 << 16 => list.resize(1 << 16, 0),
            Err(errno) => return Err(errno.into()),
        }
    };
    let mut attributes = Vec::new();
    for name in list[..size].split(|byte| *byte == 0) {
        let own = name.starts_with(b"user.") && !name.starts_with(b"user.overlay.");
        if own || name == b"security.capability" {
            let mut value = vec![0; 1 << 16];
            let size = rustix::fs::fgetxattr(file, CString::new(name)?, &mut value[..])?;
            value.truncate(size);
            attributes.push((name.to_vec(), value));
        }
    }
    attributes.sort();
    Ok(attributes)
}

/// Gives everything in a folder, and the folder, no later time than this: so many seconds since 1970.
///
/// # Errors
///
/// A time cannot be set.
pub fn clamp(folder: &Path, latest: i64) -> io::Result<()> {
    let root = rustix::fs::open(folder, FOLDER, Mode::empty())?;
    clamp_below(&root, latest)?;
    clamp_one(CWD, folder.as_os_str().as_bytes(), &rustix::fs::fstat(&root)?, latest)
}

fn clamp_below(folder: &OwnedFd, latest: i64) -> io::Result<()> {
    for name in names(folder)? {
        let status = rustix::fs::statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(status.st_mode) == FileType::Directory {
            clamp_below(&rustix::fs::openat(folder, &name, FOLDER, Mode::empty())?, latest)?;
        }
        clamp_one(folder, name.as_bytes(), &status, latest)?;
    }
    Ok(())
}

fn clamp_one(folder: impl std::os::fd::AsFd, name: &[u8], status: &Stat, latest: i64) -> io::Result<()> {
    if status.st_mtime < latest || status.st_mtime == latest && status.st_mtime_nsec == 0 {
        return Ok(());
    }
    let time = rustix::fs::Timespec { tv_sec: latest, tv_nsec: 0 };
    let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
    Ok(rustix::fs::utimensat(folder, CString::new(name)?, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

#[cfg(test)]
mod tests;
