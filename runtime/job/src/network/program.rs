//! This program again, as the processes that a job's network lives by.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// The word that makes this program the process that holds a job's network: `jobc hold-network`, see
/// [`hold`](super::hold).
pub const COMMAND: &str = "hold-network";

/// This program again, as the process that holds a network. Of the environment, which may hold secrets, it has `PATH`
/// alone.
pub(super) fn helper_command() -> Command {
    let mut command = Command::new("/proc/self/exe");
    let path = std::env::var_os("PATH").map(|path| ("PATH", path));
    command.arg0("jobc").arg(COMMAND).env_clear().envs(path);
    command
}
