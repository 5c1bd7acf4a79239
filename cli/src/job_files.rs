//! Finds the job files below directories.

use camino::{Utf8Path, Utf8PathBuf};

use crate::input::{InputError, JOB_FILE_NAMES};
use crate::watch;

/// Maximum depth of directories below a directory.
const MAX_DEPTH: usize = 16;
/// The job files of the arguments; a directory without a job file of its own stands for all job files below it.
///
/// # Errors
/// A directory without any.
pub(crate) fn find(given: &[Utf8PathBuf], golden: &str) -> Result<Vec<Utf8PathBuf>, InputError> {
    find_named(given, &JOB_FILE_NAMES, golden)
}

/// The files with one of the names, in the same way.
///
/// # Errors
/// A directory without any.
pub(crate) fn find_named(
    given: &[Utf8PathBuf],
    names: &[&str],
    golden: &str,
) -> Result<Vec<Utf8PathBuf>, InputError> {
    let mut jobs = Vec::new();
    for path in given {
        if !path.is_dir() {
            jobs.push(path.clone());
            continue;
        }
        let jobs_here = names.iter().filter(|_| names == JOB_FILE_NAMES).map(|name| path.join(name));
        if let Some(job) = jobs_here.into_iter().find(|job| job.is_file()) {
            jobs.push(job);
            continue;
        }
        let before = jobs.len();
        below(path, 0, (names, golden), &mut jobs);
        if jobs.len() == before {
            return Err(InputError(format!("`{path}` is a directory without a job.yaml in it or below it")));
        }
    }
    Ok(jobs)
}

/// The files below a directory, by name; hidden directories, those with outputs and `node_modules` hold none of the
/// user's.
fn below(directory: &Utf8Path, depth: usize, (names, golden): (&[&str], &str), jobs: &mut Vec<Utf8PathBuf>) {
    watch::note(directory);
    let Ok(entries) = directory.read_dir_utf8() else { return };
    let mut paths: Vec<Utf8PathBuf> = entries.flatten().map(camino::Utf8DirEntry::into_path).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default();
        if path.is_file() && names.contains(&name) {
            jobs.push(path);
        } else if path.is_dir()
            && !path.is_symlink()
            && depth < MAX_DEPTH
            && !name.starts_with('.')
            && !["out", "node_modules", "target", golden].contains(&name)
            && !path.join("sourcemap.json").is_file()
        {
            below(&path, depth + 1, (names, golden), jobs);
        }
    }
}
