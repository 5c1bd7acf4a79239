//! What a job is compared with: a Git revision, a directory of built files, or another job file.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use camino::{Utf8Path, Utf8PathBuf};

use crate::confine;
use crate::input::{InputError, JOB_FILE_NAMES, absolute, reason, shorten};

/// The number of revisions that were checked out: both sides may be one.
static TREES: AtomicUsize = AtomicUsize::new(0);

/// A side of a comparison.
pub(super) enum Base {
    /// A directory that `jobc build -o` has written.
    Built(Utf8PathBuf),
    /// A job file.
    Job(Utf8PathBuf),
    /// The files of a revision.
    Revision(Tree),
}

/// The files of a revision in a temporary directory, which is removed on drop.
pub(super) struct Tree {
    root: Utf8PathBuf,
    /// The job's directory in it.
    job: Utf8PathBuf,
    name: String,
}

impl Tree {
    /// The directory that the job's directory was at that revision.
    pub(super) fn path(&self) -> &Utf8Path {
        &self.job
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

impl Base {
    /// What a name on the command line means, seen from the job's directory. Files and directories come before revisions.
    ///
    /// # Errors
    /// A name that is none of these, and errors of git.
    pub(super) fn find(name: Option<&str>, job_directory: &Utf8Path) -> Result<Self, InputError> {
        let name = name.unwrap_or("HEAD");
        let path = Utf8Path::new(name);
        if path.is_file() {
            return Ok(Self::Job(path.to_owned()));
        }
        if path.is_dir() {
            let job = JOB_FILE_NAMES.iter().map(|file| path.join(file)).find(|file| file.is_file());
            return job.map_or_else(|| absolute(path).map(Self::Built), |job| Ok(Self::Job(job)));
        }
        Ok(Self::Revision(check_out(name, job_directory)?))
    }

    /// As above, for a directory of jobs: a revision, or another directory of jobs.
    ///
    /// # Errors
    /// A name that is none of these, and errors of git.
    pub(super) fn of_many(name: Option<&str>, directory: &Utf8Path) -> Result<Self, InputError> {
        let name = name.unwrap_or("HEAD");
        let path = Utf8Path::new(name);
        if path.is_file() {
            return Err(InputError(format!(
                "`{name}` is a file, and all jobs of a directory are compared; name a directory or a revision"
            )));
        }
        if path.is_dir() {
            absolute(path).map(Self::Built)
        } else {
            Ok(Self::Revision(check_out(name, directory)?))
        }
    }

    /// The base of the comparison, for people.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Built(path) | Self::Job(path) => shorten(path).into_string(),
            Self::Revision(tree) => tree.name.clone(),
        }
    }
}

/// Writes the files of a revision to a temporary directory. The repository, its index and its files are not changed.
fn check_out(revision: &str, job_directory: &Utf8Path) -> Result<Tree, InputError> {
    let commit = format!("{revision}^{{commit}}");
    let top = git(job_directory, &["rev-parse", "--show-toplevel"], None).map_err(|_| {
        InputError(format!(
            "`{revision}` is not a file or directory, and `{job_directory}` is not in a Git repository; name the directory that \
             `jobc build` has written, such as `out`, or another job file"
        ))
    })?;
    let id = git(job_directory, &["rev-parse", "--verify", "--quiet", "--end-of-options", &commit], None)
        .map_err(|_| {
            InputError(format!("`{revision}` is not a file, a directory or a revision of this repository"))
        })?;
    let number = TREES.fetch_add(1, Ordering::Relaxed);
    let directory = std::env::temp_dir().join(format!("jobc-diff-{}-{number}", std::process::id()));
    let root = Utf8PathBuf::from_path_buf(directory)
        .map_err(|path| InputError(format!("`{}` is not UTF-8", path.display())))?;
    std::fs::create_dir(&root)
        .map_err(|error| InputError(format!("cannot create `{root}`: {}", reason(&error))))?;
    let top = absolute(Utf8Path::new(top.trim()))?;
    let below = job_directory.strip_prefix(&top).unwrap_or(Utf8Path::new(""));
    let job = root.join("tree").join(below);
    confine::allow(&root);
    let tree = Tree { job, name: revision.to_owned(), root };
    let index = tree.root.join("index");
    // The targets file is looked for in parent directories up to the repository's.
    let mark = tree.root.join("tree/.git");
    std::fs::create_dir_all(&mark)
        .map_err(|error| InputError(format!("cannot create `{mark}`: {}", reason(&error))))?;
    git(&top, &["read-tree", id.trim()], Some(&index))?;
    let prefix = format!("--prefix={}/tree/", tree.root);
    git(&top, &["checkout-index", "--all", "--quiet", &prefix], Some(&index))?;
    Ok(tree)
}

/// Runs git and returns what it prints. Filters of large files are off: they may need a network.
fn git(directory: &Utf8Path, arguments: &[&str], index: Option<&Utf8Path>) -> Result<String, InputError> {
    let mut command = Command::new("git");
    command
        .args(["-c", "filter.lfs.smudge=cat", "-c", "filter.lfs.process=", "-c", "filter.lfs.required=false"])
        .arg("-C")
        .arg(directory)
        .args(arguments)
        .stdin(Stdio::null());
    if let Some(index) = index {
        command.env("GIT_INDEX_FILE", index);
    }
    let output =
        command.output().map_err(|error| InputError(format!("cannot run `git`: {}", reason(&error))))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(InputError(format!("`git {}` failed: {why}", arguments.first().unwrap_or(&""))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
