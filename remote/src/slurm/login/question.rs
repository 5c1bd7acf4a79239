//! A question, and the host that answers it.

use std::path::PathBuf;

use jobc_sys::program_path;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::commands;
use super::fault::Fault;

/// The hidden command: `jobc on-cluster` answers a question on standard input, `jobc on-cluster WORD ...` does what has
/// streams of its own.
pub const COMMAND: &str = "on-cluster";

/// What can be asked of a cluster.
pub(crate) trait Question: Serialize {
    /// What it answers.
    type Answer: Serialize + DeserializeOwned;

    /// Answers it, on a host with Slurm's commands.
    fn answer(self, login: &Login) -> Result<Self::Answer, Fault>;
}

/// The directory of a target, on a host that has it.
pub(crate) struct Login {
    /// Where runs, programs and files are kept.
    pub(crate) directory: PathBuf,
}

impl Login {
    /// `~/` is the home directory; another relative path begins in the current one.
    pub(crate) fn new(directory: &str) -> Self {
        Self { directory: commands::path(directory) }
    }

    /// The answer to a question.
    pub(crate) fn ask<Q: Question>(&self, question: Q) -> Result<Q::Answer, Fault> {
        if program_path::find("sbatch").is_none() {
            return Err(Fault::NoSlurm);
        }
        question.answer(self)
    }

    /// Where the directories of runs are.
    pub(super) fn runs(&self) -> PathBuf {
        self.directory.join("runs")
    }

    /// The directory of a run.
    pub(super) fn run(&self, name: &str) -> PathBuf {
        self.runs().join(name)
    }
}
