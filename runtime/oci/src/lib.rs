//! The command line of an OCI runtime over jobc's containers.
//!
//! It follows what runc and crun accept, and what podman, conmon and containerd use; the OCI runtime specification
//! names the operations but does not define a command line.
//!
//! It is a separate crate for the small program `jobc-oci`, which only runs containers. `jobc oci` is the same code.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod activation;
mod args;
mod delete;
mod exec;
mod exit_code;
mod gpu;
mod json;
mod list;
mod log;
pub mod message;
mod run;
mod spec;
mod stdio;
mod update;

use std::ffi::OsString;
use std::mem::ManuallyDrop;

use clap::{CommandFactory as _, FromArgMatches as _};
use jobc_terminal::report_panic;

use args::OciArgs;
use exit_code::FAILURE_EXIT_CODE;

pub use run::wait_and_delete;
pub use stdio::open_standard_streams;

/// The exit code for our own failure, as with other programs that run programs (env(1), timeout(1)).
pub const RUNTIME_FAILURE_EXIT_CODE: u8 = 125;

/// The commands and their options, for help, completion scripts and manual pages.
pub fn command() -> clap::Command {
    OciArgs::command()
}

/// Parses a command line, starting with the program's name, and executes it; returns the exit code.
pub fn main(words: impl Iterator<Item = OsString>) -> u8 {
    std::panic::set_hook(Box::new(|panic| {
        jobc_container::terminal::raw_mode::restore();
        report_panic(panic);
        std::process::exit(i32::from(RUNTIME_FAILURE_EXIT_CODE));
    }));
    match read(words) {
        Ok(args) => run::run(&args),
        Err(error) => match report_usage_error(&error) {
            0 => 0,
            _ => FAILURE_EXIT_CODE,
        },
    }
}

/// As [`clap::Parser::try_parse_from`], but does not drop the tree of commands: that was a twentieth of a start's own
/// work.
fn read(words: impl Iterator<Item = OsString>) -> clap::error::Result<OciArgs> {
    let mut command = ManuallyDrop::new(command());
    let matches = command.try_get_matches_from_mut(words)?;
    OciArgs::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Prints the error of a command line, or the requested help; returns the exit code.
pub fn report_usage_error(error: &clap::Error) -> u8 {
    let _ = error.print();
    if error.use_stderr() { RUNTIME_FAILURE_EXIT_CODE } else { 0 }
}
