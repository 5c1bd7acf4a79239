//! Files of the kernel's that take a line in one call.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Writes one line to a file of the kernel's in one call, as it wants it.
pub(super) fn write(path: &Path, text: &str) -> std::result::Result<(), Errno> {
    write_line(&open(path)?, text)
}

/// Writes a line in one call, and again where a signal came in between.
///
/// The kernel looks for signals before it changes a limit, and a thread may have one pending that another one has
/// blocked: the end of a child.
pub(super) fn write_line(file: &OwnedFd, line: &str) -> std::result::Result<(), Errno> {
    rustix::io::retry_on_intr(|| rustix::io::write(file, line.as_bytes())).map(drop)
}

pub(super) fn open(path: &Path) -> std::result::Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
}
