//! The files next to a job file, which the compiler reads through a small trait, so that it does no I/O itself.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

/// Reads files by paths relative to the job file's directory (or absolute).
pub trait Files {
    /// The bytes of a file.
    ///
    /// # Errors
    /// The error of the file system, or of the caller that provides the files.
    fn read(&self, path: &Utf8Path) -> io::Result<Vec<u8>>;

    /// Whether a file or directory exists.
    fn exists(&self, path: &Utf8Path) -> bool;

    /// The name of the directory, if it has one.
    fn name(&self) -> Option<String> {
        None
    }

    /// Whether the search for a targets file in parent directories ends at this one, outside a repository.
    fn is_last(&self, _directory: &Utf8Path) -> bool {
        true
    }

    /// The plug-in backends that a targets file in a directory may name, for completion: name and description. Nothing is
    /// started to find them.
    fn plugins(&self, _directory: &Utf8Path) -> Vec<(String, String)> {
        vec![]
    }

    /// The names in a directory, for completion; those of directories end in a slash.
    fn entries(&self, _directory: &Utf8Path) -> Vec<String> {
        vec![]
    }

    /// The code in a directory, packed for a job that runs elsewhere; `None` where nothing is packed, such as in an editor.
    ///
    /// # Errors
    /// The directory cannot be packed.
    fn code(&self, _directory: &Utf8Path) -> Result<Option<Arc<PackedCode>>, CodeError> {
        Ok(None)
    }

    /// What the programs in a file or directory name of jobc's variables and files, as [`crate::asks::mentions`] finds it;
    /// nothing where no files are read, such as in an editor.
    fn mentions(&self, _path: &Utf8Path) -> BTreeSet<String> {
        BTreeSet::new()
    }

    /// The files of a template from Git, packed, by the digest that `jobc.lock` has. What comes back is compared with
    /// the digest.
    ///
    /// # Errors
    /// The template is not on this host.
    fn template(&self, digest: &str) -> io::Result<Vec<u8>> {
        let _ = digest;
        Err(io::ErrorKind::NotFound.into())
    }
}

/// The code of a job as one archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedCode {
    /// A gzipped tar archive. The same files give the same bytes.
    pub bytes: Vec<u8>,
    /// The largest entries before packing, with their sizes in bytes.
    pub largest: Vec<(String, u64)>,
    /// The files in it, by path in the directory.
    pub files: Vec<PathBuf>,
    /// What does not go with the job although no pattern excludes it, one sentence each.
    pub remarks: Vec<String>,
}

/// Why code cannot be packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeError {
    /// Whether there is too much of it.
    pub is_size: bool,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub note: String,
}

/// The names of a targets file.
const TARGET_NAMES: [&str; 2] = ["targets.yaml", "targets.yml"];

/// `targets.yaml` next to a job file, or in a parent directory up to the root of the repository; outside a repository, up
/// to a directory that `is_last`.
///
/// `directory` is absolute; `exists` returns whether a path exists.
pub fn find_targets(
    directory: &Utf8Path,
    exists: impl Fn(&Utf8Path) -> bool,
    is_last: impl Fn(&Utf8Path) -> bool,
) -> Option<Utf8PathBuf> {
    let inside_repository = directory.ancestors().any(|directory| exists(&directory.join(".git")));
    for directory in directory.ancestors() {
        if let Some(found) = TARGET_NAMES.iter().map(|name| directory.join(name)).find(|path| exists(path)) {
            return Some(found);
        }
        let is_end = if inside_repository { exists(&directory.join(".git")) } else { is_last(directory) };
        if is_end {
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

    fn plugins(&self, directory: &Utf8Path) -> Vec<(String, String)> {
        let name = |path: &Utf8PathBuf| {
            let below = path.strip_prefix(directory.join("backends")).ok()?;
            Some(below.parent().filter(|_| below.file_name() == Some("backend.yaml"))?.to_string())
        };
        self.0.keys().filter_map(name).map(|name| (name, "templates".to_owned())).collect()
    }

    fn entries(&self, directory: &Utf8Path) -> Vec<String> {
        let name = |path: &Utf8PathBuf| {
            let below = path.strip_prefix(directory).ok()?;
            let first = below.iter().next()?;
            Some(if below.as_str() == first { first.to_owned() } else { format!("{first}/") })
        };
        self.0.keys().filter_map(name).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The archive of a directory is a file of the same name.
    fn code(&self, directory: &Utf8Path) -> Result<Option<Arc<PackedCode>>, CodeError> {
        let packed = |bytes: &Vec<u8>| PackedCode {
            bytes: bytes.clone(),
            largest: vec![("model.bin".to_owned(), 5 << 20), ("train.py".to_owned(), 4096)],
            files: vec![],
            remarks: vec![],
        };
        Ok(self.0.get(directory).map(packed).map(Arc::new))
    }

    fn mentions(&self, path: &Utf8Path) -> BTreeSet<String> {
        let inside = self.0.iter().filter(|(known, _)| path == "." || known.starts_with(path));
        inside.flat_map(|(_, bytes)| crate::asks::mentions(&String::from_utf8_lossy(bytes))).collect()
    }

    fn template(&self, digest: &str) -> io::Result<Vec<u8>> {
        self.read(Utf8Path::new(digest))
    }
}
