//! Writes a target's directory: readers see the old files or the new ones, never a mix.
//!
//! The new directory is written next to the old one, and both are swapped by one renameat2(2). A failure at any point,
//! such as a full disk, leaves the old directory unchanged. Files that did not change are hard links to the old ones,
//! so that they keep their times. Builds of one job wait for each other by a lock on the parent directory.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::Artifact;

use crate::platform::files;

/// The suffix of the old directory while it is replaced in two steps.
const OLD_SUFFIX: &str = ".old";

/// What happened to a target's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteResult {
    /// Every file existed already, with these bytes.
    Unchanged,
    /// The directory is new, or differed.
    Changed,
}

/// Writes a target's directory.
///
/// # Errors
/// If the directory contains files that jobc did not write, and for errors of the system.
pub(crate) fn write(directory: &Utf8Path, artifacts: &[Artifact]) -> io::Result<WriteResult> {
    // A link is kept, and its target is replaced.
    let directory =
        if directory.is_symlink() { directory.canonicalize_utf8()? } else { directory.to_owned() };
    let parent = directory.parent().unwrap_or(Utf8Path::new("."));
    let name = directory.file_name().unwrap_or("target");
    fs::create_dir_all(parent)?;
    let staging = format!(".{name}.jobc-");
    let lock = lock(parent);
    if lock.is_some() {
        clear_leftovers(&directory, &staging);
    }
    if directory.exists() {
        if !directory.is_dir() {
            return Err(io::Error::other(format!("`{name}` is a file")));
        }
        let on_disk = list(&directory)?;
        let wanted: BTreeSet<&Utf8Path> = artifacts.iter().map(|a| a.path.as_path()).collect();
        let more: Vec<&Utf8Path> =
            on_disk.iter().map(Utf8PathBuf::as_path).filter(|p| !wanted.contains(p)).collect();
        if more.is_empty()
            && on_disk.len() == wanted.len()
            && artifacts.iter().all(|artifact| is_same(&directory.join(&artifact.path), artifact))
        {
            return Ok(WriteResult::Unchanged);
        }
        refuse_foreign(&directory, &more)?;
    }
    let staging = parent.join(format!("{staging}{}", std::process::id()));
    let result = write_staging(&staging, &directory, artifacts).and_then(|()| swap(&staging, &directory));
    // After a swap the old files are in the staging directory; after a failure a part of the new ones.
    let cleared = if staging.exists() { fs::remove_dir_all(&staging) } else { Ok(()) };
    result.and(cleared).map(|()| WriteResult::Changed)
}

/// Waits for other builds into the same directory; none if the file system has no such locks.
fn lock(parent: &Utf8Path) -> Option<fs::File> {
    let directory = fs::File::open(parent).ok()?;
    directory.lock().ok().map(|()| directory)
}

/// Removes leftovers of a killed build. Under the lock no other build is running here.
fn clear_leftovers(directory: &Utf8Path, staging: &str) {
    let parent = directory.parent().unwrap_or(Utf8Path::new("."));
    for entry in parent.read_dir_utf8().into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.starts_with(staging) {
            // Between the two renames of `swap`, the old output has the other name; it is restored.
            let lost = name.ends_with(OLD_SUFFIX) && !directory.exists();
            // A leftover that cannot be removed does no harm.
            let _ = if lost { fs::rename(entry.path(), directory) } else { fs::remove_dir_all(entry.path()) };
        }
    }
}

/// The files below a directory, by relative path; links are not followed.
pub(crate) fn list(directory: &Utf8Path) -> io::Result<BTreeSet<Utf8PathBuf>> {
    let mut files = BTreeSet::new();
    let mut todo = vec![directory.to_owned()];
    while let Some(next) = todo.pop() {
        for entry in next.read_dir_utf8()? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                todo.push(entry.path().to_owned());
            } else if let Ok(path) = entry.path().strip_prefix(directory) {
                files.insert(path.to_owned());
            }
        }
    }
    Ok(files)
}

