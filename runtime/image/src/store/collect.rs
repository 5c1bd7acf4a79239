//! Garbage collection: removes what no name, hold or cache entry references.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::directory::Store;
use super::document::parse;
use crate::config::Config;
use crate::manifest::Descriptor;
use crate::manifest::media;
use crate::manifest::{Index, Manifest};
use jobc_schema::digest::Algorithm;
use jobc_schema::digest::Digest;
use jobc_sys::error::{Error, Result};

/// How long an incomplete blob is kept so that its fetch can resume.
const MAX_PARTIAL_AGE: Duration = Duration::from_hours(24);

/// The objects that were removed, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectionReport {
    /// Blobs.
    pub blobs: Vec<Digest>,
    /// Layers as directories.
    pub layers: Vec<PathBuf>,
    /// Incomplete blobs.
    pub partial: usize,
    /// Bytes of the blobs, complete or not; those of directories are not counted.
    pub bytes: u64,
}

/// The objects to keep: blobs and unpacked layers.
#[derive(Debug, Default)]
pub(super) struct ReachableContent {
    /// Blobs.
    pub blobs: HashSet<Digest>,
    /// Diff ids.
    pub layers: HashSet<Digest>,
}

impl Store {
    /// Takes away what no name, no [pin](Store::pin) and, unless `cache` is to go too, no build's cache reaches; and
    /// incomplete blobs, if they are a day old or `partial` is set: a pull then begins anew.
    ///
    /// Nothing is returned if another process works in the store now: the images that it adds have no name yet.
    ///
    /// # Errors
    ///
    /// The disk fails. What was removed until then is gone.
    pub fn collect(&self, cache: bool, partial: bool, rehearse: bool) -> Result<Option<CollectionReport>> {
        match flock(&self.users, FlockOperation::NonBlockingLockExclusive) {
            // A lock that could not be changed is lost (flock(2)).
            Err(Errno::WOULDBLOCK) => {
                self.lock_shared()?;
                return Ok(None);
            }
            Err(errno) => return Err(Error::system("lock the image store", errno)),
            Ok(()) => {}
        }
        let collected = self.collect_locked(cache, partial, rehearse);
        self.lock_shared()?;
        collected.map(Some)
    }

    fn lock_shared(&self) -> Result<()> {
        flock(&self.users, FlockOperation::LockShared)
            .map_err(|errno| Error::system("lock the image store", errno))
    }

