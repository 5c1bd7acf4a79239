//! Puts files into an image's tree, as `COPY` does.
//!
//! The rules are those of BuildKit's file operation. A target with a trailing slash, or one that is a directory, takes
//! files by their names; of a directory it takes the content. Missing parent directories are created with mode 0755. An
//! existing directory gets the mode, owner and time of the one that is copied onto it; anything else is replaced. Links
//! in the image are followed inside of it, except for the name of the file itself.

mod directories;
mod download;

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags,
};
use rustix::io::Errno;

use super::overlay::path_of;
use super::source_listing::{Entry, SourceListing, c_path, identity, with_path};
use jobc_dockerfile::ignore::Ignore;
use jobc_schema::permissions::Permissions;
use jobc_sys::open_inside::open_inside;
use jobc_sys::sparse::copy_content;

/// Extended attributes: names and values.
type Xattrs = Vec<(CString, Vec<u8>)>;

/// Attributes of copied files that differ from their sources.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FileAttributes<'a> {
    /// Their owner; their own where absent.
    pub(super) owner: Option<(u32, u32)>,
    /// Their bits, or a change of their own; their own where absent.
    pub(super) mode: Option<&'a Permissions>,
    /// Whether directories' extended attributes are copied too.
    pub(super) directory_xattrs: bool,
}

impl FileAttributes<'_> {
    /// The bits of a file that has `own` bits.
    fn bits(&self, own: u32, is_directory: bool) -> Mode {
        Mode::from_raw_mode(self.mode.map_or(own & 0o7777, |mode| mode.apply(own & 0o7777, is_directory)))
    }
}

/// A tree that files are put into.
pub(super) struct TreeWriter<'a> {
    root: &'a OwnedFd,
    file_attributes: FileAttributes<'a>,
    stopped: &'a AtomicBool,
    /// Files with several names, and the first of them here.
    linked: HashMap<(u64, u64), PathBuf>,
    /// Attributes of directories, set at the end: until then their times change.
    directories: Vec<(PathBuf, Stat, Xattrs)>,
    /// The directory of the last entry, because most entries share it with the entry before.
    last_directory: Option<(PathBuf, OwnedFd)>,
    /// Whether an owner could not be given, for this user has only one id.
    pub(super) owners_lost: bool,
}

impl<'a> TreeWriter<'a> {
    /// The tree below a file descriptor.
    pub(super) fn new(root: &'a OwnedFd, dress: FileAttributes<'a>, stopped: &'a AtomicBool) -> Self {
        let (linked, directories) = (HashMap::new(), Vec::new());
        Self {
            root,
            file_attributes: dress,
            stopped,
            linked,
            directories,
            last_directory: None,
            owners_lost: false,
        }
    }

    /// Copies a source's files to a target: an absolute path, with a trailing slash if it must be a directory.
    pub(super) fn copy_source(
        &mut self,
        tree: &OwnedFd,
        found: &SourceListing,
        target: &str,
    ) -> io::Result<()> {
        if found.is_directory() {
            let base = self.create_directories(Path::new(target))?;
            for entry in &found.entries[1..] {
                self.copy_entry(tree, found, entry, &base.join(&entry.path))?;
            }
            return Ok(());
        }
        let Some(entry) = found.entries.first() else { return Ok(()) };
        let target = self.file_target(target, found.name().as_ref())?;
        self.copy_entry(tree, found, entry, &target)
    }

    /// Copies a directory that leads to a source, without its content.
    pub(super) fn copy_parent(
        &mut self,
        tree: &OwnedFd,
        found: &SourceListing,
        parent: &Entry,
        target: &Path,
    ) -> io::Result<()> {
        let attributes = if self.file_attributes.directory_xattrs {
            let path = c_path(&found.pivot().join(&parent.path))?;
            read_xattrs(&open_inside(tree, &path, OFlags::RDONLY | OFlags::DIRECTORY)?)?
        } else {
            Vec::new()
        };
        self.create_subdirectory(target)?;
        self.directories.push((target.to_owned(), parent.status, attributes));
        Ok(())
    }

    /// Copies the content of an archive: with its owners and all its attributes of directories.
    pub(super) fn copy_archive(
        &mut self,
        directory: &Path,
        owner: Option<(u32, u32)>,
        target: &str,
    ) -> io::Result<()> {
        let tree = super::overlay::mount_layers(&[directory.to_owned()], None)
            .map_err(|error| io::Error::other(error.message()))?;
        let before = self.file_attributes;
        self.file_attributes = FileAttributes { owner, directory_xattrs: true, ..before };
        let mut put = || -> io::Result<()> {
            for found in super::source_listing::find(&tree, ".", &Ignore::default(), false)? {
                self.copy_source(&tree, &found, target)?;
            }
            self.finish()
        };
        let done = put();
        self.file_attributes = before;
        done
    }

