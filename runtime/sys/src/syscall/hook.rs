//! A program that the container's first process starts inside its namespaces, and waits for: a hook.
#![allow(unsafe_code)]

use std::ffi::{CString, c_void};
use std::os::fd::{AsFd as _, AsRawFd, FromRawFd as _, OwnedFd};

use linux_raw_sys::general::{self, clone_args};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};

use super::linux::Linux;
use super::raw::exit;
use super::stack::Stack;
use super::{Fd, Kernel as _, of_fd, raw};
use crate::c_list::CList;

/// A hook, ready to be executed without allocating.
#[derive(Debug)]
pub struct HookProgram {
    /// The program.
    pub path: CString,
    /// Its arguments.
    pub arguments: CList,
    /// Its whole environment.
    pub environment: CList,
    /// What becomes its standard input: the container's state, in a file in memory.
    pub state: OwnedFd,
    /// What is executed instead of `path`, where that is a file of the image's.
    pub image: Option<OwnedFd>,
    /// When it is killed, in milliseconds.
    pub timeout_ms: i32,
    /// The stack that it begins on.
    pub stack: Stack,
}

impl HookProgram {
    /// What a signal's number is added to in the place of an exit code, none of which is as large.
    pub const SIGNAL_BASE: u32 = 256;
}

/// Executes a hook in a process of its own and waits for its end; called in the container's first process.
pub fn run_hook(hook: &HookProgram) -> std::result::Result<u32, Errno> {
    let mut pidfd: i32 = -1;
    let flags = general::CLONE_VM | general::CLONE_PIDFD;
    let arguments = clone_args {
        flags: u64::from(flags) | general::CLONE_CLEAR_SIGHAND,
        pidfd: std::ptr::from_mut(&mut pidfd) as u64,
        child_tid: 0,
        parent_tid: 0,
        exit_signal: general::SIGCHLD.into(),
        stack: hook.stack.base as u64,
        stack_size: hook.stack.size as u64,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: 0,
    };
    // SAFETY: the hook, its stack with it, stays until this process has left the memory; it waits for the hook here.
    unsafe { raw::clone3(&raw const arguments, become_hook, std::ptr::from_ref(hook).cast_mut().cast()) }?;
    // The kernel wrote the number behind the compiler's back.
    // SAFETY: a valid reference to an i32 on this stack.
    let pidfd = unsafe { std::ptr::from_ref(&pidfd).read_volatile() };
    // SAFETY: the kernel has just made this file descriptor for us.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    let wait = Timespec {
        tv_sec: i64::from(hook.timeout_ms / 1000),
        tv_nsec: i64::from(hook.timeout_ms % 1000) * 1_000_000,
    };
    let ready = rustix::io::retry_on_intr(|| poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&wait)));
    let in_time = ready != Ok(0);
    if !in_time {
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
    }
    let status = rustix::io::retry_on_intr(|| waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED))?;
    if !in_time {
        return Err(Errno::TIMEDOUT);
    }
    Ok(status.map_or(125, |status| match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code.unsigned_abs(),
        (None, signal) => HookProgram::SIGNAL_BASE + signal.unwrap_or_default().unsigned_abs(),
    }))
}

/// In a hook's process: takes the state as standard input and becomes the hook.
extern "C" fn become_hook(data: *mut c_void) -> ! {
    // SAFETY: `data` is the hook that `run_hook` was given; who runs it waits.
    let hook = unsafe { &*data.cast::<HookProgram>() };
    let ready = Linux
        .dup_to(hook.state.as_raw_fd(), 0)
        .and_then(|()| close_other_fds(hook))
        .and_then(|()| Linux.default_signals(1 << (general::SIGPIPE - 1)));
    if ready.is_ok() {
        let (arguments, environment) = (hook.arguments.address(), hook.environment.address());
        let (number, arguments) = match hook.image.as_ref().map(AsRawFd::as_raw_fd) {
            Some(image) => {
                let flags = general::AT_EMPTY_PATH as usize;
                let path = c"".as_ptr() as usize;
                (general::__NR_execveat, [of_fd(image), path, arguments, environment, flags, 0])
            }
            None => (general::__NR_execve, [hook.path.as_ptr() as usize, arguments, environment, 0, 0, 0]),
        };
        // SAFETY: a C string and two arrays that end with a null pointer, all of the hook.
        let _ = unsafe { raw::syscall(number, arguments) };
    }
    exit(127)
}

/// Closes every file descriptor from 3 on, but for the two that an image needs; it closes them by its own `execve`.
fn close_other_fds(hook: &HookProgram) -> std::result::Result<(), Errno> {
    let Some(image) = hook.image.as_ref().map(AsRawFd::as_raw_fd) else {
        return Linux.close_range(3, Fd::MAX);
    };
    Linux.keep_on_exec(hook.state.as_raw_fd())?;
    let (low, high) = (hook.state.as_raw_fd().min(image), hook.state.as_raw_fd().max(image));
    for (first, last) in [(3, low - 1), (low + 1, high - 1), (high + 1, Fd::MAX)] {
        if first <= last {
            Linux.close_range(first, last)?;
        }
    }
    Ok(())
}
