//! The tree that an archive becomes: each entry placed by file descriptor, inside the root and nowhere else.
//!
//! The directory an entry is in is resolved inside the root (see [`place`](super::place)); the last name is made
//! without following anything. A tree may be a layer of an image: then names that begin with `.wh.` become what an
//! overlay takes for whiteouts and opaque directories (image-spec, layer.md), and what the layer leaves to those below
//! it is remembered.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, BufRead};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags};
use rustix::io::Errno;

use super::invalid;
use super::place::{Made, Places, c_string, is_whiteout, look, names};
use crate::tar::{Entry, Reader, Time};
use jobc_sys::inside::open_inside;

/// The prefix of a whiteout's name.
const WHITEOUT: &[u8] = b".wh.";
/// The prefix of names that were for aufs alone, and the one of them that means something.
const OF_AUFS: &[u8] = b".wh..wh.";
/// The attributes that make a directory opaque: root's, and those of overlays in user namespaces.
pub const OPAQUE: [&CStr; 2] = [c"trusted.overlay.opaque", c"user.overlay.opaque"];

/// The name that makes a directory of a layer opaque.
const OPAQUE_DIRECTORY: &[u8] = b".wh..wh..opq";

/// A piece of a file that becomes a hole where it is all zeros.
const HOLE: usize = 1 << 16;

/// The most memory, roughly, that is spent on remembering directories until they get their times.
const MOST_REMEMBERED: usize = 32 << 20;

/// Whose the files of a tree are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owners {
    /// As the archive says, with all that root may give.
    Kept,
    /// As the archive says, by the ids of a user namespace: without devices.
    Mapped,
    /// This user's, without set-user-id bits, devices and capabilities.
    Mine,
}

/// What an entry has besides its content.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mtime: Time,
    pub(crate) extended: Vec<(CString, Vec<u8>)>,
}

impl Attributes {
    /// What an entry of an archive has, as far as it is applied.
    pub(super) fn of(entry: &Entry) -> io::Result<Self> {
        let mut extended = Vec::new();
        for (name, value) in &entry.attributes {
            if is_given(name) {
                let name = CString::new(&name[..])
                    .map_err(|_| invalid("an attribute with a NUL byte in its name"))?;
                extended.push((name, value.clone()));
            }
        }
        Ok(Self { mode: entry.mode, uid: entry.uid, gid: entry.gid, mtime: entry.mtime, extended })
    }
}

/// Whether an attribute is taken from archives and put into them: what users write, file capabilities, and access
/// lists. Those of overlays would lead an overlay elsewhere.
pub(crate) fn is_given(name: &[u8]) -> bool {
    name.starts_with(b"user.") && !name.starts_with(b"user.overlay.")
        || matches!(name, b"security.capability" | b"system.posix_acl_access" | b"system.posix_acl_default")
}

/// What is made of a layer besides its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Directories that the layer has no entry for: in an image they are as the layers below say.
    pub implied: Vec<Vec<u8>>,
    /// Hard links to what is not in the layer: new names, and what they are for.
    pub borrowed: Vec<(Vec<u8>, Vec<u8>)>,
    /// Devices that could not be made.
    pub without: Vec<Vec<u8>>,
}

