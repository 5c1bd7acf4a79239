//! Copies the image's files at a path into the new tmpfs that is about to cover it (`tmpcopyup`).
//!
//! The copying runs in the new process, so it allocates nothing: a directory's names are read into a buffer on the
//! stack, and directories within directories by recursion to a fixed depth. Links are copied, never followed.

use std::ffi::CStr;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use jobc_sys::syscall::{Fd, FileStatus, Kernel};

/// Maximum depth of nested directories.
const MAX_DEPTH: u32 = 64;

/// How many bytes of names are read at a time.
const NAME_BUFFER_SIZE: usize = 1024;

const ONE_STEP: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// Copies the directory that `from` refers to into the empty file system `to`, with its own mode and owner.
///
/// A target that is not a directory has nothing to copy.
pub(super) fn copy_directory<K: Kernel>(kernel: &K, from: Fd, to: Fd) -> Result<(), Errno> {
    let status = kernel.stat(from)?;
    if !status.is_directory() {
        return Ok(());
    }
    copy_entries(kernel, from, to, MAX_DEPTH)?;
    copy_owner(kernel, to, c".", status)
}

fn copy_entries<K: Kernel>(kernel: &K, from: Fd, to: Fd, depth: u32) -> Result<(), Errno> {
    let below = depth.checked_sub(1).ok_or(Errno::NAMETOOLONG)?;
    let list = kernel.open(from, c".", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty(), ONE_STEP)?;
    let mut buffer = [0_u8; NAME_BUFFER_SIZE];
    let result = loop {
        let length = match kernel.read_names(list, &mut buffer) {
            Ok(0) => break Ok(()),
            Ok(length) => length,
            Err(errno) => break Err(errno),
        };
        if let Err(errno) =
            names(&buffer[..length]).try_for_each(|name| copy_entry(kernel, list, to, name, below))
        {
            break Err(errno);
        }
    };
    kernel.close(list);
    result
}

/// The names in a buffer of getdents64(2): `struct linux_dirent64` with its length at 16 and its name from 19 on.
fn names(mut buffer: &[u8]) -> impl Iterator<Item = &CStr> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes([*buffer.get(16)?, *buffer.get(17)?]));
        let (record, rest) = buffer.split_at_checked(length.max(1))?;
        buffer = rest;
        CStr::from_bytes_until_nul(record.get(19..)?).ok()
    })
    .filter(|name| !matches!(name.to_bytes(), b"." | b".."))
}

fn copy_entry<K: Kernel>(kernel: &K, from: Fd, to: Fd, name: &CStr, depth: u32) -> Result<(), Errno> {
    let source =
        kernel.open(from, name, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty(), ResolveFlags::BENEATH)?;
    let status = kernel.stat(source)?;
    kernel.close(source);
    let mode = Mode::from_raw_mode(status.mode & 0o7777);
    match status.mode & FileStatus::TYPE {
        0o040_000 => {
            kernel.mkdir(to, name, mode)?;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            let inner = kernel.open(from, name, flags, Mode::empty(), ONE_STEP)?;
            let copy = kernel.open(to, name, flags, Mode::empty(), ONE_STEP)?;
            let result = copy_entries(kernel, inner, copy, depth);
            kernel.close(copy);
            kernel.close(inner);
            result?;
        }
        0o100_000 => {
            let inner =
                kernel.open(from, name, OFlags::RDONLY | OFlags::NOFOLLOW, Mode::empty(), ONE_STEP)?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            let copy = kernel.open(to, name, flags, mode, ONE_STEP)?;
            let result = kernel.copy_file(inner, copy);
            kernel.close(copy);
            kernel.close(inner);
            result?;
        }
        0o120_000 => {
            let mut target = [0_u8; 1024];
            let length = kernel.read_link(from, name, &mut target[..1023])?;
            if length == 1023 {
                return Err(Errno::NAMETOOLONG);
            }
            let target = CStr::from_bytes_until_nul(&target).map_err(|_| Errno::INVAL)?;
            kernel.symlink(target, to, name)?;
            return if (status.uid, status.gid) == (0, 0) {
                Ok(())
            } else {
                kernel.chown(to, name, status.uid, status.gid)
            };
        }
        _ => kernel.mknod(to, name, status.mode, status.device)?,
    }
    copy_owner(kernel, to, name, status)
}

/// Sets the owner and then the mode of a copy to those of the original; a change of the owner clears mode bits.
fn copy_owner<K: Kernel>(kernel: &K, directory: Fd, name: &CStr, status: FileStatus) -> Result<(), Errno> {
    if (status.uid, status.gid) != (0, 0) {
        kernel.chown(directory, name, status.uid, status.gid)?;
    }
    kernel.chmod(directory, name, Mode::from_raw_mode(status.mode & 0o7777))
}
