//! Which job of a file of another tool is read, and what is read with it.

use crate::source::SourceId;

/// What the user chooses of a file of another tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The name of the job, where the file has several.
    pub name: Option<String>,
    /// Further Compose files, each of which changes those before it, as `docker compose -f` reads them.
    pub files: Vec<SourceId>,
    /// Profiles of Compose whose services start.
    pub profiles: Vec<String>,
    /// Variables of the caller that `sbatch` reads, one `NAME=VALUE` a line.
    pub environment: Option<SourceId>,
    /// Whether files that the file names may be absent, with a warning: the job is one to edit.
    pub is_sketch: bool,
    /// Whether no file is read beside those that are named: the override file of Compose.
    pub only_named: bool,
}
