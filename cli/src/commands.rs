//! The commands, one a file.

pub(crate) mod backends;
pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod completions;
#[cfg(target_os = "linux")]
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod lsp;
pub(crate) mod man;
#[cfg(target_os = "linux")]
pub(crate) mod oci;
pub(crate) mod plan;
#[cfg(target_os = "linux")]
pub(crate) mod run;
pub(crate) mod schema;

use crate::Outcome;
use crate::input::Unusable;
use crate::terminal;

/// Where editors find the schemas of a job that lies outside the repository.
const PUBLISHED: &str = "https://jobc.dev/schemas/";

/// Says why an input cannot be used.
fn unusable(Unusable(why): &Unusable) -> Outcome {
    terminal::eprint(&format!("jobc: {why}\n"));
    Outcome::WrongUse
}
