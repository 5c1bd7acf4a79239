//! Why a question has no answer.

use jobc_sys::error::{Error, Kind};
use serde::{Deserialize, Serialize};

/// The version that both sides must have.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Why a question has no answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) enum Fault {
    /// The host has no commands of Slurm.
    NoSlurm,
    /// The controller does not answer, with the words of the command.
    NoAnswer(String),
    /// The directory of the run is gone.
    NoRun,
    /// The program that nodes run is not there yet.
    NoProgram,
    /// The program on the other side has this version.
    Version(String),
    /// Another error, and what to do.
    Other(String, Option<String>),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Other(error.message().clone(), error.advice())
    }
}

impl Fault {
    pub(super) fn of(message: impl Into<String>) -> Self {
        Self::Other(message.into(), None)
    }

    /// The error for the user; `what` are words that follow "cannot".
    pub(crate) fn error(self, what: &str) -> Error {
        const ELSEWHERE: &str = "run jobc on a login node of the cluster, or set `ssh` of the target to one";
        match self {
            Self::NoSlurm => Error::new(Kind::Unsupported, "`sbatch` is not in PATH").help(ELSEWHERE),
            Self::NoAnswer(why) => Error::new(Kind::System, format!("Slurm does not answer: {why}"))
                .help(format!("{ELSEWHERE}; `jobc build` writes the script without Slurm")),
            Self::NoRun => Error::new(Kind::NotFound, "the directory of the job is gone"),
            Self::NoProgram => {
                Error::new(Kind::Config, format!("cannot {what}: `jobc` is not on the cluster"))
                    .help("leave out `slurm.jobc`, which copies this program")
            }
            Self::Version(version) => {
                let own = VERSION;
                Error::new(Kind::Config, format!("`jobc` on the login node is version {version}, not {own}"))
                    .help("leave out `slurm.jobc`, which copies this program")
            }
            Self::Other(message, help) => {
                let error = Error::new(Kind::System, format!("cannot {what}: {message}"));
                match help {
                    Some(help) => error.help(help),
                    None => error,
                }
            }
        }
    }
}
