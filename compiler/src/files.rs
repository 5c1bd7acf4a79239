//! The files beside a job file, as the compiler sees them: through one small trait, so that it does no I/O itself.

use std::collections::BTreeMap;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

/// Reads files by paths relative to the job file's folder (or absolute).
pub trait Files {
    /// The bytes of a file.
    ///
    /// # Errors
    /// As the place that has the files says it.
    fn read(&self, path: &Utf8Path) -> io::Result<Vec<u8>>;

    /// Whether a file or folder is there.
    fn exists(&self, path: &Utf8Path) -> bool;
}

/// Files that are only in memory, for tests.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles(pub BTreeMap<Utf8PathBuf, Vec<u8>>);

impl MemoryFiles {
    /// Adds a file.
    #[must_use]
    pub fn with(mut self, path: &str, text: &str) -> Self {
        self.0.insert(path.into(), text.as_bytes().to_vec());
        self
    }
}

impl Files for MemoryFiles {
    fn read(&self, path: &Utf8Path) -> io::Result<Vec<u8>> {
        self.0.get(path).cloned().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn exists(&self, path: &Utf8Path) -> bool {
        path == "." || self.0.keys().any(|known| known == path || known.starts_with(path))
    }
}
