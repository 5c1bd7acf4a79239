//! Where the files are.

use std::path::{Path, PathBuf};

use crate::boundary;

/// The path of a project's file below its directory.
pub(super) const PROJECT_FILE: &str = ".jobc/config.toml";

/// The directory with the user's files.
pub(crate) fn user_directory() -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    let directory = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(absolute);
    let directory = directory.or_else(|| Some(std::env::home_dir().filter(absolute)?.join(".config")));
    directory.map(|directory| directory.join("jobc"))
}

/// The user's file, which may not exist.
pub(crate) fn user_path() -> Option<PathBuf> {
    user_directory().map(|directory| directory.join("config.toml"))
}

/// The file of the project that has the current directory, if there is one.
pub(super) fn project_path() -> Option<PathBuf> {
    find_project(&std::env::current_dir().ok()?).map(|directory| directory.join(PROJECT_FILE))
}

/// The project's file, or where it belongs: at the root of the repository, else in the current directory.
pub(crate) fn new_project_path() -> Option<PathBuf> {
    project_path().or_else(|| {
        let here = std::env::current_dir().ok()?;
        let root = here.ancestors().find(|directory| directory.join(".git").exists());
        Some(root.unwrap_or(&here).join(PROJECT_FILE))
    })
}

/// The directory with the project's file: this one, or a parent up to the root of the repository; outside a repository as
/// for `targets.yaml` ([`boundary::is_last`]).
pub(super) fn find_project(directory: &Path) -> Option<&Path> {
    let is_root = |directory: &Path| directory.join(".git").exists();
    let inside_repository = directory.ancestors().any(is_root);
    for directory in directory.ancestors() {
        if directory.join(PROJECT_FILE).is_file() {
            return Some(directory);
        }
        let is_end = if inside_repository { is_root(directory) } else { boundary::is_last(directory) };
        if is_end {
            return None;
        }
    }
    None
}
