//! Verifies the integrity of the store: whether every blob matches its name, and every image has its blobs.

use std::fs;
use std::io::Read as _;

use super::directory::Store;
use crate::config::Config;
use crate::manifest::Descriptor;
use crate::manifest::{Index, Manifest};
use crate::manifest::{REF_NAME, media};
use jobc_schema::digest::Digest;
use jobc_schema::digest::Hasher;
use jobc_sys::error::Result;

/// Something that is wrong in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A blob's content does not match its name.
    Changed {
        /// Its name.
        digest: Digest,
        /// Whether it was removed.
        removed: bool,
    },
    /// A blob is referenced and missing.
    Missing {
        /// The missing object.
        digest: Digest,
        /// The name of the image, or a digest.
        by: String,
    },
    /// A document is not valid for its media type.
    Unreadable {
        /// Which.
        digest: Digest,
        /// Why, as text.
        why: String,
    },
    /// A file in `blobs` whose name is not a digest.
    Foreign {
        /// Its path in the store.
        path: String,
    },
}

impl Store {
    /// Verifies the whole store; `remove` deletes blobs that do not match their names, to be pulled again.
    ///
    /// Blobs of other platforms than the pulled one are named by an index and need not be there.
    ///
    /// # Errors
    ///
    /// The disk fails.
    pub fn verify(&self, remove: bool) -> Result<Vec<Finding>> {
        let mut findings = self.foreign_files()?;
        for (digest, path) in self.blobs()? {
            let mut file = match fs::File::open(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                other => other.map_err(|error| self.failed("read", &path, &error))?,
            };
            let mut hasher = Hasher::new(digest.algorithm());
            let mut buffer = vec![0; 1 << 18];
            loop {
                match file.read(&mut buffer).map_err(|error| self.failed("read", &path, &error))? {
                    0 => break,
                    some => hasher.update(&buffer[..some]),
                }
            }
            if hasher.finish() != digest {
                if remove {
                    fs::remove_file(&path).map_err(|error| self.failed("remove", &path, &error))?;
                }
                findings.push(Finding::Changed { digest, removed: remove });
            }
        }
        for image in self.read_index()?.manifests {
            let name = image.annotations.get(REF_NAME).cloned().unwrap_or_else(|| image.digest.to_string());
            self.verify_descriptor(&image, &name, false, &mut findings);
        }
        findings.dedup();
        Ok(findings)
    }

    /// Verifies a descriptor's content and everything that it references.
    fn verify_descriptor(
        &self,
        descriptor: &Descriptor,
        by: &str,
        in_index: bool,
        findings: &mut Vec<Finding>,
    ) {
        if !self.has(&descriptor.digest) {
            // The other platforms of an index are not pulled.
            if !in_index {
                findings.push(Finding::Missing { digest: descriptor.digest.clone(), by: by.to_owned() });
            }
            return;
        }
        let mut unreadable = |why: String| {
            findings.push(Finding::Unreadable { digest: descriptor.digest.clone(), why });
        };
        if media::is_index(&descriptor.media_type) {
            match self.document::<Index>(descriptor) {
                Ok(index) if index.manifests.iter().any(|manifest| self.has(&manifest.digest)) => {
                    for manifest in &index.manifests {
                        self.verify_descriptor(manifest, by, true, findings);
                    }
                }
                Ok(_) => unreadable("all of its manifests are missing".to_owned()),
                Err(error) => unreadable(error.message()),
            }
        } else if media::is_manifest(&descriptor.media_type) {
            match self.document::<Manifest>(descriptor) {
                Ok(manifest) => self.verify_blobs(&manifest, by, findings),
                Err(error) => unreadable(error.message()),
            }
        }
    }

    fn verify_blobs(&self, manifest: &Manifest, by: &str, findings: &mut Vec<Finding>) {
        for part in std::iter::once(&manifest.config).chain(&manifest.layers) {
            if !self.has(&part.digest) {
                findings.push(Finding::Missing { digest: part.digest.clone(), by: by.to_owned() });
            }
        }
        if media::is_config(&manifest.config.media_type)
            && self.has(&manifest.config.digest)
            && let Err(error) = self.document::<Config>(&manifest.config)
        {
            findings
                .push(Finding::Unreadable { digest: manifest.config.digest.clone(), why: error.message() });
        }
    }

    fn foreign_files(&self) -> Result<Vec<Finding>> {
        let known: std::collections::HashSet<_> = self.blobs()?.into_iter().map(|(_, path)| path).collect();
        let root = self.root.join("blobs");
        let directories = fs::read_dir(&root).map_err(|error| self.failed("read", &root, &error))?;
        let mut foreign: Vec<Finding> = directories
            .flatten()
            .filter_map(|directory| fs::read_dir(directory.path()).ok())
            .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
            .filter(|path| !known.contains(path))
            .map(|path| Finding::Foreign {
                path: path.strip_prefix(&self.root).unwrap_or(&path).display().to_string(),
            })
            .collect();
        foreign.sort_by_key(|finding| format!("{finding:?}"));
        Ok(foreign)
    }
}
