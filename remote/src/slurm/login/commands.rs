//! Slurm's commands, free of what their user has set for his own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::fault::Fault;
use crate::host::run_here;

/// Settings of the user's own commands would change what they print, and an allocation around this what they do.
const SETTINGS: [&str; 7] = ["SBATCH_", "SQUEUE_", "SCONTROL_", "SACCT_", "SINFO_", "SRUN_", "SLURM_"];
/// How long a command may take without a byte. Slurm's own give up after 100 s at most by default.
const TIMEOUT: Duration = Duration::from_mins(4);
/// What they say when the controller is not there, or too busy.
const NO_ANSWER: [&str; 3] =
    ["Unable to contact slurm controller", "Socket timed out on send/recv", "connect failure"];

/// The variables of this process that Slurm's commands must not see.
pub(crate) fn plain_environment() -> impl Iterator<Item = String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| name != "SLURM_CONF" && SETTINGS.iter().any(|setting| name.starts_with(setting)))
}

/// A command of Slurm.
pub(super) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    for name in plain_environment() {
        command.env_remove(name);
    }
    command
}

/// What a command said.
#[derive(Clone, Debug, Default)]
pub(super) struct Reply {
    pub(super) is_ok: bool,
    pub(super) text: String,
    pub(super) errors: String,
}

impl Reply {
    /// All of it.
    pub(super) fn all(&self) -> String {
        format!("{}{}", self.text, self.errors)
    }

    /// The last line.
    pub(super) fn reason(&self) -> String {
        let last = |text: &str| text.lines().rev().find(|line| !line.trim().is_empty()).map(str::to_owned);
        last(&self.errors).or_else(|| last(&self.text)).unwrap_or_else(|| "it says nothing".to_owned())
    }

    /// Whether the controller did not answer.
    pub(super) fn is_unanswered(&self) -> bool {
        !self.is_ok && NO_ANSWER.iter().any(|words| self.errors.contains(words))
    }

    /// Its standard output if it succeeded; otherwise Slurm did not answer.
    pub(super) fn answer(self) -> Result<String, Fault> {
        if self.is_ok { Ok(self.text) } else { Err(Fault::NoAnswer(self.reason())) }
    }

    /// An error unless it succeeded.
    pub(super) fn check(self) -> Result<Self, Fault> {
        match self {
            said if said.is_ok => Ok(said),
            said if said.is_unanswered() => Err(Fault::NoAnswer(said.reason())),
            said => Err(Fault::of(said.reason())),
        }
    }
}

/// Runs a command to its end.
pub(super) fn run(command: Command, input: Option<&[u8]>) -> Result<Reply, Fault> {
    let output = run_here(command, input, TIMEOUT)?;
    Ok(Reply {
        is_ok: output.status == 0,
        errors: String::from_utf8_lossy(&output.stderr).into_owned(),
        text: output.text(),
    })
}

/// Asks Slurm; times are in seconds since 1970.
pub(super) fn ask(words: &[&str]) -> Result<Reply, Fault> {
    let mut command = command(words);
    command.env("SLURM_TIME_FORMAT", "%s");
    run(command, None)
}

/// The user's number.
pub(super) fn uid() -> String {
    rustix::process::getuid().as_raw().to_string()
}

/// A path of a setting, where `~/` is the home directory.
pub(super) fn path(text: &str) -> PathBuf {
    let home = || std::env::home_dir().unwrap_or_else(|| Path::new("/").to_owned());
    let path = match text.strip_prefix("~/") {
        Some(rest) => home().join(rest),
        None => PathBuf::from(text),
    };
    std::path::absolute(&path).unwrap_or(path)
}