/// A directory that is replaced as a whole must not contain other files, since they would be lost.
///
/// The source map of the previous build lists every file that it wrote.
pub(crate) fn refuse_foreign(directory: &Utf8Path, more: &[&Utf8Path]) -> io::Result<()> {
    if more.is_empty() {
        return Ok(());
    }
    let map = fs::read(directory.join("sourcemap.json")).unwrap_or_default();
    let map: serde_json::Value = serde_json::from_slice(&map).unwrap_or_default();
    let ours = |path: &Utf8Path| {
        matches!(path.as_str(), "plan.json" | "sourcemap.json")
            || map["artifacts"].get(path.as_str()).is_some()
    };
    match more.iter().find(|path| !ours(path)) {
        None => Ok(()),
        Some(path) => Err(io::Error::other(format!(
            "it contains `{path}`, which jobc did not write; move it away, or name another directory with `-o`"
        ))),
    }
}

fn is_same(path: &Utf8Path, artifact: &Artifact) -> bool {
    let Ok(metadata) = fs::symlink_metadata(path) else { return false };
    metadata.is_file()
        && metadata.len() == artifact.bytes.len() as u64
        && files::is_executable_as(&metadata, artifact.mode)
        && fs::read(path).is_ok_and(|bytes| bytes == artifact.bytes)
}

fn write_staging(staging: &Utf8Path, old: &Utf8Path, artifacts: &[Artifact]) -> io::Result<()> {
    if staging.exists() {
        fs::remove_dir_all(staging)?;
    }
    fs::create_dir(staging)?;
    let mut made: BTreeSet<&Utf8Path> = BTreeSet::new();
    for artifact in artifacts {
        let path = staging.join(&artifact.path);
        if let Some(parent) = artifact.path.parent()
            && made.insert(parent)
        {
            fs::create_dir_all(staging.join(parent))?;
        }
        // Compared after linking: without a lock the old file may have been replaced.
        if fs::hard_link(old.join(&artifact.path), &path).is_ok() {
            if is_same(&path, artifact) {
                continue;
            }
            fs::remove_file(&path)?;
        }
        let mut file = files::create_new(path.as_std_path(), artifact.mode)?;
        io::Write::write_all(&mut file, &artifact.bytes)?;
    }
    Ok(())
}

