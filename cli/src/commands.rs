//! The commands, one per file.

pub(crate) mod backends;
pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod fmt;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod lsp;
pub(crate) mod man;
pub(crate) mod plan;
pub(crate) mod schema;
pub(crate) mod skill;
pub(crate) mod standard_library;
pub(crate) mod test;
pub(crate) mod why;

use camino::Utf8PathBuf;

use crate::input::InputError;
use crate::outcome::Outcome;
use crate::terminal;

/// Rejects `-` among files that are watched.
fn reject_watched_stdin<'a>(mut files: impl Iterator<Item = &'a Utf8PathBuf>) -> Result<(), InputError> {
    if files.any(|path| path == "-") {
        return Err(InputError("`--watch` cannot read the job from stdin; name a file".to_owned()));
    }
    Ok(())
}

/// Reports why an input cannot be used.
pub(crate) fn report_input_error(InputError(why): &InputError) -> Outcome {
    terminal::eprint(&format!("jobc: {why}\n"));
    Outcome::UsageError
}
