//! Writing a target's folder: readers see the old files or the new ones, never a mix.
//!
//! The new folder is made beside the old one and swapped in by one renameat2(2). A failure at any point, a full
//! disk say, leaves the old folder as it was. Files that did not change are hard links to the old ones, so that
//! they keep their times.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::Artifact;
use jobc_schema::BackendName;
use rustix::fs::{CWD, RenameFlags, renameat_with};

/// What there is to do for a target's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// Every file was there already, with these bytes.
    Unchanged,
    /// The folder is new, or differs from what was there.
    Changed,
}

/// Writes a target's folder.
///
/// # Errors
/// Where the folder holds files that jobc did not write, and where the system refuses.
pub(crate) fn write(folder: &Utf8Path, artifacts: &[Artifact]) -> io::Result<Written> {
    if folder.exists() {
        refuse_foreign(folder)?;
        if same(folder, artifacts)? {
            return Ok(Written::Unchanged);
        }
    }
    let parent = folder.parent().unwrap_or(Utf8Path::new("."));
    fs::create_dir_all(parent)?;
    let name = folder.file_name().unwrap_or("target");
    let staging = parent.join(format!(".{name}.jobc-{}", std::process::id()));
    let result = fill(&staging, folder, artifacts).and_then(|()| swap(&staging, folder));
    // After a swap the old files lie in the staging folder; after a failure half of the new ones.
    let cleared = if staging.exists() { fs::remove_dir_all(&staging) } else { Ok(()) };
    result.and(cleared).map(|()| Written::Changed)
}

/// The files below a folder, by relative path; links are not followed.
pub(crate) fn list(folder: &Utf8Path) -> io::Result<BTreeSet<Utf8PathBuf>> {
    let mut files = BTreeSet::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(next) = todo.pop() {
        for entry in next.read_dir_utf8()? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                todo.push(entry.path().to_owned());
            } else if let Ok(path) = entry.path().strip_prefix(folder) {
                files.insert(path.to_owned());
            }
        }
    }
    Ok(files)
}

/// A folder that is replaced as a whole must be one of ours: somebody else's files would be lost.
fn refuse_foreign(folder: &Utf8Path) -> io::Result<()> {
    let ours = |name: &str| {
        matches!(name, "plan.json" | "sourcemap.json") || BackendName::ALL.iter().any(|b| b.as_str() == name)
    };
    if !folder.is_dir() {
        return Err(io::Error::other(format!("`{folder}` is a file")));
    }
    for entry in folder.read_dir_utf8()? {
        let entry = entry?;
        if !ours(entry.file_name()) {
            let message = format!(
                "it holds `{}`, which jobc did not write; move that away, or name another folder with `-o`",
                entry.file_name()
            );
            return Err(io::Error::other(message));
        }
    }
    Ok(())
}

/// Whether a folder holds exactly these files.
fn same(folder: &Utf8Path, artifacts: &[Artifact]) -> io::Result<bool> {
    let known: BTreeSet<&Utf8Path> = artifacts.iter().map(|a| a.path.as_path()).collect();
    if list(folder)?.iter().map(Utf8PathBuf::as_path).ne(known.into_iter()) {
        return Ok(false);
    }
    Ok(artifacts.iter().all(|artifact| is_same(&folder.join(&artifact.path), artifact)))
}

fn is_same(path: &Utf8Path, artifact: &Artifact) -> bool {
    let Ok(metadata) = fs::symlink_metadata(path) else { return false };
    metadata.is_file()
        && metadata.len() == artifact.bytes.len() as u64
        && metadata.permissions().mode() & 0o111 == artifact.mode & 0o111
        && fs::read(path).is_ok_and(|bytes| bytes == artifact.bytes)
}

fn fill(staging: &Utf8Path, old: &Utf8Path, artifacts: &[Artifact]) -> io::Result<()> {
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
        let before = old.join(&artifact.path);
        if is_same(&before, artifact) && fs::hard_link(&before, &path).is_ok() {
            continue;
        }
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(artifact.mode).open(&path)?;
        io::Write::write_all(&mut file, &artifact.bytes)?;
    }
    Ok(())
}

/// Puts the new folder in the old one's place; file systems without exchange get two renames.
fn swap(staging: &Utf8Path, folder: &Utf8Path) -> io::Result<()> {
    if !folder.exists() {
        return fs::rename(staging, folder);
    }
    match renameat_with(CWD, staging.as_std_path(), CWD, folder.as_std_path(), RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            let aside = folder.with_file_name(format!("{}.old", staging.file_name().unwrap_or("jobc")));
            fs::rename(folder, &aside)?;
            if let Err(error) = fs::rename(staging, folder) {
                fs::rename(&aside, folder)?;
                return Err(error);
            }
            fs::remove_dir_all(aside)
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(path: &str, text: &str) -> Artifact {
        Artifact { path: path.into(), mode: 0o644, bytes: text.as_bytes().to_vec() }
    }

    fn temporary() -> (tempfile::TempDir, Utf8PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().join("out/job/local")).unwrap();
        (folder, path)
    }

    #[test]
    fn what_is_written_is_there_and_nothing_else() {
        let (_keep, folder) = temporary();
        assert_eq!(
            write(&folder, &[artifact("plan.json", "1"), artifact("oci/a/config.json", "2")]).unwrap(),
            Written::Changed
        );
        assert_eq!(write(&folder, &[artifact("plan.json", "3")]).unwrap(), Written::Changed);
        assert_eq!(list(&folder).unwrap().into_iter().collect::<Vec<_>>(), ["plan.json"]);
        assert_eq!(fs::read_to_string(folder.join("plan.json")).unwrap(), "3");
        let beside: Vec<_> = folder.parent().unwrap().read_dir_utf8().unwrap().collect();
        assert_eq!(beside.len(), 1, "no staging folder is left: {beside:?}");
    }

    #[test]
    fn unchanged_files_keep_their_times() {
        let (_keep, folder) = temporary();
        let time = || fs::metadata(folder.join("plan.json")).unwrap().modified().unwrap();
        write(&folder, &[artifact("plan.json", "1"), artifact("sourcemap.json", "1")]).unwrap();
        let before = time();
        assert_eq!(
            write(&folder, &[artifact("plan.json", "1"), artifact("sourcemap.json", "1")]).unwrap(),
            Written::Unchanged
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
        write(&folder, &[artifact("plan.json", "1"), artifact("sourcemap.json", "2")]).unwrap();
        assert_eq!(time(), before);
    }

    #[test]
    fn other_peoples_files_are_never_replaced() {
        let (_keep, folder) = temporary();
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("thesis.tex"), "x").unwrap();
        let error = write(&folder, &[artifact("plan.json", "1")]).unwrap_err().to_string();
        assert!(error.contains("`thesis.tex`, which jobc did not write"), "{error}");
        assert!(folder.join("thesis.tex").exists());
    }
}
