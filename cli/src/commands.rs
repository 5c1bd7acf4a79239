//! The commands, one per file.

pub(crate) mod backends;
pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod completions;
#[cfg(target_os = "linux")]
pub(crate) mod doctor;
#[cfg(target_os = "linux")]
pub(crate) mod events;
#[cfg(target_os = "linux")]
pub(crate) mod exec;
pub(crate) mod explain;
#[cfg(target_os = "linux")]
pub(crate) mod follow;
#[cfg(target_os = "linux")]
pub(crate) mod gpu;
#[cfg(target_os = "linux")]
pub(crate) mod image;
pub(crate) mod import;
pub(crate) mod init;
#[cfg(target_os = "linux")]
pub(crate) mod inspect;
#[cfg(target_os = "linux")]
pub(crate) mod jobs;
#[cfg(target_os = "linux")]
pub(crate) mod lock;
#[cfg(target_os = "linux")]
pub(crate) mod logs;
pub(crate) mod lsp;
pub(crate) mod man;
#[cfg(target_os = "linux")]
pub(crate) mod newest;
pub(crate) mod plan;
#[cfg(target_os = "linux")]
pub(crate) mod ps;
#[cfg(target_os = "linux")]
pub(crate) mod report;
#[cfg(target_os = "linux")]
pub(crate) mod rm;
#[cfg(target_os = "linux")]
pub(crate) mod run;
pub(crate) mod schema;
#[cfg(target_os = "linux")]
pub(crate) mod stats;
#[cfg(target_os = "linux")]
pub(crate) mod stop;
#[cfg(target_os = "linux")]
pub(crate) mod top;
#[cfg(target_os = "linux")]
pub(crate) mod trace;

use crate::input::InputError;
use crate::outcome::Outcome;
use crate::terminal;

/// Where editors find the schemas of a job outside the repository.
const SCHEMA_URL: &str = "https://jobc.dev/schemas/";

/// Reports why an input cannot be used.
fn report_input_error(InputError(why): &InputError) -> Outcome {
    terminal::eprint(&format!("jobc: {why}\n"));
    Outcome::UsageError
}