    /// Writes a file with a content.
    pub(super) fn write(&mut self, name: &str, content: &[u8], target: &str) -> io::Result<()> {
        let path = self.file_target(target, Path::new(name))?;
        let (parent, name) = self.open_parent(&path)?;
        let mut file = File::from(self.create_file(&parent, &name)?);
        file.write_all(content)?;
        let (uid, gid) = self.file_attributes.owner.unwrap_or_default();
        self.chown(&file, uid, gid)?;
        Ok(rustix::fs::fchmod(&file, self.file_attributes.bits(0o644, false))?)
    }

    /// Sets the attributes of directories, inner ones first.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        for (path, status, attributes) in std::mem::take(&mut self.directories).into_iter().rev() {
            let directory = open_inside(self.root, &c_path(&path)?, OFlags::RDONLY | OFlags::DIRECTORY)?;
            self.set_attributes(&directory, &status, &attributes)?;
        }
        Ok(())
    }

    /// The target of a file: its name in a directory, else the target itself.
    fn file_target(&mut self, target: &str, name: &Path) -> io::Result<PathBuf> {
        let path = Path::new(target);
        let open = open_inside(self.root, &c_path(path)?, OFlags::PATH | OFlags::DIRECTORY);
        let parent = if target.ends_with('/') || open.is_ok() { path } else { path.parent().unwrap_or(path) };
        let base = self.create_directories(parent)?;
        Ok(base.join(if parent == path { name } else { Path::new(path.file_name().unwrap_or_default()) }))
    }

    fn copy_entry(
        &mut self,
        tree: &OwnedFd,
        found: &SourceListing,
        entry: &Entry,
        target: &Path,
    ) -> io::Result<()> {
        self.check_stopped()?;
        self.copy_entry_content(tree, found, entry, target)
            .map_err(|error| with_path(error, &Path::new("/").join(found.path.join(&entry.path))))
    }

    fn check_stopped(&self) -> io::Result<()> {
        if self.stopped.load(Ordering::Relaxed) { Err(io::Error::other("canceled")) } else { Ok(()) }
    }

    fn copy_entry_content(
        &mut self,
        tree: &OwnedFd,
        found: &SourceListing,
        entry: &Entry,
        target: &Path,
    ) -> io::Result<()> {
        let status = &entry.status;
        if entry.is_directory() {
            let attributes = if self.file_attributes.directory_xattrs {
                read_xattrs(&found.open(tree, entry)?)?
            } else {
                Vec::new()
            };
            self.create_subdirectory(target)?;
            self.directories.push((target.to_owned(), *status, attributes));
            return Ok(());
        }
        let (parent, name) = self.open_parent(target)?;
        match entry.kind() {
            FileType::RegularFile => {
                let many = status.st_nlink > 1;
                let key = (status.st_dev, status.st_ino);
                if many && let Some(first) = self.linked.get(&key) {
                    let (from, old) = (self.root, c_path(first)?);
                    return self.replace_entry(&parent, &name, || {
                        rustix::fs::linkat(from, &old, &parent, &name, AtFlags::empty())
                    });
                }
                let from = File::from(found.open(tree, entry)?);
                let before = rustix::fs::fstat(&from)?;
                let to = File::from(self.create_file(&parent, &name)?);
                copy_content(&from, &to, &before, &|| self.check_stopped())?;
                let after = rustix::fs::fstat(&from)?;
                if identity(&after) != identity(status) || identity(&before) != identity(status) {
                    return Err(io::Error::other("it changed while it was copied"));
                }
                self.set_attributes(&to, status, &read_xattrs(&from)?)?;
                if many {
                    self.linked.insert(key, target.to_owned());
                }
                Ok(())
            }
            FileType::Symlink => {
                let link = read_link(tree, &found.path.join(&entry.path))?;
                self.replace_entry(&parent, &name, || rustix::fs::symlinkat(&link, &parent, &name))?;
                self.set_attributes_by_name(&parent, &name, status)
            }
            kind => {
                let make =
                    || rustix::fs::mknodat(&parent, &name, kind, Mode::RUSR | Mode::WUSR, status.st_rdev);
                self.replace_entry(&parent, &name, make)?;
                let mode = self.file_attributes.bits(status.st_mode, false);
                self.set_attributes_by_name(&parent, &name, status)?;
                Ok(rustix::fs::chmodat(&parent, &name, mode, AtFlags::empty())?)
            }
        }
    }

    /// A subdirectory of a directory that is copied; an existing entry that is not a directory is replaced, except a
    /// link to a directory.
    fn create_subdirectory(&mut self, target: &Path) -> io::Result<()> {
        let path = c_path(target)?;
        if open_inside(self.root, &path, OFlags::PATH | OFlags::DIRECTORY).is_ok() {
            return Ok(());
        }
        let (parent, name) = self.open_parent(target)?;
        self.replace_entry(&parent, &name, || rustix::fs::mkdirat(&parent, &name, Mode::RWXU))
    }

    /// The existing parent directory of a path, and the path's last component.
    fn open_parent(&mut self, path: &Path) -> io::Result<(OwnedFd, CString)> {
        let name = path.file_name().ok_or_else(|| io::Error::other("the root is not a directory"))?;
        let name = CString::new(name.as_bytes())?;
        let directory = path.parent().unwrap_or(Path::new(""));
        if let Some((_, open)) = self.last_directory.as_ref().filter(|(last, _)| last == directory) {
            return Ok((open.try_clone()?, name));
        }
        let open = open_inside(self.root, &c_path(directory)?, OFlags::PATH | OFlags::DIRECTORY)?;
        self.last_directory = Some((directory.to_owned(), open.try_clone()?));
        Ok((open, name))
    }

    fn create_file(&mut self, parent: &OwnedFd, name: &CStr) -> io::Result<OwnedFd> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.replace_entry(parent, name, || rustix::fs::openat(parent, name, flags, Mode::RUSR | Mode::WUSR))
    }

    /// Creates an entry, replacing an existing one; a directory is replaced only if it is empty.
    fn replace_entry<T>(
        &mut self,
        parent: &OwnedFd,
        name: &CStr,
        make: impl Fn() -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        match make() {
            Err(Errno::EXIST) => {
                self.last_directory = None;
                match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
                    Err(Errno::ISDIR) => {
                        return Err(io::Error::other("the image has a directory of that name"));
                    }
                    other => other?,
                }
                Ok(make()?)
            }
            other => Ok(other?),
        }
    }

    /// Gives an open file or directory owner, attributes, bits and time, in the order in which none undoes another.
    fn set_attributes(
        &mut self,
        file: &impl std::os::fd::AsFd,
        status: &Stat,
        attributes: &[(CString, Vec<u8>)],
    ) -> io::Result<()> {
        let (uid, gid) = self.file_attributes.owner.unwrap_or((status.st_uid, status.st_gid));
        self.chown(file, uid, gid)?;
        for (name, value) in attributes {
            match rustix::fs::fsetxattr(file.as_fd(), name, value, XattrFlags::empty()) {
                // Not every file system supports them, and not every user can set capabilities.
                Err(Errno::NOTSUP | Errno::PERM) => {}
                other => other?,
            }
        }
        let is_directory = FileType::from_raw_mode(status.st_mode) == FileType::Directory;
        rustix::fs::fchmod(file, self.file_attributes.bits(status.st_mode, is_directory))?;
        Ok(rustix::fs::futimens(file, &times(status))?)
    }

    /// Gives a link or a node, which is not opened, its owner and time.
    fn set_attributes_by_name(&mut self, parent: &OwnedFd, name: &CStr, status: &Stat) -> io::Result<()> {
        let (uid, gid) = self.file_attributes.owner.unwrap_or((status.st_uid, status.st_gid));
        let ids = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        let given = rustix::fs::chownat(parent, name, ids.0, ids.1, AtFlags::SYMLINK_NOFOLLOW);
        self.ignore_unmapped_owner(given)?;
        Ok(rustix::fs::utimensat(parent, name, &times(status), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    fn chown(&mut self, file: &impl std::os::fd::AsFd, uid: u32, gid: u32) -> io::Result<()> {
        let given = rustix::fs::fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        self.ignore_unmapped_owner(given)
    }

    /// In a user namespace of one id all files are that user's (user_namespaces(7): other ids are invalid).
    fn ignore_unmapped_owner(&mut self, given: rustix::io::Result<()>) -> io::Result<()> {
        match given {
            Err(Errno::INVAL) if jobc_sys::host::in_user_namespace() => self.owners_lost = true,
            other => other?,
        }
        Ok(())
    }
}

fn read_link(tree: &OwnedFd, path: &Path) -> io::Result<CString> {
    let link = open_inside(tree, &c_path(path)?, OFlags::PATH | OFlags::NOFOLLOW)?;
    Ok(rustix::fs::readlinkat(&link, c"", Vec::new())?)
}

/// Modification is kept; access is now.
fn times(status: &Stat) -> Timestamps {
    #[allow(clippy::cast_possible_wrap)] // The kernel's nanoseconds are below a billion.
    let modified = Timespec { tv_sec: status.st_mtime, tv_nsec: status.st_mtime_nsec as i64 };
    Timestamps { last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT }, last_modification: modified }
}

/// The extended attributes that belong to the content: a user's own, and capabilities.
pub(super) fn read_xattrs(file: &impl std::os::fd::AsRawFd) -> io::Result<Xattrs> {
    let path = path_of(file);
    let mut list = vec![0; 1 << 12];
    let size = match rustix::fs::listxattr(&path, &mut list[..]) {
        Ok(size) => size,
        Err(Errno::NOTSUP) => return Ok(Vec::new()),
        Err(Errno::RANGE) => {
            list.resize(1 << 16, 0);
            rustix::fs::listxattr(&path, &mut list[..])?
        }
        Err(errno) => return Err(errno.into()),
    };
    let mut attributes = Vec::new();
    for name in list[..size].split(|byte| *byte == 0) {
        let own = name.starts_with(b"user.") && !name.starts_with(b"user.overlay.");
        if !own && name != b"security.capability" {
            continue;
        }
        let name = CString::new(name)?;
        let mut value = vec![0; 1 << 16];
        let size = rustix::fs::getxattr(&path, &name, &mut value[..])?;
        value.truncate(size);
        attributes.push((name, value));
    }
    attributes.sort();
    Ok(attributes)
}

#[cfg(test)]
mod tests;
