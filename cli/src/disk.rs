//! The files beside a job file, on disk.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::files::Files;

/// Files below the job file's folder; absolute paths are themselves.
#[derive(Debug)]
pub(crate) struct DiskFiles {
    folder: Utf8PathBuf,
}

impl DiskFiles {
    pub(crate) fn new(folder: impl Into<Utf8PathBuf>) -> Self {
        Self { folder: folder.into() }
    }
}

impl Files for DiskFiles {
    fn read(&self, path: &Utf8Path) -> io::Result<Vec<u8>> {
        std::fs::read(self.folder.join(path))
    }

    fn exists(&self, path: &Utf8Path) -> bool {
        self.folder.join(path).exists()
    }
}
