//! The results of steps, by their inputs.
//!
//! The key of a step is derived from the previous key, the instruction with its variables expanded, and the content of
//! the files that it uses. The result is a file of that name in the store's `cache/layers`, with one line: the layer's
//! diff id, then its blob's digest, size and media type, and its creation time; or the word `nothing` and that time,
//! for a step that changed no file. Files are replaced atomically, so any number of builds can use them at once, and
//! missing files are created again.

use std::fs;
use std::path::PathBuf;

use super::layer::StepResult;
use crate::manifest::Descriptor;
use crate::store::Store;
use jobc_schema::digest::{Digest, Hasher};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::write_atomic::{Durability, write_atomic};

/// The inputs that a step's result depends on, so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Key(Hasher);

impl Key {
    /// Begins with what kind of step it is.
    pub(super) fn of(kind: &str) -> Self {
        // Changed whenever a step's result changes with its key staying the same.
        Self::default().with("jobc 1").with(kind)
    }

    /// Adds a part. Its length precedes it, so that no two lists of parts have the same key.
    pub(super) fn with(mut self, part: impl AsRef<[u8]>) -> Self {
        self.add(part);
        self
    }

    /// The same, in place.
    pub(super) fn add(&mut self, part: impl AsRef<[u8]>) {
        let part = part.as_ref();
        self.0.update(&(part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    /// Adds a list.
    pub(super) fn add_all<T: AsRef<[u8]>>(&mut self, parts: impl IntoIterator<Item = T>) {
        let parts: Vec<T> = parts.into_iter().collect();
        self.add((parts.len() as u64).to_le_bytes());
        for part in parts {
            self.add(part);
        }
    }

    /// The key.
    pub(super) fn finish(self) -> Digest {
        self.0.finish()
    }
}

/// A layer that a step has made.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Layer {
    /// The digest of the archive as it is.
    pub(super) diff_id: Digest,
    /// The archive in the store, compressed.
    pub(super) blob: Descriptor,
}

/// The cached results of steps.
#[derive(Debug)]
pub(super) struct Cache<'a> {
    store: &'a Store,
    directory: PathBuf,
    /// Whether nothing that is known counts.
    write_only: bool,
}

/// The value for a step that changed no file.
const NO_CHANGE: &str = "nothing";

impl<'a> Cache<'a> {
    /// The cache of a store; with `unread` what is known is replaced.
    pub(super) fn new(store: &'a Store, unread: bool) -> Result<Self> {
        let directory = store.root().join("cache/layers");
        fs::create_dir_all(&directory).map_err(|error| store.write_error("write to", &error))?;
        Ok(Self { store, directory, write_only: unread })
    }

    /// The result of the step with a key, if it is cached and still exists.
    pub(super) fn get(&self, key: &Digest) -> Option<StepResult> {
        if self.write_only {
            return None;
        }
        let text = fs::read_to_string(self.directory.join(key.hex())).ok()?;
        StepResult::parse(&text)
            .filter(|result| result.layer.as_ref().is_none_or(|layer| self.store.has(&layer.blob.digest)))
    }

    /// Keeps what a step has made.
    pub(super) fn put(&self, key: &Digest, made: &StepResult) -> Result<()> {
        replace_file(&self.directory.join(key.hex()), made.line().as_bytes())
    }
}

impl StepResult {
    /// The line that a file of the cache has.
    pub(super) fn line(&self) -> String {
        let created = self.created;
        match &self.layer {
            None => format!("{NO_CHANGE} {created}\n"),
            Some(Layer { diff_id, blob }) => {
                format!("{diff_id} {} {} {} {created}\n", blob.digest, blob.size, blob.media_type)
            }
        }
    }

    /// Reads such a line.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [NO_CHANGE, created] => Some(Self { layer: None, created: created.parse().ok()? }),
            [diff_id, digest, size, media_type, created] => {
                let blob = Descriptor::new(media_type, digest.parse().ok()?, size.parse().ok()?);
                let layer = Layer { diff_id: diff_id.parse().ok()?, blob };
                Some(Self { layer: Some(layer), created: created.parse().ok()? })
            }
            _ => None,
        }
    }
}

/// Replaces a file as a whole. It is not synced to disk: what a power failure loses is built again.
pub(super) fn replace_file(path: &std::path::Path, bytes: &[u8]) -> Result<()> {
    write_atomic(path, bytes, 0o666, Durability::Rename).map_err(|error| {
        Error::new(Kind::System, format!("cannot write `{}`", path.display())).because(error)
    })
}

#[cfg(test)]
mod tests;
