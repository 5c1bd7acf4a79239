//! Helper programs that must not outlive this one.
#![allow(unsafe_code)]

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::fs::Mode;
use rustix::process::{Signal, set_parent_process_death_signal, umask};

/// Has a program killed when the thread that starts it ends, also if this process is killed (prctl(2),
/// `PR_SET_PDEATHSIG`), and lets others read the files that it creates.
pub fn kill_with_parent(command: &mut Command) -> &mut Command {
    let settle = || {
        umask(Mode::WGRP | Mode::WOTH);
        Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
    };
    // SAFETY: between fork and execve two syscalls are made, and nothing is allocated or locked.
    unsafe { command.pre_exec(settle) }
}
