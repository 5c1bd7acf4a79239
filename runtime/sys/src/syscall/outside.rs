//! A process that stays in the time namespace that this one leaves, and tells there when a process began.
//!
//! The kernel shows a process's start by the clock of who reads it (time_namespaces(7)), and records of containers are
//! read in the namespace that was left.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

use linux_raw_sys::general::{SIGCHLD, clone_args};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType};
use rustix::process::{Pid, WaitOptions};

use super::raw;
use crate::process::Process;

/// The process outside; it ends when this is dropped, or this process is gone.
#[derive(Debug)]
pub struct Outside {
    pid: Option<Pid>,
    channel: OwnedFd,
}

impl Outside {
    /// Makes it; this process must have one thread, as to join a time namespace.
    ///
    /// # Errors
    ///
    /// The kernel makes no process or no socket.
    pub fn fork() -> Result<Self, Errno> {
        let (channel, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let ends = [channel.as_raw_fd(), theirs.as_raw_fd()];
        // SAFETY: plain numbers.
        let mut arguments: clone_args = unsafe { std::mem::zeroed() };
        arguments.exit_signal = SIGCHLD.into();
        let data = ends.as_ptr().cast_mut().cast::<c_void>();
        // SAFETY: without CLONE_VM the new process has copies of the stack and of `ends`.
        let pid = unsafe { raw::clone3(&raw const arguments, answer, data) }?;
        Ok(Self { pid: Pid::from_raw(pid.cast_signed()), channel })
    }

    /// A child of this process as it is seen outside; `None` if it is gone.
    pub fn identify(&self, pid: u32) -> Option<Process> {
        rustix::io::write(&self.channel, &pid.to_ne_bytes()).ok()?;
        let mut told = [0; size_of::<u64>()];
        let length = rustix::io::retry_on_intr(|| rustix::io::read(&self.channel, &mut told)).ok()?;
        (length == told.len()).then(|| Process { pid, start_time: u64::from_ne_bytes(told) })
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.channel, Shutdown::Both);
        let _ = rustix::io::retry_on_intr(|| rustix::process::waitpid(self.pid, WaitOptions::empty()));
    }
}

/// In the process outside: answers one question.
extern "C" fn answer(data: *mut c_void) -> ! {
    // SAFETY: the copies of what `fork` named, which are this process's own.
    let (theirs, channel) = unsafe {
        let [theirs, channel] = *data.cast::<[RawFd; 2]>();
        (OwnedFd::from_raw_fd(theirs), OwnedFd::from_raw_fd(channel))
    };
    drop(theirs);
    let mut asked = [0; size_of::<u32>()];
    let length = rustix::io::retry_on_intr(|| rustix::io::read(&channel, &mut asked));
    if length == Ok(asked.len())
        && let Some(process) = Process::of_child(u32::from_ne_bytes(asked))
    {
        let _ = rustix::io::write(&channel, &process.start_time.to_ne_bytes());
    }
    raw::exit(0)
}
