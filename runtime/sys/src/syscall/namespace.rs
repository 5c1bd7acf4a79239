//! The kernel's information about a namespace file (ioctl_nsfs(2)).
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd as _};

use linux_raw_sys::general::__NR_ioctl;
use rustix::io::Errno;

use super::{of_fd, raw};

/// The `CLONE_NEW*` bit of the kind of a namespace that is open.
pub fn namespace_flag(namespace: impl AsFd) -> Result<u32, Errno> {
    /// `_IO(0xb7, 3)` of linux/nsfs.h.
    const NS_GET_NSTYPE: usize = 0xb703;
    let arguments = [of_fd(namespace.as_fd().as_raw_fd()), NS_GET_NSTYPE, 0, 0, 0, 0];
    // SAFETY: takes a file descriptor and a number, and no pointer.
    let flag = unsafe { raw::syscall(__NR_ioctl, arguments) }?;
    u32::try_from(flag).map_err(|_| Errno::INVAL)
}
