//! What is done where Slurm's commands and the directories of runs are: in this process, or by `jobc` on a login node.
//!
//! A [`Question`] has one answer, whose type both sides know. Over ssh it goes as JSON to the hidden command
//! [`COMMAND`] of the same program, which [`Access`](super::access::Access) puts there; on this host it is a call. The
//! command has more words for what has streams of its own: [`steps`].

mod checks;
mod commands;
mod control;
mod ends;
mod fault;
mod new_run;
mod output;
mod outputs;
mod question;
mod runs;
mod steps;
mod submit;
mod tail;

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

pub(crate) use checks::{AccessLine, Capacities, Check, CheckAccess};
pub(crate) use commands::plain_environment;
pub(crate) use control::{Hold, Kill, Stop};
pub(crate) use ends::Ends;
pub(crate) use fault::{Fault, VERSION};
#[cfg(test)]
pub(crate) use new_run::Bytes;
pub(crate) use new_run::{NewRun, Upload};
pub(crate) use output::{NewOutput, Piece};
pub(crate) use outputs::{Output, Outputs};
pub use question::COMMAND;
pub(crate) use question::{Login, Question};
pub(crate) use runs::{Forget, Journal, List, Ports, Remove};
pub(crate) use steps::{FindStep, Measure, NodeProgram, srun};
pub(crate) use submit::{NewJob, Submit, SubmitArray, Submitted};

macro_rules! requests {
    ($($name:ident),* $(,)?) => {
        /// All questions.
        #[derive(Deserialize, Serialize)]
        pub(crate) enum Request {
            $($name($name)),*
        }
        $(impl From<$name> for Request {
            fn from(question: $name) -> Self {
                Self::$name(question)
            }
        })*
        impl Request {
            fn answer(self, login: &Login) -> serde_json::Result<Vec<u8>> {
                match self {
                    $(Self::$name(question) => serde_json::to_vec(&login.ask(question))),*
                }
            }
        }
    };
}

requests!(
    Capacities,
    Check,
    CheckAccess,
    Ends,
    FindStep,
    Forget,
    Hold,
    Journal,
    Kill,
    List,
    Measure,
    NewOutput,
    Outputs,
    Ports,
    Remove,
    Stop,
    Submit,
    SubmitArray,
);

/// A question as it goes to a login node.
#[derive(Deserialize, Serialize)]
pub(crate) struct Letter {
    pub(crate) version: String,
    /// The directory of the target.
    pub(crate) directory: String,
    pub(crate) request: Request,
}

/// The hidden command.
pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.collect();
    let texts: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    match &texts[..] {
        [] => answer_once(),
        _ if texts.len() < words.len() => ExitCode::from(2),
        ["end", grace, ids @ ..] => control::end_after(grace, ids),
        ["relay", node, port, step @ ..] => steps::relay(node, port, step),
        ["exec", process, task, container, terminal, command @ ..] => {
            steps::exec(process, task, container, !terminal.is_empty(), command)
        }
        ["measure", tasks @ ..] => steps::measure(tasks),
        _ => ExitCode::from(2),
    }
}

/// Answers the question on standard input.
fn answer_once() -> ExitCode {
    let mut text = Vec::new();
    let answer = match std::io::stdin().lock().read_to_end(&mut text).map(|_| serde_json::from_slice(&text)) {
        Ok(Ok(Letter { version, directory, request })) if version == VERSION => {
            request.answer(&Login::new(&directory))
        }
        _ => serde_json::to_vec(&Err::<(), Fault>(Fault::Version(VERSION.to_owned()))),
    };
    let written = answer.map_err(std::io::Error::from).and_then(|bytes| std::io::stdout().write_all(&bytes));
    if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
