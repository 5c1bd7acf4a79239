//! Runs the scripts of this module on the host that has Slurm's commands.

use std::time::Duration;

use jobc_sys::error::{Error, Kind, Result};

use super::access::Access;
use crate::host::{Output, Running, Streams};

const PRELUDE: &str = include_str!("prelude.sh");
/// How long a script may take without moving a byte. Slurm's own commands give up after 100 s at most by default.
const TIMEOUT: Duration = Duration::from_mins(4);
/// The exit code of a host without Slurm's commands.
const NO_SLURM: i32 = 41;
/// The exit code when Slurm does not answer.
const NO_ANSWER: i32 = 42;
/// The exit code when a run is gone.
const NO_RUN: i32 = 45;

/// Runs a script; its exit code is in the output. `what` are words that follow "cannot".
///
/// # Errors
///
/// The host cannot be reached, or Slurm does not answer there.
pub(crate) fn run(access: &Access, script: &str, words: &[&str], stdin: Option<&[u8]>) -> Result<Output> {
    let script = format!("{PRELUDE}{script}");
    let command = command(access, &script, words);
    let output = access.host.run(&command, stdin, TIMEOUT)?;
    match output.status {
        NO_SLURM => Err(Error::new(Kind::Unsupported, "there is no `sbatch` in PATH")
            .help("run jobc on a login node of the cluster, or set `ssh` of the target to one")),
        NO_ANSWER => Err(Error::new(Kind::System, format!("Slurm does not answer: {}", output.last_line()))),
        NO_RUN => Err(Error::new(Kind::NotFound, "the directory of the job is gone")),
        _ => Ok(output),
    }
}

/// Runs a script that must succeed.
pub(crate) fn text(access: &Access, what: &str, script: &str, words: &[&str]) -> Result<String> {
    let output = run(access, script, words, None)?;
    check(what, &output)?;
    Ok(output.text())
}

/// The error of a script that failed.
pub(crate) fn check(what: &str, output: &Output) -> Result<()> {
    if output.status == 0 {
        return Ok(());
    }
    Err(Error::new(Kind::System, format!("cannot {what}: {}", output.last_line())))
}

/// The parts of an output between lines with a record separator.
pub(crate) fn parts(text: &str) -> Vec<&str> {
    text.split("\x1e\n").collect()
}

/// Starts a script whose streams are used while it runs.
pub(crate) fn start(
    access: &Access,
    script: &str,
    words: &[&str],
    streams: Streams,
    terminal: bool,
) -> Result<Running> {
    let script = format!("{PRELUDE}{script}");
    access.host.start(&command(access, &script, words), streams, terminal)
}

/// The command that runs a script. bash reads profiles, which may print, where `BASH_ENV` says so, and where it believes to
/// be started by sshd; so do those that the script starts.
fn command<'a>(access: &'a Access, script: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    let directory = access.directory.as_deref().unwrap_or_default();
    let mut command = vec![
        "env",
        "-u",
        "BASH_ENV",
        "-u",
        "SSH_CLIENT",
        "-u",
        "SSH2_CLIENT",
        "bash",
        "--norc",
        "-c",
        script,
    ];
    command.extend(["jobc", directory]);
    command.extend_from_slice(words);
    command
}
