//! `jobc completions`: a shell's completion script.

use clap_complete::Shell;

use crate::completion::script;
use crate::outcome::Outcome;
use crate::terminal;

pub(crate) fn run(shell: Shell) -> Outcome {
    terminal::print(&script(shell));
    Outcome::Success
}
