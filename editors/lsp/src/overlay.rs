//! The files that a job reads: open files in the editor first, then those on disk.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::files::Files;

use crate::documents::Documents;
use crate::uri;

/// Files below the directory of the job; absolute paths are used unchanged.
pub(crate) struct Overlay<'a> {
    /// The directory of the job; `None` for a text without a file, which cannot read other files.
    pub(crate) directory: Option<&'a Utf8Path>,
    pub(crate) documents: &'a Documents,
    pub(crate) disk: &'a dyn Files,
    /// The requested paths, whether or not the files exist.
    pub(crate) requested: RefCell<BTreeSet<Utf8PathBuf>>,
}

impl Overlay<'_> {
    fn absolute(&self, path: &Utf8Path) -> Option<Utf8PathBuf> {
        let path = if path.has_root() { uri::normal(path) } else { uri::normal(&self.directory?.join(path)) };
        self.requested.borrow_mut().insert(path.clone());
        Some(path)
    }
}

impl Files for Overlay<'_> {
    fn read(&self, path: &Utf8Path) -> io::Result<Vec<u8>> {
        let path = self.absolute(path).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        match self.documents.at(&path) {
            Some((_, open)) => Ok(open.text.as_str().as_bytes().to_vec()),
            None => self.disk.read(&path),
        }
    }

    fn exists(&self, path: &Utf8Path) -> bool {
        let Some(path) = self.absolute(path) else { return false };
        self.documents.at(&path).is_some() || self.disk.exists(&path)
    }

    fn template(&self, digest: &str) -> io::Result<Vec<u8>> {
        self.disk.template(digest)
    }
}
