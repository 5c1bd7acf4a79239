//! An init between the runtime and a job's program: the trampoline itself, which creates the program's process and stays.
//!
//! As the first process of a pid namespace a program would lose every signal that it has no handler for, and would have
//! to reap orphans (pid_namespaces(7)). The init has no file descriptors and the rights and the filter of the program,
//! forwards all signals to it, reaps what ends, and exits as a shell would: with the program's code, or 128 and the
//! number of the signal that ended it. Its name then says that it was a signal ([`signal_of`]). No other program is
//! executed for it, so it costs a `clone` of a process of a few pages.
//!
//! The program leads a process group of its own, in the foreground of its terminal if it has one, so that the keys of
//! the terminal do not reach it twice.

use linux_raw_sys::general::{
    __NR_clone, __NR_close, __NR_close_range, __NR_exit_group, __NR_getpid, __NR_ioctl, __NR_kill,
    __NR_prctl, __NR_rt_sigprocmask, __NR_rt_sigtimedwait, __NR_setpgid, __NR_wait4, SIGCHLD,
};
use linux_raw_sys::ioctl::TIOCSPGRP;

use super::birth::{BELOW_INIT, TERMINAL};
use crate::seccomp::Program;
use crate::seccomp::decide::Call;

/// The name of an init whose program was ended by a signal, before the signal's character: the space is number 0.
pub(super) const KILLED: [u8; 7] = *b"killed:";

/// Signal 0 in the name.
pub(super) const NO_SIGNAL: u8 = b' ';

/// The flags of `birth` in the image's header. No flags where the filter refuses a call that the init needs: then the
/// program is the first process.
pub(super) fn flags(filter: Option<&Program>, terminal: bool) -> u32 {
    let always = [
        Call::new(__NR_rt_sigprocmask, &[]),
        Call::new(__NR_clone, &[SIGCHLD.into()]),
        Call::new(__NR_getpid, &[]),
        Call::new(__NR_setpgid, &[]),
        Call::new(__NR_close, &[]),
        Call::new(__NR_close_range, &[]),
        Call::new(__NR_prctl, &[]),
        Call::new(__NR_rt_sigtimedwait, &[]),
        Call::new(__NR_kill, &[]),
        Call::new(__NR_wait4, &[]),
        Call::new(__NR_exit_group, &[]),
    ];
    let of_terminal = [Call::new(__NR_ioctl, &[0, TIOCSPGRP.into()])];
    let mut calls = always.iter().chain(of_terminal.iter().filter(|_| terminal));
    let is_allowed =
        filter.is_none_or(|filter| !filter.notifies() && calls.all(|call| call.is_allowed_by(filter)));
    match (is_allowed, terminal) {
        (true, true) => BELOW_INIT | TERMINAL,
        (true, false) => BELOW_INIT,
        (false, _) => 0,
    }
}

/// The signal that ended the program, by the name of its init in proc_pid_comm(5).
pub fn signal_of(name: &[u8]) -> Option<i32> {
    let signal = i32::from(*name.strip_prefix(&KILLED)?.first()?) - i32::from(NO_SIGNAL);
    (1..=64).contains(&signal).then_some(signal)
}
