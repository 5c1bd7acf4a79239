//! The messages about containers and jobs, and the exit code of a command that was interrupted.

use std::process::ExitCode;

pub(crate) use jobc_oci::message::{error as container_error, warning as container_warning};

use jobc_sys::signals::Signal;

use crate::runtime::interruptible::exit_code;
use crate::terminal;

/// The exit code of a command that a signal ended, and of a job that a user stopped.
pub(crate) const INTERRUPTED: u8 = 130;

/// Says that a signal ended the command, and what that means for its work; the exit code for that signal.
pub(crate) fn interrupted_by(signal: Signal, result: &str) -> ExitCode {
    interrupted(result);
    exit_code(signal)
}

/// Says that Ctrl-C ended the command, and what that means for its work; the exit code for it.
pub(crate) fn interrupted(result: &str) -> ExitCode {
    terminal::eprint(&format!("jobc: interrupted; {result}\n"));
    ExitCode::from(INTERRUPTED)
}
