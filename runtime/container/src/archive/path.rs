//! The place of an archive entry: the directory it is created in, as a file descriptor, and its last name.
//!
//! The directory is resolved as a process with that root would see it: links stay inside the root, and `..` and
//! absolute targets stop at it. No other process sees the tree before it is complete, so it does not change in between.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::invalid::invalid;
use jobc_sys::open_inside::open_inside;

/// The root, and the directory of the last entry: most entries are in the same directory as the one before.
pub(super) struct PathResolver {
    root: Rc<OwnedFd>,
    last: Option<(Vec<u8>, Rc<OwnedFd>)>,
}

/// Parent directories created for an entry, and whether each replaced a whiteout.
pub(super) type CreatedDirectories = Vec<(Vec<u8>, bool)>;

impl PathResolver {
    pub(super) fn new(root: OwnedFd) -> Self {
        Self { root: Rc::new(root), last: None }
    }

    pub(super) fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// The remembered directory may have been replaced.
    pub(super) fn clear_cache(&mut self) {
        self.last = None;
    }

    /// The parent directory of an entry, made where it is missing, and the entry's last name.
    pub(super) fn parent_of(
        &mut self,
        path: &[u8],
        made: &mut CreatedDirectories,
    ) -> io::Result<(Rc<OwnedFd>, CString)> {
        let names = components(path)?;
        let Some((name, directories)) = names.split_last() else { return Err(invalid("the root itself")) };
        let name = c_string(name)?;
        let key = directories.join(&b'/');
        if let Some((last, directory)) = &self.last
            && *last == key
        {
            return Ok((directory.clone(), name));
        }
        let whole = c_string(if key.is_empty() { b"." } else { &key })?;
        let directory = match open_inside(&self.root, &whole, OFlags::PATH | OFlags::DIRECTORY) {
            Ok(directory) => Rc::new(directory),
            Err(Errno::NOENT | Errno::NOTDIR) => self.create_directories(directories, made)?,
            Err(errno) => return Err(errno.into()),
        };
        self.last = Some((key, directory.clone()));
        Ok((directory, name))
    }

    /// Creates the missing directories of a path, one after the other.
    fn create_directories(
        &self,
        directories: &[&[u8]],
        made: &mut CreatedDirectories,
    ) -> io::Result<Rc<OwnedFd>> {
        let mut parent = self.root.clone();
        for depth in 1..=directories.len() {
            let path = directories[..depth].join(&b'/');
            let whole = c_string(&path)?;
            let open = || open_inside(&self.root, &whole, OFlags::PATH | OFlags::DIRECTORY);
            let name = c_string(directories[depth - 1])?;
            parent = Rc::new(match open() {
                Err(Errno::NOENT) => {
                    match rustix::fs::mkdirat(&parent, &name, Mode::RWXU) {
                        Err(Errno::EXIST) => {
                            return Err(invalid("below a dangling link"));
                        }
                        other => other?,
                    }
                    made.push((path.clone(), false));
                    open()?
                }
                Err(Errno::NOTDIR)
                    if stat_entry(&parent, &name)?.is_some_and(|there| is_whiteout(&there)) =>
                {
                    rustix::fs::unlinkat(&parent, &name, AtFlags::empty())?;
                    rustix::fs::mkdirat(&parent, &name, Mode::RWXU)?;
                    made.push((path.clone(), true));
                    open()?
                }
                other => other?,
            });
        }
        Ok(parent)
    }
}

/// The entry of a name, without following links.
pub(super) fn stat_entry(parent: &OwnedFd, name: &CString) -> io::Result<Option<Stat>> {
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(None),
        other => Ok(Some(other?)),
    }
}

/// Whether this is what an overlay takes for a whiteout: the character device 0:0.
pub(super) fn is_whiteout(stat: &Stat) -> bool {
    let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
    kind == rustix::fs::FileType::CharacterDevice && stat.st_rdev == 0
}

/// The names a path consists of. An absolute path begins at the root; one with `..` is refused, as tar(1) refuses it.
pub(super) fn components(path: &[u8]) -> io::Result<Vec<&[u8]>> {
    let names: Vec<&[u8]> =
        path.split(|&byte| byte == b'/').filter(|name| !matches!(*name, b"" | b".")).collect();
    if names.contains(&&b".."[..]) {
        return Err(invalid("a path with `..`"));
    }
    Ok(names)
}

pub(super) fn c_string(bytes: &[u8]) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| invalid("a path with a NUL byte"))
}
