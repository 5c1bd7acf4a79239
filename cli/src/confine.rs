//! Limits which files a command reads, for a job file that is not trusted: the variable `JOBC_READ_BELOW`.
//!
//! A job names other files: templates, Dockerfiles, parameters. [`permit`] is asked before any of them is read.
//! Symbolic links are resolved first, so that a link inside the directory cannot lead out of it.

use std::io;
use std::sync::{LazyLock, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};

use crate::platform::files::canonicalize;

/// The environment variable with the directories.
const VARIABLE: &str = "JOBC_READ_BELOW";

/// The directories below which files may be read; nothing if all may.
static DIRECTORIES: LazyLock<Option<Mutex<Vec<Utf8PathBuf>>>> = LazyLock::new(|| {
    let directories = std::env::var_os(VARIABLE)?;
    let paths = std::env::split_paths(&directories).filter_map(|path| Utf8PathBuf::from_path_buf(path).ok());
    // A directory that is gone permits nothing.
    Some(Mutex::new(paths.filter_map(|path| canonicalize(&path).ok()).collect()))
});

/// Permits the files of a directory that this program has made itself.
pub(crate) fn allow(directory: &Utf8Path) {
    if let (Some(directories), Ok(directory)) = (&*DIRECTORIES, canonicalize(directory)) {
        directories.lock().unwrap_or_else(PoisonError::into_inner).push(directory);
    }
}

/// Whether a file may be read.
///
/// # Errors
/// It is outside of the directory, or it does not exist.
pub(crate) fn permit(path: &Utf8Path) -> io::Result<()> {
    let Some(directories) = &*DIRECTORIES else { return Ok(()) };
    let directories = directories.lock().unwrap_or_else(PoisonError::into_inner);
    check(path, &directories)
}

fn check(path: &Utf8Path, directories: &[Utf8PathBuf]) -> io::Result<()> {
    let below = |path: &Utf8Path| directories.iter().any(|directory| path.starts_with(directory));
    match canonicalize(path) {
        Ok(real) if below(&real) => Ok(()),
        Err(error) if nearest_existing(path).is_some_and(|real| below(&real)) => Err(error),
        // Whether it exists is not revealed.
        _ => Err(io::Error::new(io::ErrorKind::PermissionDenied, "outside of the permitted directory")),
    }
}

/// The real path of the nearest ancestor that exists.
fn nearest_existing(path: &Utf8Path) -> Option<Utf8PathBuf> {
    let here = Utf8Path::new(".");
    let ancestors = path.ancestors().skip(1);
    ancestors
        .map(|above| if above.as_str().is_empty() { here } else { above })
        .find_map(|above| canonicalize(above).ok())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn links_and_parent_directories_cannot_escape() {
        let scratch = tempfile::tempdir().unwrap();
        let top = canonicalize(Utf8Path::from_path(scratch.path()).unwrap()).unwrap();
        let inside = top.join("inside");
        std::fs::create_dir_all(inside.join("below")).unwrap();
        for file in [top.join("secret"), inside.join("job.yaml"), inside.join("below/other")] {
            std::fs::write(file, "x").unwrap();
        }
        std::os::unix::fs::symlink(top.join("secret"), inside.join("link")).unwrap();
        std::os::unix::fs::symlink(&top, inside.join("up")).unwrap();
        std::os::unix::fs::symlink(inside.join("below"), inside.join("side")).unwrap();
        let directories = [inside.clone()];
        let kind = |path: &str| check(&inside.join(path), &directories).map_err(|error| error.kind());
        assert_eq!(kind("job.yaml"), Ok(()));
        assert_eq!(kind("side/other"), Ok(()));
        assert_eq!(kind("below/../job.yaml"), Ok(()));
        assert_eq!(kind("below/missing"), Err(io::ErrorKind::NotFound));
        for outside in
            ["link", "up/secret", "../secret", "up/missing", "../missing", "/etc/passwd", "/missing/file"]
        {
            assert_eq!(kind(outside), Err(io::ErrorKind::PermissionDenied), "{outside}");
        }
    }
}
