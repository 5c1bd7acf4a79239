//! Programs on `PATH`.

use std::path::PathBuf;

use rustix::fs::Access;

/// Where programs are if `PATH` is not set.
const DEFAULT: &str = "/usr/bin:/bin:/usr/sbin:/sbin";

/// The first executable file with that name in the directories of `PATH`.
pub fn find(name: &str) -> Option<PathBuf> {
    find_in(directories(), name)
}

/// The directories of `PATH`. Relative ones are left out: a program in the current directory is not started by
/// accident.
pub fn directories() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT.into());
    std::env::split_paths(&path).filter(|directory| directory.is_absolute()).collect()
}

/// The first executable file with that name in these directories.
pub fn find_in(directories: impl IntoIterator<Item = PathBuf>, name: &str) -> Option<PathBuf> {
    let mut paths = directories.into_iter().map(|directory| directory.join(name));
    paths.find(|path| path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_executable_files_are_programs() {
        let scratch = tempfile::tempdir().unwrap();
        let directories = ["a", "b", "c"].map(|name| scratch.path().join(name));
        std::fs::create_dir_all(directories[0].join("p")).unwrap();
        for (directory, mode) in [(&directories[1], 0o644), (&directories[2], 0o755)] {
            std::fs::create_dir(directory).unwrap();
            std::fs::write(directory.join("p"), "").unwrap();
            std::fs::set_permissions(directory.join("p"), PermissionsExt::from_mode(mode)).unwrap();
        }
        assert_eq!(find_in(directories.clone(), "p"), Some(directories[2].join("p")));
        assert_eq!(find_in(directories, "q"), None);
    }
}
