//! This program again, as the processes that a job's network lives by.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// The word that makes this program the process that holds a job's network: `jobc hold-network`, see
/// [`hold`](super::hold).
pub const COMMAND: &str = "hold-network";

/// What the process needs of the environment: its programs, and where the records of jobs are, to name the one that has a
/// port.
const VARIABLES: [&str; 4] = ["PATH", "HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"];

/// This program again, as the process that holds a network. Of the environment, which may hold secrets, it has
/// [`VARIABLES`] alone.
pub(super) fn helper_command() -> Command {
    let mut command = Command::new("/proc/self/exe");
    let kept = VARIABLES.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    command.arg0("jobc").arg(COMMAND).env_clear().envs(kept);
    command
}
