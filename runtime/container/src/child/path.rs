//! A path below the container's root, resolved and created without leaving the root.
//!
//! Everything below the root is found with openat2(2) `RESOLVE_IN_ROOT` and `RESOLVE_NO_MAGICLINKS`, to a file
//! descriptor that is then used: a link in the image, or one swapped in meanwhile, leads somewhere inside the image or
//! to an error, never to the host. Missing parts are created below the file descriptor of their parent.

use std::ffi::{CStr, CString};
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::{Child, links};
use jobc_sys::syscall::{Fd, Kernel};

/// Resolution that stays below the directory it begins at, as `chroot` would have it.
pub const RESOLVE_IN_ROOT: ResolveFlags = ResolveFlags::IN_ROOT.union(ResolveFlags::NO_MAGICLINKS);

/// A place below the root, cleaned of `.` and `..`, ready to be resolved and made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerPath {
    /// Without a leading `/`; `.` for the root itself.
    pub path: CString,
    /// The components of the path: each directory's path, and its last name.
    steps: Vec<(CString, CString)>,
    /// Whether a symbolic link in the path is refused instead of followed.
    pub no_links: bool,
}

impl ContainerPath {
    /// The place of a path in config.json; `..` above the root stays at the root, as in the kernel.
    ///
    /// Links on the way to /proc, /sys and /dev are refused: later steps rely on what is mounted there (CVE-2019-19921,
    /// CVE-2026-41579).
    ///
    /// Returns `None` for a path with a NUL byte.
    pub fn new(path: &Path) -> Option<Self> {
        let mut names: Vec<&[u8]> = Vec::new();
        for component in path.components() {
            match component {
                Component::Normal(name) => names.push(std::os::unix::ffi::OsStrExt::as_bytes(name)),
                Component::ParentDir => {
                    names.pop();
                }
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
        let mut steps = Vec::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            steps.push((CString::new(names[..=index].join(&b'/')).ok()?, CString::new(*name).ok()?));
        }
        let path = steps.last().map_or_else(|| c".".to_owned(), |(path, _)| path.clone());
        let no_links = matches!(names.first(), Some(&b"proc" | &b"sys" | &b"dev"));
        Some(Self { path, steps, no_links })
    }

    /// Opens the place, without making anything.
    pub fn open<K: Kernel>(&self, child: &Child<'_, K>) -> Result<Fd, Errno> {
        let (base, path) = child.base(&self.path);
        child.kernel.open(base, path, OFlags::PATH, Mode::empty(), self.resolve())
    }

    /// Opens the place; makes directories, and a last file or directory, where they are missing.
    pub fn create<K: Kernel>(&self, child: &Child<'_, K>, last: TargetKind) -> Result<Fd, Errno> {
        match self.open(child) {
            Err(Errno::NOENT) => self.walk(child, &self.steps, last, ResolveFlags::empty()),
            other => other,
        }
    }

    /// As [`create`](Self::create), for a mount: where links of the image lead to /proc, /sys or /dev, `EXDEV`.
    ///
    /// A mount there would hide what the kernel, later steps and the program read and write there. A place in the
    /// root's own mount needs no check of its file system.
    pub fn create_target<K: Kernel>(&self, child: &Child<'_, K>, last: TargetKind) -> Result<Fd, Errno> {
        if self.no_links {
            return self.create(child, last);
        }
        let resolve = RESOLVE_IN_ROOT | ResolveFlags::NO_XDEV;
        match child.kernel.open(child.root, &self.path, OFlags::PATH, Mode::empty(), resolve) {
            Err(Errno::XDEV) => {}
            Err(Errno::NOENT) => match self.walk(child, &self.steps, last, ResolveFlags::NO_XDEV) {
                Err(Errno::XDEV) => {}
                other => return other,
            },
            other => return other,
        }
        self.check_way(child)?;
        let target = self.create(child, last)?;
        child.check_ordinary(target)?;
        Ok(target)
    }

    /// Checks the file system of the existing part of a path.
    fn check_way<K: Kernel>(&self, child: &Child<'_, K>) -> Result<(), Errno> {
        for (path, _) in self.steps.iter().rev() {
            match child.kernel.open(child.root, path, OFlags::PATH, Mode::empty(), RESOLVE_IN_ROOT) {
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
                Ok(there) => {
                    let checked = child.check_ordinary(there);
                    child.kernel.close(there);
                    return checked;
                }
            }
        }
        Ok(())
    }

    /// Opens the directory that the place is in, making directories where they are missing; with the place's last
    /// name.
    pub fn create_parent<K: Kernel>(&self, child: &Child<'_, K>) -> Result<(Fd, &CStr), Errno> {
        let ((_, name), directories) = self.steps.split_last().ok_or(Errno::ISDIR)?;
        let (base, path) = child.base(directories.last().map_or(c".", |(path, _)| path));
        let directory = match child.kernel.open(base, path, DIRECTORY_FLAGS, Mode::empty(), self.resolve()) {
            Err(Errno::NOENT) => self.walk(child, directories, TargetKind::Directory, ResolveFlags::empty()),
            other => other,
        }?;
        Ok((directory, name))
    }

    /// The place's last name, where it is in that directory.
    pub fn name_in(&self, directory: &CStr) -> Option<&CStr> {
        let ((_, name), directories) = self.steps.split_last()?;
        directories.last().is_some_and(|(path, _)| path.as_c_str() == directory).then_some(name)
    }

    /// Creates the missing part of a path that was not found; what dangling links in it name, too.
    fn walk<K: Kernel>(
        &self,
        child: &Child<'_, K>,
        steps: &[(CString, CString)],
        last: TargetKind,
        further: ResolveFlags,
    ) -> Result<Fd, Errno> {
        match self.walk_names(child, steps, last, further) {
            Err(Errno::EXIST | Errno::LOOP | Errno::NOTDIR) if !self.no_links => {
                let path = steps.last().map_or(c".", |(path, _)| path);
                links::create(child, path, last, further)
            }
            other => other,
        }
    }

    fn walk_names<K: Kernel>(
        &self,
        child: &Child<'_, K>,
        steps: &[(CString, CString)],
        last: TargetKind,
        further: ResolveFlags,
    ) -> Result<Fd, Errno> {
        let kernel = child.kernel;
        let mut parent = None;
        for (index, (path, name)) in steps.iter().enumerate() {
            let is_last = index + 1 == steps.len();
            let (base, path) = child.base(path);
            let within = parent.unwrap_or(base);
            let next = if is_last {
                make(kernel, within, name, last)
            } else {
                match kernel.open(base, path, OFlags::PATH, Mode::empty(), self.resolve() | further) {
                    Err(Errno::NOENT) => make_directory(kernel, within, name),
                    other => other,
                }
            };
            if let Some(parent) = parent {
                kernel.close(parent);
            }
            parent = Some(next?);
        }
        parent.ok_or(Errno::NOENT)
    }

    fn resolve(&self) -> ResolveFlags {
        if self.no_links { RESOLVE_IN_ROOT | ResolveFlags::NO_SYMLINKS } else { RESOLVE_IN_ROOT }
    }
}

/// The type with which the last component of a path is created if it is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// An empty file, for a bind mount of a file.
    File,
    /// A directory.
    Directory,
}

/// Creates a file or directory, and opens it.
pub(super) fn make<K: Kernel>(kernel: &K, parent: Fd, name: &CStr, kind: TargetKind) -> Result<Fd, Errno> {
    match kind {
        TargetKind::File => make_file(kernel, parent, name),
        TargetKind::Directory => make_directory(kernel, parent, name),
    }
}

fn make_directory<K: Kernel>(kernel: &K, parent: Fd, name: &CStr) -> Result<Fd, Errno> {
    match kernel.mkdir(parent, name, Mode::from_raw_mode(0o755)) {
        // Another process created it, or it is a dangling link, which the next open refuses.
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    kernel.open(parent, name, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)
}

fn make_file<K: Kernel>(kernel: &K, parent: Fd, name: &CStr) -> Result<Fd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    kernel.open(
        parent,
        name,
        flags,
        Mode::from_raw_mode(0o644),
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
    )
}

pub(crate) const DIRECTORY_FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
