//! Where the search in parent directories for a project's files ends, if the project is not in a repository.

use std::path::Path;

/// Whether a directory is the last one searched: the home directory, or one whose parent is another mount, belongs to
/// another user, or can be written by all users.
///
/// A file in /tmp or /home, which anybody may have written, decides nothing.
pub(crate) fn is_last(directory: &Path) -> bool {
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    home.is_some_and(|home| home == directory) || parent_is_foreign(directory)
}

#[cfg(unix)]
fn parent_is_foreign(directory: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let statuses = directory.parent().map(|parent| (directory.metadata(), parent.metadata()));
    let Some((Ok(own), Ok(parent))) = statuses else { return true };
    (own.dev(), own.uid()) != (parent.dev(), parent.uid()) || parent.mode() & 0o002 != 0
}

/// Without owners, only what is below the home directory is known to be the user's.
#[cfg(not(unix))]
fn parent_is_foreign(directory: &Path) -> bool {
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    !home.is_some_and(|home| directory.starts_with(home))
}
