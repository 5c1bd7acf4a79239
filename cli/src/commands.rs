//! The commands, one per file.

pub(crate) mod backends;
pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod explain;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod lsp;
pub(crate) mod man;
pub(crate) mod plan;
pub(crate) mod schema;

use crate::input::InputError;
use crate::outcome::Outcome;
use crate::terminal;

/// Reports why an input cannot be used.
pub(crate) fn report_input_error(InputError(why): &InputError) -> Outcome {
    terminal::eprint(&format!("jobc: {why}\n"));
    Outcome::UsageError
}
