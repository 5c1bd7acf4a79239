//! The files beside the jobs, as far as the host has given them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::files::Files;
use serde::Deserialize;

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Entry {
    File(String),
    /// Whether there is a directory.
    Directory(bool),
}

/// Files in memory. Reading cannot wait for the host: what it has not given yet is missing, and named to it.
#[derive(Debug, Default)]
pub(crate) struct HostFiles {
    known: RefCell<BTreeMap<Utf8PathBuf, Entry>>,
    wanted: RefCell<BTreeSet<Utf8PathBuf>>,
}

impl HostFiles {
    /// Takes a file or directory; returns whether it differs from what was there.
    pub(crate) fn take(&self, path: Utf8PathBuf, entry: Entry) -> bool {
        let mut known = self.known.borrow_mut();
        let changed = *known.get(&path).unwrap_or(&Entry::Directory(false)) != entry;
        known.insert(path, entry);
        changed
    }

    /// The paths that were asked for since the last call and are not known.
    pub(crate) fn wanted(&self) -> BTreeSet<Utf8PathBuf> {
        self.wanted.take()
    }

    fn entry(&self, path: &Utf8Path) -> Entry {
        self.known.borrow().get(path).cloned().unwrap_or_else(|| {
            self.wanted.borrow_mut().insert(path.to_owned());
            Entry::Directory(false)
        })
    }
}

impl Files for HostFiles {
    fn read(&self, path: &Utf8Path) -> io::Result<Vec<u8>> {
        match self.entry(path) {
            Entry::File(text) => Ok(text.into_bytes()),
            Entry::Directory(true) => Err(io::ErrorKind::IsADirectory.into()),
            Entry::Directory(false) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn exists(&self, path: &Utf8Path) -> bool {
        self.entry(path) != Entry::Directory(false)
    }
}
