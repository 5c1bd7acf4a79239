//! Names inside a container's root: directories, links and files that are made there, and never lead out of it.

use std::ffi::{CString, OsStr};
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use jobc_sys::error::{Error, Result};
use jobc_sys::open_inside::open_inside;
use jobc_sys::write_atomic::{AtomicFile, Durability};

/// Creates links, each replacing an existing entry; a file that is a mount point stays.
pub(super) fn create_links(root: &OwnedFd, links: &[(PathBuf, PathBuf)]) -> Result<()> {
    for (path, target) in links {
        create_link(root, path, target).map_err(|errno| {
            Error::system(format!("create the link `{}` in the container", path.display()), errno)
        })?;
    }
    Ok(())
}

fn create_link(root: &OwnedFd, path: &Path, target: &Path) -> rustix::io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::INVAL) };
    let directory = open_directory(root, parent)?;
    if rustix::fs::readlinkat(&directory, name, Vec::new())
        .is_ok_and(|there| there.as_bytes() == bytes(target))
    {
        return Ok(());
    }
    match rustix::fs::unlinkat(&directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        // A library of the driver that is bound there under this very name.
        Err(Errno::BUSY) => return Ok(()),
        Err(errno) => return Err(errno),
    }
    rustix::fs::symlinkat(target, &directory, name)
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// Opens a directory inside the root, and makes it if it does not exist.
pub(super) fn open_directory(root: impl AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    match open_inside(&root, &c_string(bytes(path))?, flags) {
        Err(Errno::NOENT) => {}
        other => return other,
    }
    let mut here = PathBuf::new();
    let mut directory = open_inside(&root, c".", flags)?;
    for component in path.components() {
        let Component::Normal(name) = component else { continue };
        here.push(name);
        directory = match open_inside(&root, &c_string(bytes(&here))?, flags) {
            Err(Errno::NOENT) => {
                match rustix::fs::mkdirat(&directory, name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno),
                }
                open_inside(&root, &c_string(bytes(&here))?, flags)?
            }
            other => other?,
        };
    }
    Ok(directory)
}

/// Writes a file atomically, replacing the entry with that name.
pub(super) fn replace_file(directory: &OwnedFd, name: &str, content: &[u8]) -> rustix::io::Result<()> {
    let write = || {
        let mut file = AtomicFile::create_in(directory.as_fd(), name, 0o644)?;
        file.write_all(content)?;
        // The cache is written at each start.
        file.commit(Durability::Rename).map(drop)
    };
    write().map_err(|error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// The names in a directory inside the root; none if it does not exist.
pub(super) fn list_names(root: impl AsFd, path: &Path) -> Vec<String> {
    let opened = c_string(bytes(path))
        .and_then(|path| open_inside(root, &path, OFlags::RDONLY | OFlags::DIRECTORY))
        .and_then(|directory| rustix::fs::Dir::read_from(&directory));
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
