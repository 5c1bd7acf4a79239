//! The tree that an archive becomes: each entry placed by descriptor, inside the root and nowhere else.
//!
//! The folder an entry stands in is resolved below the root as a process with that root would see it: a link inside leads
//! inside, `..` and absolute targets end at the root. The last name is made without following anything. Nobody else sees the
//! tree before it is whole, so nothing changes between one step and the next.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags};
use rustix::io::Errno;

use super::invalid;
use crate::root::open_inside;

/// What an entry has besides its content.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes {
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Seconds since 1970.
    pub(super) mtime: i64,
    pub(super) extended: Vec<(CString, Vec<u8>)>,
}

/// A root that is being filled.
pub(super) struct Tree {
    root: OwnedFd,
    /// Whether owners, devices and set-user-id bits are kept.
    as_root: bool,
    /// What folders get at the end: until then they must be writable, and their times change.
    folders: BTreeMap<Vec<u8>, Attributes>,
    /// The folder of the last entry, for most entries stand in the same one as the one before.
    last: Option<(Vec<u8>, OwnedFd)>,
}

/// What a folder gets that has no entry of its own.
fn unlisted() -> Attributes {
    Attributes { mode: 0o755, ..Attributes::default() }
}

impl Tree {
    /// An empty tree in an empty folder.
    pub(super) fn new(root: &Path, as_root: bool) -> io::Result<Self> {
        let root =
            rustix::fs::open(root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { root, as_root, folders: BTreeMap::from([(Vec::new(), unlisted())]), last: None })
    }

    /// A file with its content, in which long runs of zeros become holes.
    pub(super) fn file(
        &mut self,
        path: &[u8],
        attributes: &Attributes,
        content: &mut impl Read,
        size: u64,
    ) -> io::Result<()> {
        let (parent, name) = self.place(path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(&parent, &name, flags, Mode::RUSR | Mode::WUSR);
        let mut file = File::from(self.instead(&parent, &name, open)?);
        copy(content, &mut file, size)?;
        self.dress(&file, attributes)
    }

    /// A folder; one that is there stays, with new attributes.
    pub(super) fn folder(&mut self, path: &[u8], attributes: Attributes) -> io::Result<()> {
        let names = names(path)?;
        if !names.is_empty() {
            let (parent, name) = self.place(path)?;
            match rustix::fs::statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(there) if FileType::from_raw_mode(there.st_mode) == FileType::Directory => {}
                _ => self.instead(&parent, &name, || rustix::fs::mkdirat(&parent, &name, Mode::RWXU))?,
            }
        }
        self.folders.insert(names.join(&b'/'), attributes);
        Ok(())
    }

