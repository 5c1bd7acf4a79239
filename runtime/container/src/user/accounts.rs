//! The container's /etc/passwd and /etc/group.

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::AsRawFd as _;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::root::layers::Layers;
use jobc_sys::accounts;
use jobc_sys::error::{Error, Kind, Result, describe, describe_io};

/// Where users are named, below the root.
pub(super) const PASSWD: &CStr = c"etc/passwd";

/// Where groups are.
pub(super) const GROUP: &CStr = c"etc/group";

/// Reads one of them below the root, of which nothing is trusted: links stay inside, and only a regular file is
/// opened at all, for opening a fifo may block and opening a device may do anything. One that does not exist is empty.
pub(super) fn read(root: &Layers, path: &CStr) -> Result<String> {
    let shown = path.to_string_lossy();
    let wrong = |because: String| {
        Error::new(Kind::System, format!("cannot read the container's /{shown}: {because}"))
    };
    let found = match root.find(path, OFlags::PATH) {
        Ok(found) => File::from(found),
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(String::new()),
        Err(errno) => return Err(wrong(describe(errno))),
    };
    let kind = found.metadata().map_err(|error| wrong(describe_io(&error)))?;
    if !kind.is_file() {
        return Err(wrong("it is not a regular file".to_owned()));
    }
    // The file that was checked, even if its path now names another.
    let file = File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))
        .map_err(|error| wrong(describe_io(&error)))?;
    accounts::read(file).map_err(|error| wrong(describe_io(&error)))
}