/// A root that is being filled.
pub struct Tree {
    places: Places,
    owners: Owners,
    /// Who owns what this process makes, and which permission bits it makes nothing with.
    own: (u32, u32),
    umask: u32,
    /// What directories get at the end: until then they must be writable, and their times change. Nothing for those
    /// without an entry.
    directories: BTreeMap<Vec<u8>, Option<Attributes>>,
    remembered: usize,
    /// Where the tree is a layer.
    layer: Option<Left>,
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
        Ok(Self {
            places: Places::new(root),
            owners,
            own: (data.st_uid, data.st_gid),
            umask: umask(),
            directories: BTreeMap::from([(Vec::new(), None)]),
            remembered: 0,
            layer: None,
        })
    }

    /// The same for a layer of an image.
    pub fn layer(root: &Path, owners: Owners) -> io::Result<Self> {
        Ok(Self { layer: Some(Left::default()), ..Self::new(root, owners)? })
    }

    /// A file with its content, in which long runs of zeros become holes.
    pub(super) fn file<R: BufRead>(
        &mut self,
        entry: &Entry,
        attributes: &Attributes,
        data: &mut Reader<R>,
    ) -> io::Result<()> {
        let (parent, name) = self.place(&entry.path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let bits = self.mode(attributes);
        // Most files are made as they shall be; the others become so once they are written.
        let finished = bits.as_raw_mode() & (self.umask | 0o7000) == 0 && attributes.extended.is_empty();
        let begin = if finished { bits } else { Mode::RUSR | Mode::WUSR };
        let open = || rustix::fs::openat(&parent, &name, flags, begin);
        let file = File::from(self.instead(&parent, &name, open)?);
        copy(data, &file, entry)?;
        self.dress(&file, attributes, finished)
    }

    /// A directory; one that is there stays, with new attributes.
    pub(super) fn directory(&mut self, path: &[u8], attributes: Attributes) -> io::Result<()> {
        let names = names(path)?;
        if !names.is_empty() {
            let (parent, name) = self.place(path)?;
            match rustix::fs::mkdirat(&parent, &name, Mode::RWXU) {
                Err(Errno::EXIST) => self.directory_instead(&parent, &name)?,
                other => other?,
            }
        }
        self.remember(names.join(&b'/'), Some(attributes))
    }

    /// A directory where something stands.
    fn directory_instead(&mut self, parent: &OwnedFd, name: &CString) -> io::Result<()> {
        let Some(there) = look(parent, name)? else { return Ok(()) };
        if FileType::from_raw_mode(there.st_mode) == FileType::Directory {
            return Ok(());
        }
        self.instead(parent, name, || rustix::fs::mkdirat(parent, name, Mode::RWXU))?;
        if self.layer.is_some() && is_whiteout(&there) {
            hide_lower(parent, name)?;
        }
        Ok(())
    }

    /// A symbolic link with any target.
    pub(super) fn symlink(&mut self, path: &[u8], target: &[u8], attributes: &Attributes) -> io::Result<()> {
        let (parent, name) = self.place(path)?;
        let target = CString::new(target).map_err(|_| invalid("a link with a NUL byte"))?;
        self.instead(&parent, &name, || rustix::fs::symlinkat(&target, &parent, &name))?;
        self.own_name(&parent, &name, attributes)?;
        Ok(rustix::fs::utimensat(&parent, &name, &times(attributes.mtime), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// One more name for what an earlier entry made, or for what a lower layer has.
    pub(super) fn hard_link(&mut self, path: &[u8], target: &[u8]) -> io::Result<()> {
        if names(path)? == names(target)? {
            return Ok(());
        }
        let Some((from, old)) = self.place_of_target(target)? else { return self.borrow(path, target) };
        let (parent, name) = self.place(path)?;
        // Without a flag linkat(2) does not follow `old`, so this can only be a file of the tree.
        self.instead(&parent, &name, || rustix::fs::linkat(&from, &old, &parent, &name, AtFlags::empty()))
    }

    /// The directory and the name of what a hard link is for; nothing where it is not in the tree.
    fn place_of_target(&mut self, target: &[u8]) -> io::Result<Option<(OwnedFd, CString)>> {
        let names = names(target)?;
        let Some((name, directories)) = names.split_last() else {
            return Err(invalid("a hard link to the root"));
        };
        let (name, directories) = (c_string(name)?, directories.join(&b'/'));
        let directories = c_string(if directories.is_empty() { b"." } else { &directories })?;
        match open_inside(self.places.root(), &directories, OFlags::PATH | OFlags::DIRECTORY) {
            Ok(directory) => match look(&directory, &name)? {
                // What a layer takes away is not there to be linked to.
                Some(there) if self.layer.is_some() && is_whiteout(&there) => Ok(None),
                there => Ok(there.map(|_| (directory, name))),
            },
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// A hard link to what is not in the tree: that of a layer may be for a lower one's file.
    fn borrow(&mut self, path: &[u8], target: &[u8]) -> io::Result<()> {
        let Some(left) = &mut self.layer else {
            return Err(invalid("a hard link to a file that is not earlier in the archive"));
        };
        let joined = |path| Ok::<_, io::Error>(names(path)?.join(&b'/'));
        left.borrowed.push((joined(path)?, joined(target)?));
        self.remembered += 128 + path.len() + target.len();
        self.check_remembered()?;
        // Its directory is there, whatever becomes of it.
        self.place(path).map(drop)
    }

    /// A pipe or a device.
    pub(super) fn node(
        &mut self,
        path: &[u8],
        kind: FileType,
        device: u64,
        attributes: &Attributes,
    ) -> io::Result<()> {
        let is_device = kind != FileType::Fifo;
        if is_device && self.owners != Owners::Kept {
            return self.leave_out(path);
        }
        let (parent, name) = self.place(path)?;
        let make = || rustix::fs::mknodat(&parent, &name, kind, Mode::RUSR | Mode::WUSR, device);
        match self.instead(&parent, &name, make) {
            // Root of a container, who may make none.
            Err(error) if is_device && error.kind() == io::ErrorKind::PermissionDenied => {
                return self.leave_out(path);
            }
            other => other?,
        }
        // A device node is not opened, because open(2) can have side effects; no other process can have put a link
        // there.
        self.own_name(&parent, &name, attributes)?;
        rustix::fs::chmodat(&parent, &name, self.mode(attributes), AtFlags::empty())?;
        Ok(rustix::fs::utimensat(&parent, &name, &times(attributes.mtime), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// A device that cannot be made: every container gets those of /dev anew, and a layer is of use without the others.
    fn leave_out(&mut self, path: &[u8]) -> io::Result<()> {
        let names = names(path)?;
        match &mut self.layer {
            _ if names.first() == Some(&&b"dev"[..]) => Ok(()),
            Some(left) => {
                // Only a few are reported, so that an archive of nothing but devices does not fill the memory.
                if left.without.len() < 16 {
                    left.without.push(names.join(&b'/'));
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
    pub(super) fn take_whiteout(&mut self, path: &[u8]) -> io::Result<bool> {
        let Some(name) = path.rsplit(|&byte| byte == b'/').find(|name| !matches!(*name, b"" | b".")) else {
            return Ok(false);
        };
        if self.layer.is_none() || !name.starts_with(WHITEOUT) {
            return Ok(false);
        }
        if name.starts_with(OF_AUFS) && name != OPAQUE_DIRECTORY {
            return Ok(true);
        }
        let (parent, own) = self.place(path)?;
        if name == OPAQUE_DIRECTORY {
            hide_lower_of(&parent)?;
            return Ok(true);
        }
        let hidden = c_string(&own.as_bytes()[WHITEOUT.len()..])?;
        if matches!(hidden.as_bytes(), b"" | b"." | b"..") {
            return Err(invalid("a whiteout without a name"));
        }
        match rustix::fs::mknodat(&parent, &hidden, FileType::CharacterDevice, Mode::empty(), 0) {
            Err(Errno::EXIST) => {
                let there = look(&parent, &hidden)?;
                if there.is_some_and(|there| FileType::from_raw_mode(there.st_mode) == FileType::Directory) {
                    hide_lower(&parent, &hidden)?;
                }
            }
            other => other?,
        }
        Ok(true)
    }

    /// Gives the directories what they are to have, inner ones first.
    pub fn finish(self) -> io::Result<()> {
        self.finish_layer().map(drop)
    }

    /// The same, with what a layer leaves to those below it.
    pub fn finish_layer(mut self) -> io::Result<Left> {
        let mut left = self.layer.take().unwrap_or_default();
        for (path, attributes) in std::mem::take(&mut self.directories).into_iter().rev() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            let name = if path.is_empty() { b"." } else { &path[..] };
            match open_inside(self.places.root(), &c_string(name)?, flags) {
                Ok(directory) => {
                    let unlisted = || Attributes { mode: 0o755, ..Attributes::default() };
                    let given = attributes.clone().unwrap_or_else(unlisted);
                    self.dress(&File::from(directory), &given, false)?;
                    if attributes.is_none() {
                        left.implied.push(path);
                    }
                }
                // A later entry took its place.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        left.implied.reverse();
        Ok(left)
    }

    /// The parent directory of an entry, made where it is missing, and the entry's last name.
    fn place(&mut self, path: &[u8]) -> io::Result<(std::rc::Rc<OwnedFd>, CString)> {
        let mut made = Made::new();
        let place = self.places.of(path, &mut made)?;
        for (directory, was_whiteout) in made {
            if was_whiteout && self.layer.is_some() {
                hide_lower(self.places.root(), &c_string(&directory)?)?;
            }
            self.remember(directory, None)?;
        }
        Ok(place)
    }

    fn remember(&mut self, directory: Vec<u8>, attributes: Option<Attributes>) -> io::Result<()> {
        let extended = attributes.iter().flat_map(|attributes| &attributes.extended);
        self.remembered += 128 + directory.len() + extended.map(|(_, value)| 64 + value.len()).sum::<usize>();
        self.directories.insert(directory, attributes);
        self.check_remembered()
    }

    fn check_remembered(&self) -> io::Result<()> {
        if self.remembered > MOST_REMEMBERED { Err(invalid("too many directories")) } else { Ok(()) }
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
                self.places.forget();
                match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
                    Err(Errno::ISDIR) => rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?,
                    other => other?,
                }
                Ok(make()?)
            }
            other => Ok(other?),
        }
    }

    /// Gives an open file or directory its owner, bits, attributes and time, in the order in which none undoes another.
    fn dress(&self, file: &File, attributes: &Attributes, has_bits: bool) -> io::Result<()> {
        if let Some((uid, gid)) = self.owner(attributes) {
            rustix::fs::fchown(file, uid, gid).map_err(|errno| not_granted(errno, attributes))?;
        }
        for (name, value) in &attributes.extended {
            let own = name.as_bytes().starts_with(b"user.");
            match rustix::fs::fsetxattr(file, name, value, XattrFlags::empty()) {
                // Not every file system has room for them.
                Err(Errno::NOTSUP) if own || self.owners != Owners::Kept => {}
                // Capabilities are root's to give, and lists may name ids that are not here.
                Err(Errno::PERM | Errno::INVAL) if !own && self.owners != Owners::Kept => {}
                other => other?,
            }
        }
        if !has_bits {
            // After the attributes, which only who may write a file may give it.
            rustix::fs::fchmod(file, self.mode(attributes))?;
        }
        Ok(rustix::fs::futimens(file, &times(attributes.mtime))?)
    }

    /// Gives what is not opened its owner.
    fn own_name(&self, parent: &OwnedFd, name: &CStr, attributes: &Attributes) -> io::Result<()> {
        if let Some((uid, gid)) = self.owner(attributes) {
            rustix::fs::chownat(parent, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|errno| not_granted(errno, attributes))?;
        }
        Ok(())
    }

    /// The owner to give, where it is not already the one.
    fn owner(&self, attributes: &Attributes) -> Option<(Option<Uid>, Option<Gid>)> {
        let wanted = (attributes.uid, attributes.gid);
        let given = self.owners != Owners::Mine && wanted != self.own;
        given.then(|| (Some(Uid::from_raw(attributes.uid)), Some(Gid::from_raw(attributes.gid))))
    }

    fn mode(&self, attributes: &Attributes) -> Mode {
        let kept = if self.owners == Owners::Mine { 0o1777 } else { 0o7777 };
        Mode::from_raw_mode(attributes.mode & kept)
    }
}

/// Why an owner cannot be given: an id that is not mapped in this user namespace is none (chown(2)).
fn not_granted(errno: Errno, attributes: &Attributes) -> io::Error {
    if errno != Errno::INVAL {
        return errno.into();
    }
    let Attributes { uid, gid, .. } = attributes;
    let words = format!("it belongs to {uid}:{gid}, and /etc/subuid and /etc/subgid do not grant enough ids");
    io::Error::new(io::ErrorKind::InvalidInput, words)
}

/// Makes a directory opaque.
fn hide_lower(parent: &OwnedFd, name: &CString) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    hide(open_inside(parent, name, flags)?)
}

/// Makes the directory of an `O_PATH` file descriptor opaque.
fn hide_lower_of(directory: &OwnedFd) -> io::Result<()> {
    hide(open_inside(directory, c".", OFlags::RDONLY | OFlags::DIRECTORY)?)
}

/// Sets the attributes for overlays of root's and for those in user namespaces; the first is root's alone to set.
fn hide(directory: impl AsFd) -> io::Result<()> {
    let [of_root, of_users] =
        OPAQUE.map(|name| rustix::fs::fsetxattr(&directory, name, b"y", XattrFlags::empty()));
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
            let holes = rest.chunks(HOLE).take_while(|chunk| is_hole(chunk)).map(<[u8]>::len).sum::<usize>();
            rest = &rest[holes..];
            let full = rest.chunks(HOLE).take_while(|chunk| !is_hole(chunk)).map(<[u8]>::len).sum::<usize>();
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

/// Whether a piece is better left out: all zeros, and no smaller than a page.
fn is_hole(piece: &[u8]) -> bool {
    piece.len() >= 4096 && piece.iter().all(|byte| *byte == 0)
}
