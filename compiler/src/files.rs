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

/// The names of a targets file.
const TARGET_NAMES: [&str; 2] = ["targets.yaml", "targets.yml"];

/// `targets.yaml` beside a job file, or in a parent folder up to the root of the repository.
///
/// `folder` is absolute; `exists` says whether something is at a path. Outside a repository only the job file's own folder
/// counts: a stray file in /home decides nothing.
pub fn find_targets(folder: &Utf8Path, exists: impl Fn(&Utf8Path) -> bool) -> Option<Utf8PathBuf> {
    let inside_repository = folder.ancestors().any(|folder| exists(&folder.join(".git")));
    for folder in folder.ancestors() {
        if let Some(found) = TARGET_NAMES.iter().map(|name| folder.join(name)).find(|path| exists(path)) {
            return Some(found);
        }
        if !inside_repository || exists(&folder.join(".git")) {
            return None;
        }
    }
    None
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
