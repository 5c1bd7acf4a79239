//! Syscalls about signals that the system-call crate lacks: signalfd(2), sigprocmask(2), pidfd_send_signal(2).
//!
//! A set of signals is a word with bit `n - 1` for signal `n`, as in the kernel.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use linux_raw_sys::general;
use rustix::io::Errno;

use super::raw::syscall;

/// The kernel's size of a set of signals, in bytes.
const SIGSET_SIZE: usize = size_of::<u64>();

/// The handler for `SIG_IGN`.
const SIG_IGN: usize = 1;

/// Also blocks these signals in this thread; returns the previous mask.
pub fn block(set: u64) -> Result<u64, Errno> {
    change_mask(general::SIG_BLOCK, set)
}

/// Blocks exactly these signals in this thread.
pub fn set_blocked(set: u64) -> Result<(), Errno> {
    change_mask(general::SIG_SETMASK, set).map(drop)
}

fn change_mask(how: u32, set: u64) -> Result<u64, Errno> {
    let mut before = 0_u64;
    let (new, old) = (&raw const set as usize, &raw mut before as usize);
    // SAFETY: both point to eight bytes that live until the call is over.
    unsafe { syscall(general::__NR_rt_sigprocmask, [how as usize, new, old, SIGSET_SIZE, 0, 0]) }
        .map(|_| before)
}

/// A file descriptor from which these signals, once blocked, are read; reading never waits.
pub fn signalfd(set: u64) -> Result<OwnedFd, Errno> {
    // SFD_CLOEXEC and SFD_NONBLOCK are these bits.
    let flags = (general::O_CLOEXEC | general::O_NONBLOCK) as usize;
    let arguments = [usize::MAX, &raw const set as usize, SIGSET_SIZE, flags, 0, 0];
    // SAFETY: -1 asks for a new file descriptor; the set lives until the call is over.
    let fd = unsafe { syscall(general::__NR_signalfd4, arguments) }?;
    let fd = i32::try_from(fd).map_err(|_| Errno::BADF)?;
    // SAFETY: the kernel has just created it, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sends a signal, by any number that the kernel knows, to a process by its file descriptor.
pub fn send(pidfd: BorrowedFd<'_>, number: i32) -> Result<(), Errno> {
    let (fd, number) = (pidfd.as_raw_fd().unsigned_abs() as usize, number.unsigned_abs() as usize);
    // SAFETY: no pointers: without a siginfo the kernel makes one as kill(2) does.
    unsafe { syscall(general::__NR_pidfd_send_signal, [fd, number, 0, 0, 0, 0]) }.map(drop)
}

/// Ignores SIGPIPE: a write to a closed pipe returns an error, as in every program of the standard library's.
pub fn ignore_broken_pipes() -> Result<(), Errno> {
    let action = [SIG_IGN, 0, 0, 0];
    let arguments = [general::SIGPIPE as usize, &raw const action as usize, 0, SIGSET_SIZE, 0, 0];
    // SAFETY: a sigaction of the kernel's, which is at most four words long and holds no pointer but the handler's.
    unsafe { syscall(general::__NR_rt_sigaction, arguments) }.map(drop)
}
