//! The trampoline's instructions, one text for each architecture.
//!
//! They touch no memory but their own image and the stack they are given, and find the [`Header`](super::image::Header)
//! right behind themselves, so they are position-independent. Both texts do the same:
//!
//! 1. Make `report` close-on-exec, and check it. If it is not, it was closed by an earlier round: print a message and
//!    exit with 126. A filter loaded in that round cannot fake the result, which is not an error number.
//! 2. Where there is a label, open the attribute's file, write the label to it, and close the directory it was found
//!    in.
//! 3. Where the right to load the filter was kept for that alone, take it from what the program inherits (capset(2)):
//!    no call but `execve` follows the filter. `seccomp(SECCOMP_SET_MODE_FILTER, flags, program)` where there is a
//!    program. If an agent is notified of syscalls, a thread that was made before has no filter: it writes the
//!    listener's number to `report`, waits until the listener was taken, and ends. The first thread makes no call
//!    meanwhile and watches two words of its stack, so a filter may refuse or notify any call, those that handing over
//!    takes among them.
//! 4. Where a last process is to be made ([`birth`]), make it: before the filter, or after it and with the rights for it
//!    given up. It begins a session of its own and goes on; the first one writes its number to `report` and exits.
//!    Or make the program's process as a child, and stay as its [`init`].
//! 5. `execve` of each candidate, with execvp(3)'s rule for trying the next one.
//! 6. Report, and exit. Where even `exit_group` is filtered away, a trap ends the process.
#![allow(unsafe_code, reason = "assembly is, and so are the symbols that bound it")]

use linux_raw_sys::errno::{EACCES, ENOENT, ENOTDIR};
use linux_raw_sys::general::{
    __NR_capset, __NR_clone, __NR_close, __NR_close_range, __NR_execve, __NR_exit, __NR_exit_group,
    __NR_fcntl, __NR_getpid, __NR_ioctl, __NR_kill, __NR_openat, __NR_ppoll, __NR_prctl, __NR_read,
    __NR_rt_sigprocmask, __NR_rt_sigtimedwait, __NR_sched_yield, __NR_seccomp, __NR_setpgid, __NR_setsid,
    __NR_wait4, __NR_write, CLONE_FILES, CLONE_FS, CLONE_PARENT, CLONE_SIGHAND, CLONE_SYSVSEM, CLONE_THREAD,
    CLONE_VM, F_GETFD, F_SETFD, FD_CLOEXEC, O_CLOEXEC, O_WRONLY, POLLIN, SIG_SETMASK, SIGCHLD, SIGKILL,
    WNOHANG,
};
use linux_raw_sys::ioctl::{TIOCSCTTY, TIOCSPGRP};
use linux_raw_sys::prctl::{PR_SET_NAME, PR_SET_PDEATHSIG};
use linux_raw_sys::ptrace::SECCOMP_SET_MODE_FILTER;

use super::birth;
use super::failure::{Failure, LISTENER_TAKEN};
use super::image::Header;
use super::init;

/// Space on the stack for the threads' shared state: the listener's number, -1 until there is one; then 1 once it
/// was taken.
const SHARED_STATE_SIZE: u32 = 64;

/// The distance of the second thread's stack below the first one's, which grows by at most one word.
const SECOND_STACK_OFFSET: u32 = 256;

const THREAD_CLONE_FLAGS: u32 =
    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;

/// Timeout in seconds for another process to take the listener; that process may have been killed.
const LISTENER_TIMEOUT_SECS: u32 = 30;

/// Places a text between the symbols of [`bytes`], with the numbers that both texts have and those of its own.
macro_rules! trampoline {
    ($text:literal, $($own:ident = const $value:expr),* $(,)?) => {
        core::arch::global_asm!(
            $text,
            fcntl = const __NR_fcntl,
            birth = const core::mem::offset_of!(Header, birth),
            sigprocmask = const __NR_rt_sigprocmask,
            setmask = const SIG_SETMASK,
            sigchld = const SIGCHLD,
            setpgid = const __NR_setpgid,
            getpid = const __NR_getpid,
            tiocspgrp = const TIOCSPGRP,
            close_range = const __NR_close_range,
            set_name = const PR_SET_NAME,
            sigtimedwait = const __NR_rt_sigtimedwait,
            kill = const __NR_kill,
            wait4 = const __NR_wait4,
            wnohang = const WNOHANG,
            no_signal = const init::NO_SIGNAL,
            last_capabilities = const core::mem::offset_of!(Header, last_capabilities),
            when = const birth::MAKE | birth::AFTER_FILTER,
            make = const birth::MAKE,
            clone_parent = const CLONE_PARENT,
            unborn = const Failure::BIRTH,
            born = const birth::BORN,
            setsid = const __NR_setsid,
            ioctl = const __NR_ioctl,
            tiocsctty = const TIOCSCTTY,
            prctl = const __NR_prctl,
            pdeathsig = const PR_SET_PDEATHSIG,
            sigkill = const SIGKILL,
            setfd = const F_SETFD,
            getfd = const F_GETFD,
            cloexec = const FD_CLOEXEC,
            seccomp = const __NR_seccomp,
            capset = const __NR_capset,
            capabilities = const core::mem::offset_of!(Header, capabilities),
            set_filter = const SECCOMP_SET_MODE_FILTER,
            execve = const __NR_execve,
            write = const __NR_write,
            exit_group = const __NR_exit_group,
            noent = const ENOENT,
            notdir = const ENOTDIR,
            acces = const EACCES,
            openat = const __NR_openat,
            close = const __NR_close,
            filter = const Failure::FILTER,
            labelled = const Failure::LABEL,
            size = const Failure::SIZE,
            report = const core::mem::offset_of!(Header, report),
            attribute = const core::mem::offset_of!(Header, attribute),
            attributes = const core::mem::offset_of!(Header, attributes),
            label = const core::mem::offset_of!(Header, label),
            length = const core::mem::offset_of!(Header, length),
            flags = const core::mem::offset_of!(Header, flags),
            reply = const core::mem::offset_of!(Header, reply),
            shared = const SHARED_STATE_SIZE,
            apart = const SECOND_STACK_OFFSET,
            clone = const __NR_clone,
            sched_yield = const __NR_sched_yield,
            listener = const Failure::LISTENER,
            poll_in = const POLLIN,
            timeout = const LISTENER_TIMEOUT_SECS,
            ppoll = const __NR_ppoll,
            read = const __NR_read,
            exit = const __NR_exit,
            taken = const LISTENER_TAKEN,
            program = const core::mem::offset_of!(Header, program),
            candidates = const core::mem::offset_of!(Header, candidates),
            $($own = const $value,)*
        );
    };
}

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the trampoline is written for x86_64 and aarch64");

unsafe extern "C" {
    safe static jobc_trampoline_start: u8;
    safe static jobc_trampoline_end: u8;
}

/// The instructions, to be followed directly by the header.
pub(super) fn bytes() -> &'static [u8] {
    let start = &raw const jobc_trampoline_start;
    let end = &raw const jobc_trampoline_end;
    // SAFETY: the assembly above puts both symbols into one section, the second after the first, and the bytes between
    // them are constant.
    unsafe { std::slice::from_raw_parts(start, end.addr() - start.addr()) }
}
