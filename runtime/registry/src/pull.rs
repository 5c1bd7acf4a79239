//! Fetching an image: its list, its manifest, its configuration and its layers.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::atomic::AtomicBool;

use jobc_image::manifest::media;
use jobc_image::store::Store;
use jobc_image::{Descriptor, Platform, Progress, ProgressFn, Reference, unpack};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::parallel;

use crate::MAX_CONCURRENT;
use crate::blob::BlobFetch;
use crate::client::{Client, try_each};
use crate::manifest::{self, Document};
use crate::session::Session;

/// A list may be in a list; deeper nesting is not an image.
const MAX_INDEX_DEPTH: usize = 4;

impl Client {
    /// Resolves a name at the registry and fetches its content into the store under that name: of a list, the image for
    /// the platform. Content in the store is not fetched again; interrupted downloads resume.
    ///
    /// Returns the target of the name: a list or a manifest, with the digest at the registry.
    ///
    /// # Errors
    ///
    /// The registry does not have it, denies access, or sends other content; it is not for the platform; the network
    /// fails; no space left. The name then keeps its previous target.
    pub fn pull(
        &self,
        store: &Store,
        reference: &Reference,
        platform: &Platform,
        on_progress: ProgressFn<'_>,
    ) -> Result<Descriptor> {
        self.pull_with(store, reference, platform, on_progress, None)
    }

    /// The same, and unpacks the layers as they come ([`unpack::follow`]); `stopped` ends the unpacking soon.
    ///
    /// # Errors
    ///
    /// As [`pull`](Self::pull). What is wrong with a layer is an error where its directory is needed.
    pub fn pull_unpacked(
        &self,
        store: &Store,
        reference: &Reference,
        platform: &Platform,
        on_progress: ProgressFn<'_>,
        stopped: &AtomicBool,
    ) -> Result<Descriptor> {
        self.pull_with(store, reference, platform, on_progress, Some(stopped))
    }

    fn pull_with(
        &self,
        store: &Store,
        reference: &Reference,
        platform: &Platform,
        on_progress: ProgressFn<'_>,
        unpacked: Option<&AtomicBool>,
    ) -> Result<Descriptor> {
        let sessions = self.sessions(&reference.registry)?;
        for note in sessions.iter().filter_map(Session::insecure_note) {
            on_progress(Progress::Note(note));
        }
        let top = document(&sessions, store, reference, on_progress)?;
        for note in sessions.iter().filter_map(Session::login_note) {
            on_progress(Progress::Note(note));
        }
        store_document(store, &top)?;
        let named = top.descriptor.clone();
        let mut at = top;
        for _ in 0..MAX_INDEX_DEPTH {
            if !media::is_index(&at.descriptor.media_type) {
                break;
            }
            let entry = store.entry_for(&at.descriptor, platform)?;
            at = document(&sessions, store, &reference.at(&entry.digest), on_progress)?;
            if at.descriptor.media_type != entry.media_type || at.descriptor.size != entry.size {
                return Err(Error::new(
                    Kind::System,
                    format!("`{}` lists {} with the wrong media type", reference.familiar(), entry.digest),
                )
                .help("ask its author for another one"));
            }
            store_document(store, &at)?;
        }
        if media::is_index(&at.descriptor.media_type) {
            let message = format!("`{}` is a nested list of lists, not an image", reference.familiar());
            return Err(Error::new(Kind::Unsupported, message).help("name a container image"));
        }
        let image = manifest::image(reference, &at)?;
        let mut seen = BTreeSet::new();
        let blobs: Vec<&Descriptor> = std::iter::once(&image.config)
            .chain(&image.layers)
            .filter(|blob| seen.insert(blob.digest.clone()))
            .collect();
        let mut missing = announce(store, &blobs, on_progress);
        let fetch = |blobs: &[&Descriptor]| {
            parallel::for_each(blobs, MAX_CONCURRENT, |blob, stopped| {
                try_each(&sessions, on_progress, |session| {
                    let repository = &reference.repository;
                    BlobFetch { session, store, repository, progress: on_progress, stopped }.fetch(blob)
                })
            })
        };
        if let Some(stopped) = unpacked {
            // The configuration says what the layers are to be. Then the largest come first, as they are unpacked.
            let configuration = missing.iter().position(|blob| blob.digest == image.config.digest);
            fetch(&configuration.map(|at| missing.remove(at)).into_iter().collect::<Vec<_>>())?;
            missing.sort_by_key(|blob| std::cmp::Reverse(blob.size));
            let image = store.image(&at.descriptor, platform)?;
            unpack::follow(store, &image, on_progress, stopped, || fetch(&missing))?;
        } else {
            fetch(&missing)?;
        }
        // Only what can be run gets the name.
        store.image(&at.descriptor, platform)?;
        store.tag(reference, &named)?;
        Ok(named)
    }
}

/// Fetches a document, unless it is named by a digest that the store has.
fn document(
    sessions: &[Session],
    store: &Store,
    reference: &Reference,
    on_progress: ProgressFn<'_>,
) -> Result<Document> {
    if let Some(digest) = &reference.digest
        && let Some(known) = stored_document(store, reference, digest)
    {
        return Ok(known);
    }
    try_each(sessions, on_progress, |session| session.document(reference))
}

/// A document of the store; nothing if it does not exist, or was changed.
fn stored_document(store: &Store, reference: &Reference, digest: &jobc_image::Digest) -> Option<Document> {
    let size = store.blob(digest).ok()?.metadata().ok()?.len();
    let bytes = store.bytes(&Descriptor::new("", digest.clone(), size)).ok()?;
    let media_type = manifest::kind(reference, None, &bytes).ok()?;
    Some(Document { descriptor: Descriptor::new(media_type, digest.clone(), size), bytes })
}

/// Puts a document into the store, under its digest.
fn store_document(store: &Store, document: &Document) -> Result<()> {
    if let Some(mut writer) = store.resume(&document.descriptor)? {
        writer.restart()?;
        writer.write_all(&document.bytes).map_err(|error| store.write_error("write to", &error))?;
        writer.finish(Some(&document.descriptor))?;
    }
    Ok(())
}

/// Tells of every blob before the first comes, so that it can be shown how much there is; returns those that are
/// missing.
fn announce<'a>(store: &Store, blobs: &[&'a Descriptor], on_progress: ProgressFn<'_>) -> Vec<&'a Descriptor> {
    let is_missing = |blob: &&'a Descriptor| {
        let known = store.has(&blob.digest);
        let done = if known { blob.size } else { 0 };
        on_progress(Progress::Blob { digest: blob.digest.clone(), done, total: Some(blob.size), known });
        !known
    };
    blobs.iter().copied().filter(is_missing).collect()
}
