//! The process in which the program of a plug-in starts: without a network, with a read-only view of the host.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use jobc_sys::confine::{Limits, confine};

/// The word by which this program starts itself for it.
pub(crate) const COMMAND: &str = crate::plugins::program::SANDBOX;

const LIMITS: Limits = Limits { cpu_seconds: 30, file_bytes: 256 << 20 };

/// The whole life of the process: its only word is the program.
pub(crate) fn main(mut words: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let (Some(program), None) = (words.next(), words.next()) else {
        eprintln!("jobc: this command is internal: only `jobc` starts it");
        return ExitCode::from(2);
    };
    if let Err(error) = confine(LIMITS) {
        eprintln!("{}; set JOBC_PLUGIN_SANDBOX=off to start it without a sandbox", error.message());
        return ExitCode::from(126);
    }
    let error = Command::new(&program).env("TMPDIR", "/dev/shm").exec();
    eprintln!("cannot start `{}`: {error}", program.display());
    ExitCode::from(127)
}