    fn collect_locked(&self, cache: bool, partial: bool, rehearse: bool) -> Result<CollectionReport> {
        let remove = |path: &Path| match fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(self.failed("remove", path, &error))
            }
            _ => Ok(()),
        };
        if cache && !rehearse {
            jobc_container::remove::remove(&self.root.join("cache"))?;
            fs::create_dir(self.root.join("cache")).map_err(|error| self.write_error("write to", &error))?;
        }
        let reached = self.reachable(!cache)?;
        let mut collected = CollectionReport::default();
        for (digest, path) in self.blobs()? {
            if !reached.blobs.contains(&digest) {
                collected.bytes += fs::metadata(&path).map_or(0, |data| data.len());
                if !rehearse {
                    remove(&path)?;
                }
                collected.blobs.push(digest);
            }
        }
        for path in self.unpacked_layers()? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            // A suffix after a dot denotes a seam over that layer, or an incomplete layer.
            let (layer, rest) = name.split_once('.').unwrap_or((name, ""));
            if rest.ends_with("part") || !reached.layers.iter().any(|reached| reached.hex() == layer) {
                if !rehearse {
                    jobc_container::remove::remove(&path)?;
                }
                collected.layers.push(path);
            }
        }
        let directory = self.root.join("partial");
        for entry in
            fs::read_dir(&directory).map_err(|error| self.failed("read", &directory, &error))?.flatten()
        {
            let Ok(data) = entry.metadata() else { continue };
            let old = data.modified().is_ok_and(|modified| {
                SystemTime::now().duration_since(modified).is_ok_and(|age| age > MAX_PARTIAL_AGE)
            });
            if partial || old || entry.file_name().as_encoded_bytes().starts_with(b"new-") {
                if !rehearse {
                    remove(&entry.path())?;
                }
                collected.partial += 1;
                collected.bytes += data.len();
            }
        }
        Ok(collected)
    }

    /// Every blob in the store, with its file.
    pub(super) fn blobs(&self) -> Result<Vec<(Digest, PathBuf)>> {
        let mut blobs = Vec::new();
        for algorithm in Algorithm::ALL {
            let directory = self.root.join("blobs").join(algorithm.name());
            for entry in
                fs::read_dir(&directory).map_err(|error| self.failed("read", &directory, &error))?.flatten()
            {
                let name = format!("{}:{}", algorithm.name(), entry.file_name().to_string_lossy());
                if let Ok(digest) = name.parse() {
                    blobs.push((digest, entry.path()));
                }
            }
        }
        blobs.sort();
        Ok(blobs)
    }

    /// Layers as directories: `unpacked/<whose ids>/<diff id>`.
    fn unpacked_layers(&self) -> Result<Vec<PathBuf>> {
        let root = self.root.join("unpacked");
        let kinds = fs::read_dir(&root).map_err(|error| self.failed("read", &root, &error))?;
        let mut layers: Vec<PathBuf> = kinds
            .flatten()
            .filter_map(|kind| fs::read_dir(kind.path()).ok())
            .flat_map(|layers| layers.flatten().map(|layer| layer.path()))
            .filter(|path| path.is_dir())
            .collect();
        layers.sort();
        Ok(layers)
    }

    /// Everything reachable from names, holds and the build cache. Missing objects are skipped.
    pub(super) fn reachable(&self, cache: bool) -> Result<ReachableContent> {
        let mut reached = ReachableContent::default();
        let mut to_see = self.read_index()?.manifests;
        let mounted = self.mounts()?.into_iter().map(|record| record.digest);
        for digest in self.pinned()?.into_iter().chain(mounted) {
            let size = fs::metadata(self.path(&digest)).map_or(0, |data| data.len());
            // Whether it is an index or a manifest is seen by what is in it.
            to_see.push(Descriptor::new("", digest, size));
        }
        if cache {
            for layer in self.cached_layers()? {
                reached.layers.insert(layer.diff_id);
                reached.blobs.insert(layer.blob);
            }
        }
        while let Some(descriptor) = to_see.pop() {
            if !reached.blobs.insert(descriptor.digest.clone()) {
                continue;
            }
            let Ok(bytes) = self.bytes(&descriptor) else { continue };
            let either = descriptor.media_type.is_empty();
            if (either || media::is_index(&descriptor.media_type))
                && let Ok(index) = parse::<Index>(&bytes)
            {
                to_see.extend(index.manifests);
            }
            if (either || media::is_manifest(&descriptor.media_type))
                && let Ok(manifest) = parse::<Manifest>(&bytes)
            {
                if let Ok(config) = self.document::<Config>(&manifest.config) {
                    reached.layers.extend(config.rootfs.diff_ids);
                }
                reached.blobs.insert(manifest.config.digest);
                reached.blobs.extend(manifest.layers.into_iter().map(|layer| layer.digest));
            }
        }
        Ok(reached)
    }

    /// The layers that a build's cache names: files `cache/layers/<key>` of one line, `<diff id> <blob> …`.
    fn cached_layers(&self) -> Result<Vec<CachedLayer>> {
        let directory = self.root.join("cache/layers");
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(|error| self.failed("read", &directory, &error))?,
        };
        Ok(entries
            .flatten()
            .filter_map(|entry| {
                let text = fs::read_to_string(entry.path()).ok()?;
                let mut words = text.split_whitespace();
                Some(CachedLayer { diff_id: words.next()?.parse().ok()?, blob: words.next()?.parse().ok()? })
            })
            .collect())
    }
}

/// A layer that a build made.
struct CachedLayer {
    diff_id: Digest,
    blob: Digest,
}
