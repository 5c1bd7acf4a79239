//! The files next to a job file, on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::files::{CodeError, Files, PackedCode};

use crate::{boundary, confine, inputs, plugins, template_cache, watch};

/// How many names of a directory are read: the completion is for people.
const MAX_ENTRIES: usize = 1000;

/// Files below the job file's directory; absolute paths are used unchanged.
#[derive(Debug)]
pub(crate) struct DiskFiles {
    directory: Utf8PathBuf,
    /// Code that was packed: once for all jobs of a matrix, which then have the same.
    packed: Mutex<BTreeMap<Utf8PathBuf, Result<Arc<PackedCode>, CodeError>>>,
    /// What programs name, likewise.
    mentions: Mutex<BTreeMap<Utf8PathBuf, BTreeSet<String>>>,
}

impl DiskFiles {
    pub(crate) fn new(directory: impl Into<Utf8PathBuf>) -> Self {
        Self { directory: directory.into(), packed: Mutex::default(), mentions: Mutex::default() }
    }
}

impl Files for DiskFiles {
    fn read(&self, path: &Utf8Path) -> io::Result<Vec<u8>> {
        let path = self.directory.join(path);
        watch::note(&path);
        confine::permit(&path)?;
        let bytes = std::fs::read(&path);
        inputs::note_content(&path, bytes.as_deref().ok());
        bytes
    }

    fn exists(&self, path: &Utf8Path) -> bool {
        let path = self.directory.join(path);
        watch::note(&path);
        let exists = path.exists();
        inputs::note_existence(&path, exists);
        exists && confine::permit(&path).is_ok()
    }

    fn name(&self) -> Option<String> {
        self.directory.file_name().map(str::to_owned)
    }

    fn is_last(&self, directory: &Utf8Path) -> bool {
        boundary::is_last(directory.as_std_path())
    }

    fn plugins(&self, directory: &Utf8Path) -> Vec<(String, String)> {
        let installed = plugins::installed(&self.directory.join(directory));
        installed.into_iter().map(|plugin| (plugin.name.to_string(), plugin.place)).collect()
    }

    fn entries(&self, directory: &Utf8Path) -> Vec<String> {
        let Ok(found) = self.directory.join(directory).read_dir_utf8() else { return vec![] };
        let name = |entry: camino::Utf8DirEntry| {
            let end = if entry.path().is_dir() { "/" } else { "" };
            format!("{}{end}", entry.file_name())
        };
        let mut names: Vec<String> = found.flatten().take(MAX_ENTRIES).map(name).collect();
        names.sort();
        names
    }

    fn code(&self, directory: &Utf8Path) -> Result<Option<Arc<PackedCode>>, CodeError> {
        let path = self.directory.join(directory);
        watch::note(&path);
        let pack = || {
            confine::permit(&path).map_err(|error| CodeError {
                is_size: false,
                message: format!("cannot read the code in `{directory}`: {error}"),
                note: "a path is relative to the directory of the job file".to_owned(),
            })?;
            jobc_code::pack(&path, directory.as_str()).map(Arc::new)
        };
        let mut packed = self.packed.lock().unwrap_or_else(PoisonError::into_inner);
        let packed = packed.entry(path.clone()).or_insert_with(pack).clone()?;
        for file in packed.files.iter().filter_map(|file| Utf8Path::from_path(file)) {
            watch::note(&path.join(file));
        }
        Ok(Some(packed))
    }

    fn mentions(&self, path: &Utf8Path) -> BTreeSet<String> {
        let path = self.directory.join(path);
        if confine::permit(&path).is_err() {
            return BTreeSet::new();
        }
        // A directory changes with each file that a job writes there; the programs in it are watched by their kind.
        if !path.is_dir() {
            watch::note(&path);
        }
        let mut known = self.mentions.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(path.clone()).or_insert_with(|| jobc_code::mentions(&path)).clone()
    }

    fn template(&self, digest: &str) -> io::Result<Vec<u8>> {
        template_cache::read(digest)
    }
}
