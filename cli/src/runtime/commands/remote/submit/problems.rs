//! Problems that prevent a job from running, printed like findings of the compiler.

use jobc_remote::place::Problem;

use crate::table::escape_control;
use crate::terminal;

/// Prints a problem.
pub(super) fn print(problem: &Problem) {
    terminal::eprint(&text(problem));
}

/// A problem as text for stderr.
pub(super) fn text(problem: &Problem) -> String {
    let (word, color) = if problem.is_warning { ("warning", "\x1b[33;1m") } else { ("error", "\x1b[31;1m") };
    let (color, plain) = if terminal::style().color { (color, "\x1b[0m") } else { ("", "") };
    let mut text = format!("{color}{word}{plain}: {}\n", escape_control(&problem.message));
    if let Some(place) = &problem.place {
        text += &format!(" --> {place}\n");
    }
    if let Some(help) = &problem.help {
        text += &format!("  = help: {}\n", escape_control(help));
    }
    text
}
