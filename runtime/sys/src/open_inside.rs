//! Paths below an untrusted root.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

/// Opens a path below a root as a process with that root would find it: no link and no `..` leads out.
pub fn open_inside(root: impl AsFd, path: &CStr, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    // If a rename on the host happens while a `..` is resolved, the kernel cannot decide and returns
    // (openat2(2)).
    for _ in 0..64 {
        match openat2(&root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(Errno::AGAIN) => {}
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}
