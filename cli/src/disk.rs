//! The files next to a job file, on disk.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::files::Files;

use crate::{confine, watch};

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
        confine::permit(&path)?;
        std::fs::read(path)
    }

    fn exists(&self, path: &Utf8Path) -> bool {
        let path = self.directory.join(path);
        watch::note(&path);
        path.exists() && confine::permit(&path).is_ok()
    }
}
