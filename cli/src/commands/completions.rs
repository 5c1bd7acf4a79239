//! `jobc completions`: a shell's completion script.

use clap_complete::Shell;

use crate::args::Args;
use crate::outcome::Outcome;
use crate::terminal;

pub(crate) fn run(shell: Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::full_command(), "jobc", &mut script);
    terminal::print(&String::from_utf8_lossy(&script));
    Outcome::Success
}
