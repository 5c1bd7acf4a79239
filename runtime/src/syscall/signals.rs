//! System calls about signals that the system-call crate lacks: signalfd(2), sigprocmask(2), pidfd_send_signal(2).
//!
//! A set of signals is a word with bit `n - 1` for signal `n`, as the kernel has it.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use linux_raw_sys::general;
use rustix::io::Errno;

use super::raw::syscall;

/// The kernel's size of a set of signals, in bytes.
const SET: usize = size_of::<u64>();

/// The handler that stands for `SIG_IGN`.
const IGNORED: usize = 1;

/// Blocks these signals besides those that are blocked, in this thread; returns what was blocked before.
pub(crate) fn block(set: u64) -> Result<u64, Errno> {
    change_mask(general::SIG_BLOCK, set)
}

/// Blocks exactly these signals in this thread.
pub(crate) fn set_blocked(set: u64) -> Result<(), Errno> {
    change_mask(general::SIG_SETMASK, set).map(drop)
}

fn change_mask(how: u32, set: u64) -> Result<u64, Errno> {
    let mut before = 0_u64;
    let (new, old) = (&raw const set as usize, &raw mut before as usize);
    // SAFETY: both point to eight bytes that live until the call is over.
    unsafe { syscall(general::__NR_rt_sigprocmask, [how as usize, new, old, SET, 0, 0]) }.map(|_| before)
}

/// A descriptor from which these signals, once blocked, are read; reading never waits.
pub(crate) fn signalfd(set: u64) -> Result<OwnedFd, Errno> {
    // SFD_CLOEXEC and SFD_NONBLOCK are these bits.
    let flags = (general::O_CLOEXEC | general::O_NONBLOCK) as usize;
    let arguments = [usize::MAX, &raw const set as usize, SET, flags, 0, 0];
    // SAFETY: -1 asks for a new descriptor; the set lives until the call is over.
    let fd = unsafe { syscall(general::__NR_signalfd4, arguments) }?;
    let fd = i32::try_from(fd).map_err(|_| Errno::BADF)?;
    // SAFETY: the kernel has just made it, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sends a signal, by any number that the kernel knows, to a process by its descriptor.
pub(crate) fn send(pidfd: BorrowedFd<'_>, number: i32) -> Result<(), Errno> {
    let (fd, number) = (pidfd.as_raw_fd().unsigned_abs() as usize, number.unsigned_abs() as usize);
    // SAFETY: no pointers: without a siginfo the kernel makes one as kill(2) does.
    unsafe { syscall(general::__NR_pidfd_send_signal, [fd, number, 0, 0, 0, 0]) }.map(drop)
}

/// Whether this process ignores a signal, as one started by nohup(1) does.
pub(crate) fn is_ignored(number: i32) -> bool {
    let mut action = [0_usize; 4];
    let arguments = [number.unsigned_abs() as usize, 0, &raw mut action as usize, SET, 0, 0];
    // SAFETY: nothing is set; the kernel writes its sigaction, four words on x86_64 and fewer on aarch64.
    let asked = unsafe { syscall(general::__NR_rt_sigaction, arguments) };
    asked.is_ok() && action[0] == IGNORED
}
