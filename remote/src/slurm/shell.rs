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
        NO_ANSWER => Err(Error::new(Kind::System, format!("Slurm does not answer: {}", output.reason()))
            .help("run jobc on a login node of the cluster, or set `ssh` of the target to one; `jobc build` writes the script without Slurm")),
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
    let error = Error::new(Kind::System, format!("cannot {what}: {}", output.reason()));
    Err(match output.advice() {
        Some(advice) => error.help(advice),
        None => error,
    })
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

/// The command that runs a script. bash reads profiles, which may print, if `BASH_ENV` names them or if it seems to be
/// started by sshd; so do shells that the script starts.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;
    use std::process::Command;

    const VERDICT: &str = include_str!("verdict.sh");

    /// The output of `verdict.sh` about Slurm job 7 of a started run, for this output of Slurm's commands. A text that
    /// begins with `!` is an error.
    fn verdict(scontrol: &str, sacct: &str) -> String {
        let scratch = tempfile::tempdir().unwrap();
        let run = scratch.path().join("runs/x-1a");
        fs::create_dir_all(run.join("events")).unwrap();
        fs::write(run.join("events/job"), "1 started 0 7 n0\n").unwrap();
        for (name, text) in [("sbatch", ""), ("scontrol", scontrol), ("sacct", sacct)] {
            let (text, code) = text.strip_prefix('!').map_or((text, 0), |text| (text, 1));
            let program = scratch.path().join(name);
            fs::write(&program, format!("#!/bin/sh\necho '{text}'\nexit {code}\n")).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = format!("{}:{}", scratch.path().display(), std::env::var("PATH").unwrap());
        let directory: &Path = scratch.path();
        let bash = Command::new("bash")
            .args(["--norc", "-c", &format!("{PRELUDE}{VERDICT}"), "jobc"])
            .arg(directory)
            .args(["x-1a", "job", "7"])
            .env("PATH", path)
            .status();
        assert!(bash.unwrap().success());
        let events = fs::read_to_string(run.join("events/job")).unwrap();
        events.lines().skip(1).map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
    }

    #[test]
    fn the_end_of_a_job_is_found_with_accounting_and_without() {
        let unknown = "!slurm_load_jobs error: Invalid job id specified";
        let disabled = "!Slurm accounting storage is disabled";
        let job = |name: &str, comment: &str, state: &str| {
            format!(
                "JobId=7 JobName={name} UserId=me(1000) JobState={state} Reason=None ExitCode=0:9 Comment={comment} Power="
            )
        };
        for (scontrol, sacct, expected) in [
            (job("x-1a", "jobc:x-1a:p:job", "FAILED"), disabled, "verdict FAILED 0:9"),
            (job("x-1a", "", "RUNNING"), disabled, ""),
            // The number is that of another job now.
            (job("bash", "", "RUNNING"), disabled, "verdict LOST 0:0"),
            (job("x-1ab", "jobc:x-1ab:p:job", "COMPLETED"), "TIMEOUT|0:0|x-1a", "verdict TIMEOUT 0:0"),
            (unknown.to_owned(), "TIMEOUT|0:0|x-1a", "verdict TIMEOUT 0:0"),
            (unknown.to_owned(), "CANCELLED by 1000|0:0|x-1a", "verdict CANCELLED 0:0"),
            (unknown.to_owned(), "FAILED|7:0|x-1a-train", "verdict FAILED 7:0"),
            (unknown.to_owned(), "COMPLETED|0:0|bash", "verdict LOST 0:0"),
            (unknown.to_owned(), "", "verdict LOST 0:0"),
            (unknown.to_owned(), disabled, "verdict LOST 0:0"),
            // It may be known again in a moment.
            (unknown.to_owned(), "!sacct: error: Connection refused", ""),
            ("!Unable to contact slurm controller (connect failure)".to_owned(), "", ""),
        ] {
            assert_eq!(verdict(&scontrol, sacct), expected, "{scontrol} {sacct}");
        }
    }
}
