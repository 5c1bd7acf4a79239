//! `jobc completions`: a shell's completion script.

use clap::Command;
use clap_complete::Shell;

use crate::outcome::Outcome;
use crate::terminal;

pub(crate) fn run(shell: Shell, mut all: Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut all, "jobc", &mut script);
    terminal::print(&String::from_utf8_lossy(&script));
    Outcome::Success
}
