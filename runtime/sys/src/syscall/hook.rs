//! A program that the container's first process starts inside its namespaces, and waits for: a hook.
#![allow(unsafe_code)]

use std::ffi::{CString, c_void};
use std::os::fd::{AsFd as _, AsRawFd, FromRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use linux_raw_sys::general::{self, clone_args};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use rustix::thread::futex;

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
    /// Its standard input: the container's state, in a file in memory.
    pub state: OwnedFd,
    /// The file to execute instead of `path`, if that is a file of the image.
    pub image: Option<OwnedFd>,
    /// When it is killed, in milliseconds.
    pub timeout_ms: i32,
    /// The stack that it begins on.
    pub stack: Stack,
    /// Whether a process that has not executed the hook yet shares this memory.
    pub occupied: Occupied,
}

impl HookProgram {
    /// The base to which a signal number is added; no exit code is as large.
    pub const SIGNAL_BASE: u32 = 256;

    /// Waits until no process is in this memory to execute the hook. Who makes one may be killed before that.
    pub fn wait_until_left(&self) {
        self.occupied.wait();
    }
}

/// The number of a process that shares this memory, 0 without one.
///
/// The kernel writes it before the process runs (`CLONE_PARENT_SETTID`), and writes 0 and wakes the waiter when the
/// process executes a program or ends (`CLONE_CHILD_CLEARTID`; clone(2)), whatever becomes of the process's maker.
#[derive(Debug, Default)]
pub struct Occupied(AtomicU32);

impl Occupied {
    /// The process, as its maker sees its number.
    pub fn process(&self) -> Option<u32> {
        Some(self.0.load(Ordering::Acquire)).filter(|process| *process != 0)
    }

    fn wait(&self) {
        while let Some(process) = self.process() {
            // Not the private kind: the kernel wakes by the shared one (set_tid_address(2)).
            let _ = futex::wait(&self.0, futex::Flags::empty(), process, None);
        }
    }
}

/// Executes a hook in a separate process and waits for its end; called in the container's first process.
pub fn run_hook(hook: &HookProgram) -> std::result::Result<u32, Errno> {
    let mut pidfd: i32 = -1;
    let flags = general::CLONE_VM
        | general::CLONE_PIDFD
        | general::CLONE_PARENT_SETTID
        | general::CLONE_CHILD_CLEARTID;
    let occupied = std::ptr::from_ref(&hook.occupied.0) as u64;
    let arguments = clone_args {
        flags: u64::from(flags) | general::CLONE_CLEAR_SIGHAND,
        pidfd: std::ptr::from_mut(&mut pidfd) as u64,
        child_tid: occupied,
        parent_tid: occupied,
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

/// Closes every file descriptor from 3 on, except the two that an image needs; its `execve` closes those.
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, kill_process, pidfd_open};

    use super::*;

    /// In the container's first process.
    extern "C" fn first_process(data: *mut c_void) -> ! {
        // SAFETY: the test keeps the hook until this process and the hook's have left the memory.
        let _ = run_hook(unsafe { &*data.cast::<HookProgram>() });
        exit(0)
    }

    /// Kills the maker of a hook's process while that is still in this memory; whether it was.
    fn kill_maker() -> bool {
        let arguments: Vec<CString> = (0..20_000).map(|_| CString::from(c"long to copy")).collect();
        let hook = HookProgram {
            path: CString::from(c"/bin/true"),
            arguments: CList::new(arguments),
            environment: CList::new(Vec::new()),
            state: File::open("/dev/null").expect("there").into(),
            image: None,
            timeout_ms: 10_000,
            stack: Stack::new().expect("a stack"),
            occupied: Occupied::default(),
        };
        let stack = Stack::new().expect("a stack");
        let arguments = clone_args {
            flags: u64::from(general::CLONE_VM) | general::CLONE_CLEAR_SIGHAND,
            pidfd: 0,
            child_tid: 0,
            parent_tid: 0,
            exit_signal: general::SIGCHLD.into(),
            stack: stack.base as u64,
            stack_size: stack.size as u64,
            tls: 0,
            set_tid: 0,
            set_tid_size: 0,
            cgroup: 0,
        };
        let data = std::ptr::from_ref(&hook).cast_mut().cast();
        // SAFETY: hook and stack stay until both processes have left the memory, which is waited for below.
        let maker = unsafe { raw::clone3(&raw const arguments, first_process, data) }.expect("made");
        let number = |pid: u32| Pid::from_raw(pid.cast_signed()).expect("a number");
        let since = Instant::now();
        let process = loop {
            match hook.occupied.process() {
                Some(process) => break Some(process),
                None if since.elapsed() > Duration::from_millis(100) => break None,
                None => std::hint::spin_loop(),
            }
        };
        let sent = process.is_some_and(|process| kill_process(number(process), Signal::STOP).is_ok());
        let _ = kill_process(number(maker), Signal::KILL);
        let maker =
            pidfd_open(number(maker), rustix::process::PidfdFlags::empty()).expect("not waited for yet");
        waitid(WaitId::PidFd(maker.as_fd()), WaitIdOptions::EXITED).expect("a child");
        // It stops where it returns from a call, and may have executed the hook by then.
        let is_stopped = |process: u32| {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" T"))
        };
        while sent && process.is_some_and(|process| hook.occupied.process().is_some() && !is_stopped(process))
        {
            std::thread::yield_now();
        }
        let stays = sent && hook.occupied.process().is_some();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| hook.wait_until_left());
            if stays {
                std::thread::sleep(Duration::from_millis(50));
                assert!(!waiter.is_finished(), "a process is in the memory still");
            }
            let _ = process.map(|process| kill_process(number(process), Signal::CONT));
            waiter.join().expect("it ends");
        });
        assert_eq!(hook.occupied.process(), None);
        stays
    }

    #[test]
    fn a_hooks_process_is_waited_for_though_its_maker_was_killed() {
        assert!((0..50).any(|_| kill_maker()), "the maker was never killed in time");
    }
}