    /// A symbolic link, whatever it says.
    pub(super) fn symlink(&mut self, path: &[u8], target: &[u8], attributes: &Attributes) -> io::Result<()> {
        let (parent, name) = self.place(path)?;
        let target = CString::new(target).map_err(|_| invalid("a link with a NUL byte"))?;
        self.instead(&parent, &name, || rustix::fs::symlinkat(&target, &parent, &name))?;
        if self.as_root {
            let (uid, gid) = owner(attributes);
            rustix::fs::chownat(&parent, &name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        Ok(rustix::fs::utimensat(&parent, &name, &times(attributes), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// One more name for what an earlier entry made.
    pub(super) fn hard_link(&mut self, path: &[u8], target: &[u8]) -> io::Result<()> {
        if names(path)? == names(target)? {
            return Ok(());
        }
        let (from, old) = self.place(target)?;
        match rustix::fs::statat(&from, &old, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Err(invalid("a hard link to what is not in the archive before it")),
            other => other?,
        };
        let (parent, name) = self.place(path)?;
        // Without a flag linkat(2) does not follow `old`, so this can only be a file of the tree.
        self.instead(&parent, &name, || rustix::fs::linkat(&from, &old, &parent, &name, AtFlags::empty()))
    }

    /// A pipe or a device.
    pub(super) fn node(
        &mut self,
        path: &[u8],
        kind: FileType,
        device: u64,
        attributes: &Attributes,
    ) -> io::Result<()> {
        if kind != FileType::Fifo && !self.as_root {
            return match names(path)?.first() {
                Some(&b"dev") => Ok(()),
                _ => Err(io::Error::new(io::ErrorKind::PermissionDenied, "only root can make a device")),
            };
        }
        let (parent, name) = self.place(path)?;
        let make = || rustix::fs::mknodat(&parent, &name, kind, Mode::RUSR | Mode::WUSR, device);
        self.instead(&parent, &name, make)?;
        // A node is not opened, for that may do anything; nobody can have put a link there.
        if self.as_root {
            let (uid, gid) = owner(attributes);
            rustix::fs::chownat(&parent, &name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        rustix::fs::chmodat(&parent, &name, self.mode(attributes), AtFlags::empty())?;
        Ok(rustix::fs::utimensat(&parent, &name, &times(attributes), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Gives the folders what they are to have, inner ones first.
    pub(super) fn finish(mut self) -> io::Result<()> {
        for (path, attributes) in std::mem::take(&mut self.folders).into_iter().rev() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            let path = if path.is_empty() { b".".to_vec() } else { path };
            match open_inside(&self.root, &c_string(&path)?, flags) {
                Ok(folder) => self.dress(&File::from(folder), &attributes)?,
                // A later entry took its place.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// The folder an entry stands in, made where it is missing, and the entry's last name.
    fn place(&mut self, path: &[u8]) -> io::Result<(OwnedFd, CString)> {
        let names = names(path)?;
        let Some((name, folders)) = names.split_last() else { return Err(invalid("the root itself")) };
        let name = c_string(name)?;
        let key = folders.join(&b'/');
        if let Some((_, folder)) = self.last.as_ref().filter(|(last, _)| *last == key) {
            return Ok((folder.try_clone()?, name));
        }
        let mut parent = self.root.try_clone()?;
        for depth in 1..=folders.len() {
            let path = folders[..depth].join(&b'/');
            let whole = c_string(&path)?;
            let open = || open_inside(&self.root, &whole, OFlags::PATH | OFlags::DIRECTORY);
            parent = match open() {
                Err(Errno::NOENT) => {
                    match rustix::fs::mkdirat(&parent, c_string(folders[depth - 1])?, Mode::RWXU) {
                        Err(Errno::EXIST) => {
                            return Err(invalid("behind a link that leads nowhere in the root"));
                        }
                        other => other?,
                    }
                    self.folders.insert(path.clone(), unlisted());
                    open()?
                }
                other => other?,
            };
        }
        self.last = Some((key, parent.try_clone()?));
        Ok((parent, name))
    }

    /// Makes a name; what an earlier entry made of that name goes.
    fn instead<T>(
        &mut self,
        parent: &OwnedFd,
        name: &CString,
        make: impl Fn() -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        match make() {
            Err(Errno::EXIST) => {
                self.last = None;
                match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
                    Err(Errno::ISDIR) => rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?,
                    other => other?,
                }
                Ok(make()?)
            }
            other => Ok(other?),
        }
    }

    /// Gives an open file or folder its owner, bits, attributes and time, in the order in which none undoes another.
    fn dress(&self, file: &File, attributes: &Attributes) -> io::Result<()> {
        if self.as_root {
            let (uid, gid) = owner(attributes);
            rustix::fs::fchown(file.as_fd(), uid, gid)?;
        }
        for (name, value) in &attributes.extended {
            let own = name.as_bytes().starts_with(b"user.");
            match rustix::fs::fsetxattr(file.as_fd(), name, value, XattrFlags::empty()) {
                // Not every file system has room for them, and capabilities are root's to give.
                Err(Errno::NOTSUP) if own => {}
                Err(Errno::PERM) if !own && !self.as_root => {}
                other => other?,
            }
        }
        rustix::fs::fchmod(file.as_fd(), self.mode(attributes))?;
        Ok(rustix::fs::futimens(file.as_fd(), &times(attributes))?)
    }

    fn mode(&self, attributes: &Attributes) -> Mode {
        Mode::from_raw_mode(if self.as_root { attributes.mode } else { attributes.mode & 0o1777 })
    }
}

/// The names a path consists of. An absolute path begins at the root; one with `..` is refused, as tar(1) refuses it.
fn names(path: &[u8]) -> io::Result<Vec<&[u8]>> {
    let names: Vec<&[u8]> =
        path.split(|&byte| byte == b'/').filter(|name| !matches!(*name, b"" | b".")).collect();
    if names.contains(&&b".."[..]) {
        return Err(invalid("a path with `..`"));
    }
    Ok(names)
}

fn c_string(bytes: &[u8]) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| invalid("a path with a NUL byte"))
}

fn owner(attributes: &Attributes) -> (Option<Uid>, Option<Gid>) {
    (Some(Uid::from_raw(attributes.uid)), Some(Gid::from_raw(attributes.gid)))
}

fn times(attributes: &Attributes) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: attributes.mtime, tv_nsec: 0 },
    }
}

/// Copies exactly `size` bytes; blocks of zeros are left out of the file.
fn copy(content: &mut impl Read, file: &mut File, size: u64) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    let (mut at, mut hole) = (0, false);
    while at < size {
        let most = usize::try_from(size - at).unwrap_or(usize::MAX).min(buffer.len());
        let count = fill(content, &mut buffer[..most])?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let block = &buffer[..count];
        hole = block.iter().all(|byte| *byte == 0);
        if !hole {
            file.write_all_at(block, at)?;
        }
        at += count as u64;
    }
    if hole {
        file.set_len(size)?;
    }
    file.flush()
}

/// Reads until the buffer is full or there is no more.
fn fill(content: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match content.read(&mut buffer[count..])? {
            0 => break,
            more => count += more,
        }
    }
    Ok(count)
}
