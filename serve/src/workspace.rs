//! The directories that the user opened: what requests may name lies below them.

use camino::{Utf8Path, Utf8PathBuf};
use hyper::StatusCode;
use jobc_sys::error::{Error, Kind, Result, file_error};

use crate::problem::Problem;

/// The names of a targets file.
const TARGETS_FILES: [&str; 2] = ["targets.yaml", "targets.yml"];

/// The opened directories, real and absolute; at least one.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    roots: Vec<Utf8PathBuf>,
    /// The targets file of the first one, as commands find it.
    pub(crate) targets: Option<Utf8PathBuf>,
}

/// Where a job file is compiled.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    pub(crate) directory: Utf8PathBuf,
    /// The paths below which files are read.
    pub(crate) permitted: Vec<Utf8PathBuf>,
}

impl Workspace {
    /// Opens directories.
    ///
    /// # Errors
    /// One cannot be used.
    pub(crate) fn open(roots: &[Utf8PathBuf]) -> Result<Self> {
        let mut opened = vec![];
        for root in roots {
            let real =
                root.canonicalize_utf8().map_err(|error| file_error("use", root.as_std_path(), &error))?;
            if !real.is_dir() {
                return Err(Error::new(Kind::Config, format!("`{root}` is not a directory")));
            }
            opened.push(real);
        }
        let first = opened.first().ok_or_else(|| Error::new(Kind::Config, "no directory is open"))?;
        let files = first.ancestors().flat_map(|above| TARGETS_FILES.map(|name| above.join(name)));
        let targets = files.into_iter().find(|file| file.is_file());
        Ok(Self { roots: opened, targets })
    }

    /// The first directory.
    pub(crate) fn first(&self) -> &Utf8Path {
        &self.roots[0]
    }

    /// All of them.
    pub(crate) fn roots(&self) -> &[Utf8PathBuf] {
        &self.roots
    }

    /// A directory that a request names, by a path below the first root or an absolute one.
    ///
    /// # Errors
    /// It is not there, or outside.
    pub(crate) fn directory(&self, given: Option<&str>) -> std::result::Result<Base, Problem> {
        let Some(given) = given else { return Ok(self.base(self.first().to_owned(), &[])) };
        let outside = || {
            Problem::new(StatusCode::FORBIDDEN, "the directory is outside of those that are open")
                .hint("start the server with `--root DIR` to open more")
        };
        let real = self.first().join(given).canonicalize_utf8().map_err(|_| outside())?;
        if !self.roots.iter().any(|root| real.starts_with(root)) || !real.is_dir() {
            return Err(outside());
        }
        Ok(self.base(real, &[]))
    }

    /// A directory of the server's own, such as that of an upload, with what else a command may read.
    pub(crate) fn own_directory(&self, directory: Utf8PathBuf) -> Base {
        let own = directory.clone();
        self.base(directory, &[own])
    }

    fn base(&self, directory: Utf8PathBuf, more: &[Utf8PathBuf]) -> Base {
        let permitted = self.roots.iter().chain(more).chain(&self.targets).cloned();
        Base { directory, permitted: permitted.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_below_the_roots_are_open() {
        let scratch = tempfile::tempdir().unwrap();
        let top = Utf8Path::from_path(scratch.path()).unwrap();
        for directory in ["root/a", "second", "secret"] {
            std::fs::create_dir_all(top.join(directory)).unwrap();
        }
        std::fs::write(top.join("root/file"), "").unwrap();
        std::os::unix::fs::symlink("../secret", top.join("root/link")).unwrap();
        let workspace = Workspace::open(&[top.join("root"), top.join("second")]).unwrap();
        let second = top.join("second").into_string();
        for given in [None, Some("."), Some("a"), Some("a/.."), Some(second.as_str())] {
            assert!(workspace.directory(given).is_ok(), "{given:?}");
        }
        for given in ["..", "link", "../secret", "/", "/etc", "file", "missing", "a/../../secret"] {
            assert_eq!(workspace.directory(Some(given)).unwrap_err().status, 403, "{given}");
        }
        assert!(Workspace::open(&[top.join("missing")]).is_err());
        assert!(Workspace::open(&[top.join("root/file")]).is_err());
    }
}
