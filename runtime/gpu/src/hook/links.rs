//! Names inside a container's root: folders, links and files that are made there, and never lead out of it.

use std::ffi::{CString, OsStr};
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use jobc_sys::error::{Error, Result};
use jobc_sys::inside::open_inside;
use jobc_sys::write_atomic::{AtomicFile, Durability};

/// Makes links, each in place of what stands there; a file that is mounted there stays.
pub(super) fn make(root: &OwnedFd, links: &[(PathBuf, PathBuf)]) -> Result<()> {
    for (path, target) in links {
        make_one(root, path, target).map_err(|errno| {
            Error::machine(format!("make the link `{}` in the container", path.display()), errno)
        })?;
    }
    Ok(())
}

fn make_one(root: &OwnedFd, path: &Path, target: &Path) -> rustix::io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::INVAL) };
    let folder = folder(root, parent)?;
    if rustix::fs::readlinkat(&folder, name, Vec::new()).is_ok_and(|there| there.as_bytes() == bytes(target))
    {
        return Ok(());
    }
    match rustix::fs::unlinkat(&folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        // A library of the driver that is bound there under this very name.
        Err(Errno::BUSY) => return Ok(()),
        Err(errno) => return Err(errno),
    }
    rustix::fs::symlinkat(target, &folder, name)
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// Opens a folder inside the root, and makes it where it is not there.
pub(super) fn folder(root: impl AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    match open_inside(&root, &c_string(bytes(path))?, flags) {
        Err(Errno::NOENT) => {}
        other => return other,
    }
    let mut here = PathBuf::new();
    let mut folder = open_inside(&root, c".", flags)?;
    for component in path.components() {
        let Component::Normal(name) = component else { continue };
        here.push(name);
        folder = match open_inside(&root, &c_string(bytes(&here))?, flags) {
            Err(Errno::NOENT) => {
                match rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno),
                }
                open_inside(&root, &c_string(bytes(&here))?, flags)?
            }
            other => other?,
        };
    }
    Ok(folder)
}

/// Writes a file whole, in place of what stands there under that name.
pub(super) fn replace(folder: &OwnedFd, name: &str, content: &[u8]) -> rustix::io::Result<()> {
    let write = || {
        let mut file = AtomicFile::create_in(folder.as_fd(), name, 0o644)?;
        file.write_all(content)?;
        // The cache is made again at each start.
        file.commit(Durability::Rename).map(drop)
    };
    write().map_err(|error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// The names in a folder inside the root; none where it is not there.
pub(super) fn names(root: impl AsFd, path: &Path) -> Vec<String> {
    let opened = c_string(bytes(path))
        .and_then(|path| open_inside(root, &path, OFlags::RDONLY | OFlags::DIRECTORY))
        .and_then(|folder| rustix::fs::Dir::read_from(&folder));
    let entries = opened.into_iter().flatten().flatten();
    let names = entries
        .filter_map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_str().map(str::to_owned));
    names.filter(|name| name != "." && name != "..").collect()
}

pub(super) fn c_string(bytes: &[u8]) -> rustix::io::Result<CString> {
    // openat2 resolves an empty path to nothing; the root itself is `.`.
    let bytes = if bytes.is_empty() { b"." } else { bytes };
    CString::new(bytes).map_err(|_| Errno::INVAL)
}
