//! The files next to a job file, on disk, and how files of users are replaced.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::files::Files;

use crate::input::reason;
use crate::watch;

/// Files below the job file's directory; absolute paths are used unchanged.
#[derive(Debug)]
pub(crate) struct DiskFiles {
    directory: Utf8PathBuf,
}

impl DiskFiles {
    pub(crate) fn new(directory: impl Into<Utf8PathBuf>) -> Self {
        Self { directory: directory.into() }
    }
}

impl Files for DiskFiles {
    fn read(&self, path: &Utf8Path) -> io::Result<Vec<u8>> {
        let path = self.directory.join(path);
        watch::note(&path);
        std::fs::read(path)
    }

    fn exists(&self, path: &Utf8Path) -> bool {
        let path = self.directory.join(path);
        watch::note(&path);
        path.exists()
    }
}

/// Replaces the text of a file as a whole: a reader sees the old text or the new one. A link keeps its target.
pub(crate) fn replace(file: &Utf8Path, text: &str) -> std::io::Result<()> {
    let target = file.canonicalize_utf8()?;
    let name = target.file_name().unwrap_or_default();
    let beside = target.with_file_name(format!(".{name}.jobc-{}", std::process::id()));
    let result = std::fs::write(&beside, text)
        .and_then(|()| std::fs::set_permissions(&beside, target.metadata()?.permissions()))
        .and_then(|()| std::fs::rename(&beside, &target));
    if result.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    result.map_err(|error| std::io::Error::other(reason(&error)))
}
