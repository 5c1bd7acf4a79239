//! Directories of a tree that files are put into, with what dangling links of the image name.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::super::source_listing::{c_path, with_path};
use super::TreeWriter;
use jobc_schema::permissions::Permissions;
use jobc_sys::open_inside::open_inside;

/// Maximum number of links that are followed, as in the kernel (path_resolution(7)).
const MAX_LINKS: usize = 40;

impl TreeWriter<'_> {
    /// Creates a directory and its missing parents, also behind dangling links; returns its path without a trailing slash.
    pub(in crate::build) fn create_directories(&mut self, path: &Path) -> io::Result<PathBuf> {
        let names = path.components().filter(|part| matches!(part, Component::Normal(_)));
        let mut way: PathBuf = names.collect();
        for _ in 0..MAX_LINKS {
            match self.create_up_to_a_link(&way)? {
                None => return Ok(way),
                Some(behind) => way = behind,
            }
        }
        Err(with_path(Errno::LOOP.into(), &Path::new("/").join(path)))
    }

    /// The same up to the first dangling link, if there is one; then the path through its target, below the root.
    fn create_up_to_a_link(&mut self, way: &Path) -> io::Result<Option<PathBuf>> {
        let mut so_far = PathBuf::new();
        let mut parts = way.components();
        while let Some(part) = parts.next() {
            let before = so_far.clone();
            so_far.push(part);
            let whole = c_path(&so_far)?;
            match open_inside(self.root, &whole, OFlags::PATH | OFlags::DIRECTORY) {
                Ok(_) => {}
                Err(Errno::NOENT) => {
                    let parent = open_inside(self.root, &c_path(&before)?, OFlags::PATH | OFlags::DIRECTORY)?;
                    let name = CString::new(part.as_os_str().as_bytes())?;
                    match rustix::fs::mkdirat(&parent, &name, Mode::from_raw_mode(0o755)) {
                        Err(Errno::EXIST) => {
                            let target = rustix::fs::readlinkat(&parent, &name, Vec::new())?;
                            let target =
                                before.join(OsStr::from_bytes(target.to_bytes())).join(parts.as_path());
                            return Ok(Some(target.strip_prefix("/").map(Path::to_owned).unwrap_or(target)));
                        }
                        other => other?,
                    }
                    let made = open_inside(&parent, &name, OFlags::RDONLY | OFlags::DIRECTORY)?;
                    let (uid, gid) = self.file_attributes.owner.unwrap_or_default();
                    self.chown(&made, uid, gid)?;
                    // Whatever the umask is.
                    rustix::fs::fchmod(&made, Mode::from_raw_mode(0o755))?;
                }
                Err(Errno::NOTDIR) => {
                    let error = io::Error::new(io::ErrorKind::NotADirectory, "it is not a directory");
                    return Err(with_path(error, &Path::new("/").join(&so_far)));
                }
                Err(errno) => return Err(with_path(errno.into(), &Path::new("/").join(&so_far))),
            }
        }
        Ok(None)
    }

    /// The same, and gives it its bits.
    pub(in crate::build) fn create_directory_with_mode(
        &mut self,
        path: &Path,
        mode: Option<&Permissions>,
    ) -> io::Result<()> {
        let path = self.create_directories(path)?;
        if let Some(mode) = mode {
            let directory = open_inside(self.root, &c_path(&path)?, OFlags::RDONLY | OFlags::DIRECTORY)?;
            rustix::fs::fchmod(&directory, Mode::from_raw_mode(mode.apply(0o755, true)))?;
        }
        Ok(())
    }
}
