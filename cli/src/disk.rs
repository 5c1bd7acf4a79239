//! The files next to a job file, on disk.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::files::Files;

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
        std::fs::read(self.directory.join(path))
    }

    fn exists(&self, path: &Utf8Path) -> bool {
        self.directory.join(path).exists()
    }
}
