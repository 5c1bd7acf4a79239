//! The directory with golden files next to a job file: `golden/<job>/<target>/`.

use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::Output;

use crate::input::JOB_FILE_NAMES;
use crate::inputs::is_file;
use crate::output::list;

/// The directories of jobs and targets that a job file no longer has, below its golden directory.
///
/// If the directory has another job file, the golden files may belong to that: nothing counts as obsolete.
pub(super) fn obsolete(
    directory: &Utf8Path,
    golden: &str,
    file: &Utf8Path,
    outputs: &[Output],
) -> Vec<Utf8PathBuf> {
    let is_alone = JOB_FILE_NAMES.iter().filter(|name| is_file(&directory.join(name))).count() <= 1
        && file.file_name().is_none_or(|name| JOB_FILE_NAMES.contains(&name) || !name.contains('.'));
    if !is_alone {
        return vec![];
    }
    let is_current = |job: &str, target: &str| {
        outputs.iter().any(|output| output.job.name == job && output.job.target.name == target)
    };
    let mut found = Vec::new();
    for job in directories(&directory.join(golden)) {
        for target in directories(&directory.join(golden).join(&job)) {
            let path = Utf8Path::new(&job).join(&target);
            let is_built = directory.join(golden).join(&path).join("plan.json").is_file();
            if is_built && !is_current(&job, &target) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The names of the directories in a directory.
fn directories(path: &Utf8Path) -> Vec<String> {
    let entries = path.read_dir_utf8().into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| entry.file_name().to_owned()).collect()
}

/// Removes golden files of a target, and the directory of the job if it was the last one.
///
/// # Errors
/// A file in it that jobc did not write.
pub(super) fn remove(directory: &Utf8Path) -> io::Result<()> {
    let all: Vec<Utf8PathBuf> = list(directory)?.into_iter().collect();
    crate::output::refuse_foreign(directory, &all.iter().map(Utf8PathBuf::as_path).collect::<Vec<_>>())?;
    fs::remove_dir_all(directory)?;
    if let Some(job) = directory.parent() {
        // It stays if another target is in it.
        let _ = fs::remove_dir(job);
    }
    Ok(())
}
