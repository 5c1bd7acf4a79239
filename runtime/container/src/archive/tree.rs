//! The tree that an archive becomes: each entry placed by file descriptor, inside the root and nowhere else.
//!
//! The directory an entry is in is resolved inside the root (see [`path`](super::path)); the last name is made
//! without following anything. A tree may be a layer of an image: then names that begin with `.wh.` become what an
//! overlay takes for whiteouts and opaque directories (image-spec, layer.md), and what the layer leaves to those below
//! it is remembered.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, BufRead};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags};
use rustix::io::Errno;

pub(crate) use super::attributes::{FileAttributes, is_supported_attribute};
use super::directories::DirectoryRecords;
use super::invalid::invalid;
use super::path::{CreatedDirectories, PathResolver, c_string, components, is_whiteout, stat_entry};
use crate::remove::remove_tree_at;
use crate::tar::{Entry, Reader, Time};
use jobc_sys::error::describe_io;
use jobc_sys::open_inside::open_inside;

/// The prefix of a whiteout's name.
const WHITEOUT_PREFIX: &[u8] = b".wh.";
/// The prefix of names that only aufs used, and the one name with it that still has a meaning.
const AUFS_PREFIX: &[u8] = b".wh..wh.";
/// The attributes that make a directory opaque: root's, and those of overlays in user namespaces.
pub const OPAQUE_ATTRIBUTES: [&CStr; 2] = [c"trusted.overlay.opaque", c"user.overlay.opaque"];

/// The name that makes a directory of a layer opaque.
const OPAQUE_MARKER: &[u8] = b".wh..wh..opq";

/// A piece of a file that becomes a hole where it is all zeros.
const HOLE_SIZE: usize = 1 << 16;

/// The owner of the files of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owners {
    /// As in the archive, with all attributes that only root can set.
    FromArchive,
    /// As the archive says, by the ids of a user namespace: without devices.
    Mapped,
    /// This user's, without set-user-id bits, devices and capabilities.
    CurrentUser,
}

/// The results of unpacking a layer, besides its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayerSummary {
    /// Directories without an entry in the layer: their attributes come from the layers below.
    pub implied_directories: Vec<Vec<u8>>,
    /// Hard links to files that are not in the layer: new names and targets.
    pub external_links: Vec<(Vec<u8>, Vec<u8>)>,
    /// Devices that could not be made.
    pub skipped_devices: Vec<Vec<u8>>,
}

/// A root that is being filled.
pub struct Tree {
    resolver: PathResolver,
    owners: Owners,
    /// The owner of files that this process creates, and its umask.
    default_owner: (u32, u32),
    umask: u32,
    /// Attributes of directories, set at the end: until then, directories must be writable, and their times change.
    directories: DirectoryRecords,
    /// Where the tree is a layer.
    layer_summary: Option<LayerSummary>,
}

