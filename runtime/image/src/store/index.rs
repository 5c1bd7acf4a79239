//! index.json: the names of images, changed under a lock and replaced as a whole.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::directory::{Store, open_lock};
use super::document::{read_index, sorted_json};
use super::writer::flock_retrying;
use crate::manifest::Descriptor;
use crate::manifest::Index;
use crate::manifest::REF_NAME;
use jobc_schema::digest::Digest;
use jobc_schema::reference::Reference;
use jobc_sys::error::{Error, Result};
use jobc_sys::write_atomic::{Durability, write_atomic};

/// An image under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedImage {
    /// The whole reference, `docker.io/library/busybox:latest`; absent for what has lost its name.
    pub name: Option<String>,
    /// Its target: an index or a manifest.
    pub descriptor: Descriptor,
    /// The shared store that it is in; absent for an image of the own store.
    pub shared: Option<PathBuf>,
}

impl Store {
    /// Creates the files that make a directory a layout.
    pub(super) fn create_layout(&self) -> Result<()> {
        let layout = self.root.join("oci-layout");
        if self.root.join("index.json").is_file() && layout.is_file() {
            return Ok(());
        }
        let _lock = self.lock()?;
        if !self.root.join("index.json").exists() {
            self.replace("index.json", &sorted_json(&Index::default()))?;
        }
        if !layout.exists() {
            self.replace("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
        }
        Ok(())
    }

    /// Every image, by name; those of shared stores too, unless a store above has an image of that name.
    ///
    /// # Errors
    ///
    /// index.json is invalid.
    pub fn images(&self) -> Result<Vec<NamedImage>> {
        let mut images = named(self.read_index()?, None);
        for shared in &self.shared {
            let further = named(shared.read_index()?, Some(shared.root()));
            let is_hidden = |image: &NamedImage| match &image.name {
                Some(name) => images.iter().any(|above| above.name.as_ref() == Some(name)),
                None => images.iter().any(|above| above.descriptor.digest == image.descriptor.digest),
            };
            let further: Vec<_> = further.into_iter().filter(|image| !is_hidden(image)).collect();
            images.extend(further);
        }
        images.sort_by(|a, b| (&a.name, &a.descriptor.digest).cmp(&(&b.name, &b.descriptor.digest)));
        Ok(images)
    }

    /// The target of a name.
    ///
    /// # Errors
    ///
    /// As [`images`](Self::images).
    pub fn find(&self, name: &Reference) -> Result<Option<Descriptor>> {
        if let Some(found) = self.find_in(&self.read_index()?.manifests, name) {
            return Ok(Some(found));
        }
        for shared in &self.shared {
            if let Some(found) = self.find_in(&shared.read_index()?.manifests, name) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The target of a name among the images of a store.
    fn find_in(&self, images: &[Descriptor], name: &Reference) -> Option<Descriptor> {
        let called = |descriptor: &&Descriptor, wanted: &str| {
            descriptor.annotations.get(REF_NAME).is_some_and(|name| name == wanted)
        };
        if let Some(digest) = &name.digest {
            // By its digest, regardless of its tag and registry.
            return images
                .iter()
                .find(|descriptor| descriptor.digest == *digest)
                .map(Descriptor::bare)
                .or_else(|| self.inner_manifest(images, digest));
        }
        let wanted = name.to_string();
        images.iter().find(|descriptor| called(descriptor, &wanted)).map(Descriptor::bare)
    }

    /// A manifest that is named by an index in the store.
    fn inner_manifest(&self, images: &[Descriptor], digest: &Digest) -> Option<Descriptor> {
        let indexes = images.iter().filter(|image| crate::manifest::media::is_index(&image.media_type));
        indexes
            .filter_map(|index| super::document::parse::<Index>(&self.bytes(index).ok()?).ok())
            .flat_map(|index| index.manifests)
            .find(|manifest| manifest.digest == *digest && self.has(digest))
            .map(|manifest| manifest.bare())
    }

    /// Gives an image a name, which is removed from its previous image.
    ///
    /// # Errors
    ///
    /// No space left, or the disk fails.
    pub fn tag(&self, name: &Reference, descriptor: &Descriptor) -> Result<()> {
        self.change(|index| {
            let name = name.to_string();
            index.manifests.retain(|other| other.annotations.get(REF_NAME) != Some(&name));
            let mut named = descriptor.bare();
            named.annotations.insert(REF_NAME.to_owned(), name);
            index.manifests.push(named);
        })
    }

    /// Removes a name; returns whether it existed. Its blobs are removed when the store is collected.
    ///
    /// # Errors
    ///
    /// No space left, or the disk fails.
    pub fn untag(&self, name: &str) -> Result<bool> {
        let mut found = false;
        self.change(|index| {
            index.manifests.retain(|other| {
                let is_it = other.annotations.get(REF_NAME).is_some_and(|there| there == name);
                found |= is_it;
                !is_it
            });
        })?;
        Ok(found)
    }

    /// Takes an image away under all of its names; returns those.
    ///
    /// # Errors
    ///
    /// No space left, or the disk fails.
    pub fn untag_all(&self, digest: &Digest) -> Result<Vec<String>> {
        let mut names = Vec::new();
        self.change(|index| {
            index.manifests.retain(|other| {
                if other.digest == *digest {
                    names.extend(other.annotations.get(REF_NAME).cloned());
                }
                other.digest != *digest
            });
        })?;
        Ok(names)
    }

    pub(super) fn read_index(&self) -> Result<Index> {
        read_index(&self.root)
    }

    fn change(&self, with: impl FnOnce(&mut Index)) -> Result<()> {
        let _lock = self.lock()?;
        let mut index = self.read_index()?;
        with(&mut index);
        index.manifests.sort_by(|a, b| {
            (a.annotations.get(REF_NAME), &a.digest).cmp(&(b.annotations.get(REF_NAME), &b.digest))
        });
        self.replace("index.json", &sorted_json(&index))
    }

    /// The lock of index.json; held until it is dropped.
    fn lock(&self) -> Result<File> {
        let file = open_lock(&self.root.join("lock"))?;
        flock_retrying(&file)
            .map_err(|errno| Error::system(format!("lock the store `{}`", self.root.display()), errno))?;
        Ok(file)
    }

    /// Replaces a file of the layout with one that is completely on the disk.
    fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.root.join(name);
        write_atomic(&path, bytes, 0o666, Durability::Disk)
            .map_err(|error| self.failed("write", &path, &error))
    }
}

/// The images of an index, and the shared store that they are in.
fn named(index: Index, shared: Option<&Path>) -> Vec<NamedImage> {
    let named = |mut descriptor: Descriptor| NamedImage {
        name: descriptor.annotations.shift_remove(REF_NAME),
        descriptor,
        shared: shared.map(Path::to_owned),
    };
    index.manifests.into_iter().map(named).collect()
}
