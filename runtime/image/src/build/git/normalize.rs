//! Normalizes checked-out files so that they depend only on the commit: modes, times, no trace of the fetch.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

/// Sets modes and times of all files below a directory, and removes `.git` unless it is kept.
pub(super) fn normalize(directory: &Path, keep_git_directory: bool, time: i64) -> io::Result<()> {
    let mut directories = vec![directory.to_owned()];
    let mut seen = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory)? {
            let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
            // A submodule's is a file.
            if entry_is_git(&path) && !keep_git_directory {
                if kind.is_dir() { fs::remove_dir_all(&path)? } else { fs::remove_file(&path)? }
            } else if kind.is_dir() {
                directories.push(path);
            } else {
                if kind.is_file() {
                    let is_executable = fs::symlink_metadata(&path)?.permissions().mode() & 0o100 != 0;
                    let mode = if is_executable { 0o755 } else { 0o644 };
                    fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
                }
                set_time(&path, time)?;
            }
        }
        seen.push(directory);
    }
    for directory in seen {
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755))?;
        set_time(&directory, time)?;
    }
    Ok(())
}

fn entry_is_git(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == ".git")
}

fn set_time(path: &Path, time: i64) -> io::Result<()> {
    let time = Timespec { tv_sec: time, tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn files_depend_on_the_commit_alone() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("r");
        fs::create_dir_all(root.join("sub/.git/hooks")).unwrap();
        fs::create_dir(root.join(".git")).unwrap();
        for (name, mode) in [("a", 0o600), ("sub/x", 0o710)] {
            fs::write(root.join(name), name).unwrap();
            fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        std::os::unix::fs::symlink("/nowhere", root.join("link")).unwrap();
        normalize(&root, false, 1234).unwrap();
        for (name, mode) in [("a", 0o644), ("sub/x", 0o755), ("sub", 0o755), ("link", 0o777), ("", 0o755)] {
            let data = fs::symlink_metadata(root.join(name)).unwrap();
            assert_eq!((data.mode() & 0o777, data.mtime()), (mode, 1234), "{name}");
        }
        assert!(!root.join(".git").exists() && !root.join("sub/.git").exists());
    }
}