impl Tree {
    /// An empty tree in an empty directory.
    pub fn new(root: &Path, owners: Owners) -> io::Result<Self> {
        let root =
            rustix::fs::open(root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        // Files made below inherit nothing that is not in the archive: no group, no access list.
        match rustix::fs::fremovexattr(&root, c"system.posix_acl_default") {
            Err(Errno::NODATA | Errno::NOTSUP) => {}
            other => other?,
        }
        rustix::fs::fchmod(&root, Mode::RWXU)?;
        let data = rustix::fs::fstat(&root)?;
        let mut directories = DirectoryRecords::default();
        directories.push(b"", None)?;
        Ok(Self {
            resolver: PathResolver::new(root),
            owners,
            default_owner: (data.st_uid, data.st_gid),
            umask: umask(),
            directories,
            layer_summary: None,
        })
    }

    /// The same for a layer of an image.
    pub fn layer(root: &Path, owners: Owners) -> io::Result<Self> {
        Ok(Self { layer_summary: Some(LayerSummary::default()), ..Self::new(root, owners)? })
    }

    /// A file with its content, in which long runs of zeros become holes.
    pub(super) fn file<R: BufRead>(
        &mut self,
        entry: &Entry,
        attributes: &FileAttributes,
        data: &mut Reader<R>,
    ) -> io::Result<()> {
        let (parent, name) = self.parent_of(&entry.path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let bits = self.mode(attributes);
        // Most files are created with their final mode; the others get it after they are written.
        let finished = bits.as_raw_mode() & (self.umask | 0o7000) == 0 && attributes.extended.is_empty();
        let begin = if finished { bits } else { Mode::RUSR | Mode::WUSR };
        let open = || rustix::fs::openat(&parent, &name, flags, begin);
        let file = File::from(self.replace(&parent, &name, open)?);
        copy(data, &file, entry)?;
        self.apply_attributes(&file, attributes, finished)
    }

    /// Creates a directory; an existing one is kept, with new attributes.
    pub(super) fn directory(&mut self, path: &[u8], attributes: &FileAttributes) -> io::Result<()> {
        let names = components(path)?;
        if !names.is_empty() {
            let (parent, name) = self.parent_of(path)?;
            match rustix::fs::mkdirat(&parent, &name, Mode::RWXU) {
                Err(Errno::EXIST) => self.replace_with_directory(&parent, &name)?,
                other => other?,
            }
        }
        self.directories.push(&names.join(&b'/'), Some(attributes))
    }

    /// A directory instead of an existing entry.
    fn replace_with_directory(&mut self, parent: &OwnedFd, name: &CString) -> io::Result<()> {
        let Some(there) = stat_entry(parent, name)? else { return Ok(()) };
        if FileType::from_raw_mode(there.st_mode) == FileType::Directory {
            return Ok(());
        }
        self.replace(parent, name, || rustix::fs::mkdirat(parent, name, Mode::RWXU))?;
        if self.layer_summary.is_some() && is_whiteout(&there) {
            make_opaque(parent, name)?;
        }
        Ok(())
    }

    /// A symbolic link with any target.
    pub(super) fn symlink(
        &mut self,
        path: &[u8],
        target: &[u8],
        attributes: &FileAttributes,
    ) -> io::Result<()> {
        let (parent, name) = self.parent_of(path)?;
        let target = CString::new(target).map_err(|_| invalid("a link with a NUL byte"))?;
        self.replace(&parent, &name, || rustix::fs::symlinkat(&target, &parent, &name))?;
        self.set_owner(&parent, &name, attributes)?;
        Ok(rustix::fs::utimensat(&parent, &name, &times(attributes.mtime), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// A hard link to a file of an earlier entry or of a lower layer.
    pub(super) fn hard_link(&mut self, path: &[u8], target: &[u8]) -> io::Result<()> {
        if components(path)? == components(target)? {
            return Ok(());
        }
        let Some((from, old)) = self.resolve_target(target)? else {
            return self.record_external_link(path, target);
        };
        let (parent, name) = self.parent_of(path)?;
        // Without a flag linkat(2) does not follow `old`, so this can only be a file of the tree.
        self.replace(&parent, &name, || rustix::fs::linkat(&from, &old, &parent, &name, AtFlags::empty()))
    }

    /// The directory and the name of a hard link's target; `None` if it is not in the tree.
    fn resolve_target(&mut self, target: &[u8]) -> io::Result<Option<(OwnedFd, CString)>> {
        let names = components(target)?;
        let Some((name, directories)) = names.split_last() else {
            return Err(invalid("a hard link to the root"));
        };
        let (name, directories) = (c_string(name)?, directories.join(&b'/'));
        let directories = c_string(if directories.is_empty() { b"." } else { &directories })?;
        match open_inside(self.resolver.root(), &directories, OFlags::PATH | OFlags::DIRECTORY) {
            Ok(directory) => match stat_entry(&directory, &name)? {
                // A file that the layer removes cannot be the target of a link.
                Some(there) if self.layer_summary.is_some() && is_whiteout(&there) => Ok(None),
                there => Ok(there.map(|_| (directory, name))),
            },
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// A hard link to a file that is not in the tree: in a layer, its target may be in a lower layer.
    fn record_external_link(&mut self, path: &[u8], target: &[u8]) -> io::Result<()> {
        let Some(left) = &mut self.layer_summary else {
            return Err(invalid("a hard link to a file that is not earlier in the archive"));
        };
        let joined = |path| Ok::<_, io::Error>(components(path)?.join(&b'/'));
        left.external_links.push((joined(path)?, joined(target)?));
        self.directories.count(128 + path.len() + target.len())?;
        // Its directory always exists.
        self.parent_of(path).map(drop)
    }

    /// A pipe or a device.
    pub(super) fn node(
        &mut self,
        path: &[u8],
        kind: FileType,
        device: u64,
        attributes: &FileAttributes,
    ) -> io::Result<()> {
        let is_device = kind != FileType::Fifo;
        if is_device && self.owners != Owners::FromArchive {
            return self.skip_device(path);
        }
        let (parent, name) = self.parent_of(path)?;
        let make = || rustix::fs::mknodat(&parent, &name, kind, Mode::RUSR | Mode::WUSR, device);
        match self.replace(&parent, &name, make) {
            // Root of a container, which may not create devices.
            Err(error) if is_device && error.kind() == io::ErrorKind::PermissionDenied => {
                return self.skip_device(path);
            }
            other => other?,
        }
        // A device node is not opened, because open(2) can have side effects; no other process can have put a link
        // there.
        self.set_owner(&parent, &name, attributes)?;
        rustix::fs::chmodat(&parent, &name, self.mode(attributes), AtFlags::empty())?;
        Ok(rustix::fs::utimensat(&parent, &name, &times(attributes.mtime), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// A device that cannot be made: every container gets its own /dev, and a layer is usable without other devices.
    fn skip_device(&mut self, path: &[u8]) -> io::Result<()> {
        let names = components(path)?;
        match &mut self.layer_summary {
            _ if names.first() == Some(&&b"dev"[..]) => Ok(()),
            Some(left) => {
                // Only a few are reported, so that an archive of nothing but devices does not fill the memory.
                if left.skipped_devices.len() < 16 {
                    left.skipped_devices.push(names.join(&b'/'));
                }
                Ok(())
            }
            None => Err(io::Error::new(io::ErrorKind::PermissionDenied, "only root can make a device")),
        }
    }

    /// Takes an entry that is a whiteout, by its name, and returns whether it is one.
    ///
    /// It hides what lower layers have, and nothing that its own layer has, whichever comes first (image-spec,
    /// layer.md).
    pub(super) fn apply_whiteout(&mut self, path: &[u8]) -> io::Result<bool> {
        let Some(name) = path.rsplit(|&byte| byte == b'/').find(|name| !matches!(*name, b"" | b".")) else {
            return Ok(false);
        };
        if self.layer_summary.is_none() || !name.starts_with(WHITEOUT_PREFIX) {
            return Ok(false);
        }
        if name.starts_with(AUFS_PREFIX) && name != OPAQUE_MARKER {
            return Ok(true);
        }
        let (parent, own) = self.parent_of(path)?;
        if name == OPAQUE_MARKER {
            make_opaque_fd(&parent)?;
            return Ok(true);
        }
        let hidden = c_string(&own.as_bytes()[WHITEOUT_PREFIX.len()..])?;
        if matches!(hidden.as_bytes(), b"" | b"." | b"..") {
            return Err(invalid("a whiteout without a name"));
        }
        match rustix::fs::mknodat(&parent, &hidden, FileType::CharacterDevice, Mode::empty(), 0) {
            Err(Errno::EXIST) => {
                let there = stat_entry(&parent, &hidden)?;
                if there.is_some_and(|there| FileType::from_raw_mode(there.st_mode) == FileType::Directory) {
                    make_opaque(&parent, &hidden)?;
                }
            }
            other => other?,
        }
        Ok(true)
    }

    /// Sets the attributes of the directories, inner ones first.
    pub fn finish(self) -> io::Result<()> {
        self.finish_layer().map(drop)
    }

    /// As [`Self::finish`], with what a layer leaves to those below it.
    pub fn finish_layer(mut self) -> io::Result<LayerSummary> {
        let mut left = self.layer_summary.take().unwrap_or_default();
        for (path, attributes) in std::mem::take(&mut self.directories).inner_first() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            let name = if path.is_empty() { b"." } else { &path[..] };
            match open_inside(self.resolver.root(), &c_string(name)?, flags) {
                Ok(directory) => {
                    let unlisted = || FileAttributes { mode: 0o755, ..FileAttributes::default() };
                    let given = attributes.clone().unwrap_or_else(unlisted);
                    self.apply_attributes(&File::from(directory), &given, false)?;
                    if attributes.is_none() {
                        left.implied_directories.push(path);
                    }
                }
                // A later entry took its place.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        left.implied_directories.reverse();
        Ok(left)
    }

    /// The parent directory of an entry, made where it is missing, and the entry's last name.
    fn parent_of(&mut self, path: &[u8]) -> io::Result<(std::rc::Rc<OwnedFd>, CString)> {
        let mut made = CreatedDirectories::new();
        let place = self.resolver.parent_of(path, &mut made)?;
        for (directory, was_whiteout) in made {
            if was_whiteout && self.layer_summary.is_some() {
                make_opaque(self.resolver.root(), &c_string(&directory)?)?;
            }
            self.directories.push(&directory, None)?;
        }
        Ok(place)
    }

    /// Makes a name; an existing entry of that name is removed, a directory with its content, as with Docker.
    fn replace<T>(
        &mut self,
        parent: &OwnedFd,
        name: &CString,
        make: impl Fn() -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        match make() {
            Err(Errno::EXIST) => {
                self.resolver.clear_cache();
                match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
                    Err(Errno::ISDIR) => remove_tree_at(parent, name.as_c_str())?,
                    other => other?,
                }
                Ok(make()?)
            }
            other => Ok(other?),
        }
    }

    /// Gives an open file or directory its owner, bits, attributes and time, in the order in which none undoes another.
    fn apply_attributes(&self, file: &File, attributes: &FileAttributes, has_bits: bool) -> io::Result<()> {
        if let Some((uid, gid)) = self.owner(attributes) {
            rustix::fs::fchown(file, uid, gid).map_err(|errno| ownership_error(errno, attributes))?;
        }
        for (name, value) in &attributes.extended {
            let own = name.as_bytes().starts_with(b"user.");
            match rustix::fs::fsetxattr(file, name, value, XattrFlags::empty()) {
                // Not every file system supports them.
                Err(Errno::NOTSUP) if own || self.owners != Owners::FromArchive => {}
                // Only root can set capabilities, and access lists may contain IDs that are not mapped here.
                Err(Errno::PERM | Errno::INVAL) if !own && self.owners != Owners::FromArchive => {}
                Err(errno) => return Err(attribute_error(errno, name)),
                Ok(()) => {}
            }
        }
        if !has_bits {
            // After the attributes, because setting them requires write permission.
            rustix::fs::fchmod(file, self.mode(attributes))?;
        }
        Ok(rustix::fs::futimens(file, &times(attributes.mtime))?)
    }

    /// Sets the owner of an entry that is not opened.
    fn set_owner(&self, parent: &OwnedFd, name: &CStr, attributes: &FileAttributes) -> io::Result<()> {
        if let Some((uid, gid)) = self.owner(attributes) {
            rustix::fs::chownat(parent, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|errno| ownership_error(errno, attributes))?;
        }
        Ok(())
    }

    /// The owner to set; `None` if it is already correct.
    fn owner(&self, attributes: &FileAttributes) -> Option<(Option<Uid>, Option<Gid>)> {
        let wanted = (attributes.uid, attributes.gid);
        let given = self.owners != Owners::CurrentUser && wanted != self.default_owner;
        given.then(|| (Some(Uid::from_raw(attributes.uid)), Some(Gid::from_raw(attributes.gid))))
    }

    fn mode(&self, attributes: &FileAttributes) -> Mode {
        let kept = if self.owners == Owners::CurrentUser { 0o1777 } else { 0o7777 };
        Mode::from_raw_mode(attributes.mode & kept)
    }
}

/// Why an owner cannot be given: IDs that are not mapped in this user namespace are invalid (chown(2)).
fn ownership_error(errno: Errno, attributes: &FileAttributes) -> io::Error {
    if errno != Errno::INVAL {
        return errno.into();
    }
    let FileAttributes { uid, gid, .. } = attributes;
    let words = format!("it belongs to {uid}:{gid}, and /etc/subuid and /etc/subgid do not grant enough ids");
    io::Error::new(io::ErrorKind::InvalidInput, words)
}

/// Why an attribute cannot be given, with its name.
fn attribute_error(errno: Errno, name: &CStr) -> io::Error {
    let name = name.to_string_lossy();
    match errno {
        Errno::INVAL => io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("its attribute `{name}` has an invalid value"),
        ),
        Errno::NOSPC | Errno::DQUOT => errno.into(),
        _ => {
            let error = io::Error::from(errno);
            io::Error::new(
                error.kind(),
                format!("cannot set its attribute `{name}`: {}", describe_io(&error)),
            )
        }
    }
}

/// Makes a directory opaque.
fn make_opaque(parent: &OwnedFd, name: &CString) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    set_opaque_attributes(open_inside(parent, name, flags)?)
}

/// Makes the directory of an `O_PATH` file descriptor opaque.
fn make_opaque_fd(directory: &OwnedFd) -> io::Result<()> {
    set_opaque_attributes(open_inside(directory, c".", OFlags::RDONLY | OFlags::DIRECTORY)?)
}

/// Sets the attributes for overlays of root's and for those in user namespaces; only root can set the first.
fn set_opaque_attributes(directory: impl AsFd) -> io::Result<()> {
    let [of_root, of_users] =
        OPAQUE_ATTRIBUTES.map(|name| rustix::fs::fsetxattr(&directory, name, b"y", XattrFlags::empty()));
    match (of_root, of_users) {
        (Ok(()), _) | (_, Ok(())) => Ok(()),
        (_, Err(Errno::NOTSUP)) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this file system cannot store overlay extended attributes; keep images on ext4, xfs or btrfs",
        )),
        (_, Err(errno)) => Err(errno.into()),
    }
}

/// The mask that this process makes files with, or all bits where it is not known.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok()).unwrap_or(0o777)
}

fn times(time: Time) -> Timestamps {
    let nanoseconds = i64::from(time.nanoseconds);
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: time.seconds, tv_nsec: nanoseconds },
    }
}

/// Writes an entry's data where it belongs; pieces of zeros are left out of the file.
fn copy<R: BufRead>(data: &mut Reader<R>, file: &File, entry: &Entry) -> io::Result<()> {
    let mut written = 0;
    let mut write = |piece: &[u8], at: u64| -> io::Result<()> {
        let mut rest = piece;
        while !rest.is_empty() {
            let holes =
                rest.chunks(HOLE_SIZE).take_while(|chunk| is_hole(chunk)).map(<[u8]>::len).sum::<usize>();
            rest = &rest[holes..];
            let full =
                rest.chunks(HOLE_SIZE).take_while(|chunk| !is_hole(chunk)).map(<[u8]>::len).sum::<usize>();
            if full > 0 {
                let offset = at + (piece.len() - rest.len()) as u64;
                file.write_all_at(&rest[..full], offset)?;
                written = offset + full as u64;
            }
            rest = &rest[full..];
        }
        Ok(())
    };
    let whole = [(0, entry.size)];
    for (offset, length) in entry.sparse.as_deref().unwrap_or(&whole) {
        let (mut at, end) = (*offset, offset + length);
        while at < end {
            let there = data.data()?;
            let count = there.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            write(&there[..count], at)?;
            data.consume(count);
            at += count as u64;
        }
    }
    if written < entry.size {
        file.set_len(entry.size)?;
    }
    Ok(())
}

/// Whether a piece should become a hole: all zeros, and no smaller than a page.
fn is_hole(piece: &[u8]) -> bool {
    piece.len() >= 4096 && piece.iter().all(|byte| *byte == 0)
}