/// Replaces the old directory with the new one; file systems without exchange get two renames.
fn swap(staging: &Utf8Path, directory: &Utf8Path) -> io::Result<()> {
    if !directory.exists() {
        return fs::rename(staging, directory);
    }
    if files::exchange(staging.as_std_path(), directory.as_std_path())? {
        return Ok(());
    }
    let aside = directory.with_file_name(format!("{}{OLD_SUFFIX}", staging.file_name().unwrap_or("jobc")));
    fs::rename(directory, &aside)?;
    if let Err(error) = fs::rename(staging, directory) {
        fs::rename(&aside, directory)?;
        return Err(error);
    }
    fs::remove_dir_all(aside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(path: &str, text: &str) -> Artifact {
        Artifact { path: path.into(), mode: 0o644, bytes: text.as_bytes().to_vec() }
    }

    fn temporary() -> (tempfile::TempDir, Utf8PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(directory.path().join("out/job/local")).unwrap();
        (directory, path)
    }

    /// A directory as a build writes it: with a source map that lists the other files.
    fn output(plan: &str, others: &[(&str, &str)]) -> Vec<Artifact> {
        let named: serde_json::Map<String, serde_json::Value> =
            others.iter().map(|(path, _)| ((*path).to_owned(), serde_json::json!([]))).collect();
        let map = serde_json::json!({"version": 1, "artifacts": named}).to_string();
        let own = [artifact("plan.json", plan), artifact("sourcemap.json", &map)];
        own.into_iter().chain(others.iter().map(|(path, text)| artifact(path, text))).collect()
    }

    #[test]
    fn output_directory_contains_exactly_the_written_files() {
        let (_keep, directory) = temporary();
        let first = output("1", &[("oci/a/config.json", "2"), ("oci/b/config.json", "2")]);
        assert_eq!(write(&directory, &first).unwrap(), WriteResult::Changed);
        assert_eq!(
            write(&directory, &output("3", &[("oci/b/config.json", "4")])).unwrap(),
            WriteResult::Changed
        );
        let files: Vec<_> = list(&directory).unwrap().into_iter().collect();
        assert_eq!(files, ["oci/b/config.json", "plan.json", "sourcemap.json"]);
        assert_eq!(fs::read_to_string(directory.join("plan.json")).unwrap(), "3");
        assert_eq!(fs::read_to_string(directory.join("oci/b/config.json")).unwrap(), "4");
        let beside: Vec<_> = directory.parent().unwrap().read_dir_utf8().unwrap().collect();
        assert_eq!(beside.len(), 1, "no staging directory is left: {beside:?}");
    }

    #[test]
    fn unchanged_files_keep_their_times() {
        let (_keep, directory) = temporary();
        let time = || fs::metadata(directory.join("plan.json")).unwrap().modified().unwrap();
        write(&directory, &output("1", &[("openpai/job.yaml", "1")])).unwrap();
        let before = time();
        assert_eq!(
            write(&directory, &output("1", &[("openpai/job.yaml", "1")])).unwrap(),
            WriteResult::Unchanged
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(
            write(&directory, &output("1", &[("openpai/job.yaml", "2")])).unwrap(),
            WriteResult::Changed
        );
        assert_eq!(time(), before);
    }

    #[test]
    fn foreign_files_are_never_replaced() {
        for foreign in ["thesis.tex", "oci/a/rootfs/bin/sh"] {
            let (_keep, directory) = temporary();
            write(&directory, &output("1", &[("oci/a/config.json", "1")])).unwrap();
            fs::create_dir_all(directory.join(foreign).parent().unwrap()).unwrap();
            fs::write(directory.join(foreign), "x").unwrap();
            let error =
                write(&directory, &output("2", &[("oci/a/config.json", "1")])).unwrap_err().to_string();
            assert!(error.contains(&format!("`{foreign}`, which jobc did not write")), "{error}");
            assert_eq!(fs::read_to_string(directory.join("plan.json")).unwrap(), "1");
        }
    }

    #[test]
    fn a_link_to_a_directory_is_kept() {
        let (_keep, directory) = temporary();
        let parent = directory.parent().unwrap();
        fs::create_dir_all(parent.join("real")).unwrap();
        std::os::unix::fs::symlink("real", &directory).unwrap();
        write(&directory, &output("1", &[])).unwrap();
        write(&directory, &output("2", &[])).unwrap();
        assert!(directory.is_symlink());
        assert_eq!(fs::read_to_string(parent.join("real/plan.json")).unwrap(), "2");
    }

    #[test]
    fn leftovers_of_killed_builds_are_removed() {
        let (_keep, directory) = temporary();
        let parent = directory.parent().unwrap();
        write(&directory, &output("1", &[])).unwrap();
        fs::create_dir(parent.join(".local.jobc-1")).unwrap();
        fs::create_dir(parent.join(".other.jobc-1")).unwrap();
        // Killed between the two renames: the old output has another name, and is kept after another error.
        fs::rename(&directory, parent.join(".local.jobc-2.old")).unwrap();
        clear_leftovers(&directory, ".local.jobc-");
        assert_eq!(fs::read_to_string(directory.join("plan.json")).unwrap(), "1");
        let names: BTreeSet<String> =
            parent.read_dir_utf8().unwrap().map(|entry| entry.unwrap().file_name().to_owned()).collect();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), [".other.jobc-1", "local"]);
    }
}
