//! Sending an image: its blobs, then the manifests that name them, the name last.

use std::collections::{BTreeMap, BTreeSet};

use jobc_image::manifest::media;
use jobc_image::store::Store;
use jobc_image::{Descriptor, Digest, Index, Manifest, Platform, Progress, ProgressFn, Reference};
use jobc_schema::percent::encode_segment;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::parallel;
use ureq::Body;
use ureq::http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use ureq::http::{Method, Response, StatusCode};

use crate::MAX_CONCURRENT;
use crate::client::Client;
use crate::manifest::{ACCEPTED_TYPES, DIGEST_HEADER};
use crate::retry::Backoff;
use crate::session::{Call, Payload, RequestError, Session, unexpected_response, wait_for_retry};

/// An image on its way to a registry.
struct ImagePush<'a> {
    session: &'a Session,
    store: &'a Store,
    repository: &'a str,
    progress: ProgressFn<'a>,
    /// Other repositories of the registry that should have a blob, because an image of that name is here.
    mount_sources: BTreeMap<Digest, String>,
}

impl Client {
    /// Sends an image of the store to a registry under a name. Blobs that the registry has, in this repository or in
    /// another from which an image is here, are not sent.
    ///
    /// If only some images of an index are in the store, only the one for the platform is pushed. Returns the new
    /// target of the name in the registry.
    ///
    /// # Errors
    ///
    /// The image is incomplete in the store, the registry denies access, or the network fails. The name then keeps its
    /// previous target.
    pub fn push(
        &self,
        store: &Store,
        descriptor: &Descriptor,
        platform: &Platform,
        destination: &Reference,
        on_progress: ProgressFn<'_>,
    ) -> Result<Descriptor> {
        // Mirrors are for what is fetched.
        let sessions = self.sessions(&destination.registry)?;
        let session = sessions.last().expect("a registry has at least itself");
        if let Some(note) = session.insecure_note() {
            on_progress(Progress::Note(note));
        }
        let repository = &destination.repository;
        let mut sending =
            ImagePush { session, store, repository, progress: on_progress, mount_sources: BTreeMap::new() };
        sending.mount_sources = sending.find_mount_sources(destination)?;
        let top = if sending.is_complete(descriptor)? {
            descriptor.bare()
        } else {
            on_progress(Progress::Note(format!(
                "only the image for `{platform}` is in the store; only this one is pushed"
            )));
            store.manifest_for(descriptor, platform)?
        };
        if let Some(wanted) = destination.digest.as_ref().filter(|wanted| **wanted != top.digest) {
            return Err(Error::new(
                Kind::Config,
                format!("the image has the digest {}, not {wanted}", top.digest),
            )
            .help("omit the digest: the image determines it"));
        }
        let name = destination.tag.clone().unwrap_or_else(|| top.digest.to_string());
        sending.send(&top, &name)?;
        Ok(top)
    }

    /// Whether a tag of the registry itself, not of a mirror, is the image of that digest. A registry that does not say
    /// which digest a tag has is taken not to have it.
    ///
    /// # Errors
    ///
    /// The registry denies access, or the network fails.
    pub fn is_pushed(&self, destination: &Reference, digest: &Digest) -> Result<bool> {
        let sessions = self.sessions(&destination.registry)?;
        let session = sessions.last().expect("a registry has at least itself");
        let (repository, endpoint) = (&destination.repository, &session.endpoint);
        let name = destination.tag.clone().unwrap_or_else(|| digest.to_string());
        let address = endpoint.url(repository, &format!("manifests/{name}"));
        let mut call = Call::new(Method::HEAD, address, &endpoint.scope(repository, "pull,push"))
            .header(ACCEPT.as_str(), ACCEPTED_TYPES.join(", "));
        let answer = session.send(&mut call)?;
        match answer.status() {
            StatusCode::OK => {
                let found = answer.headers().get(DIGEST_HEADER).and_then(|value| value.to_str().ok());
                Ok(found == Some(digest.to_string().as_str()))
            }
            StatusCode::NOT_FOUND => Ok(false),
            _ => Err(unexpected_response(session, answer)),
        }
    }
}

impl ImagePush<'_> {
    /// Whether everything that a descriptor references is in the store; a list with no image in the store is an error
    /// later.
    fn is_complete(&self, descriptor: &Descriptor) -> Result<bool> {
        if !media::is_index(&descriptor.media_type) {
            return Ok(true);
        }
        let index: Index = self.store.document(descriptor)?;
        for entry in &index.manifests {
            if !self.store.has(&entry.digest) || !self.is_complete(entry)? {
                return Ok(false);
            }
            if media::is_manifest(&entry.media_type) {
                let manifest: Manifest = self.store.document(entry)?;
                if !std::iter::once(&manifest.config)
                    .chain(&manifest.layers)
                    .all(|blob| self.store.has(&blob.digest))
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The blobs of images of the same registry that are here, each with a repository that should have it.
    fn find_mount_sources(&self, destination: &Reference) -> Result<BTreeMap<Digest, String>> {
        let mut found = BTreeMap::new();
        for image in self.store.images()? {
            let Some(name) = image.name.and_then(|name| name.parse::<Reference>().ok()) else { continue };
            if name.registry != destination.registry || name.repository == destination.repository {
                continue;
            }
            let Ok(manifest) = self.store.manifest_for(&image.descriptor, &Platform::here()) else {
                continue;
            };
            let Ok(manifest) = self.store.document::<Manifest>(&manifest) else { continue };
            for blob in std::iter::once(&manifest.config).chain(&manifest.layers) {
                found.entry(blob.digest.clone()).or_insert_with(|| name.repository.clone());
            }
        }
        Ok(found)
    }

    /// Pushes what a descriptor references, then itself under a name: a tag or its digest.
    fn send(&self, descriptor: &Descriptor, name: &str) -> Result<()> {
        let bytes = self.store.bytes(descriptor)?;
        if media::is_index(&descriptor.media_type) {
            for entry in self.store.document::<Index>(descriptor)?.manifests {
                self.send(&entry, &entry.digest.to_string())?;
            }
        } else if media::is_manifest(&descriptor.media_type) {
            let manifest: Manifest = self.store.document(descriptor)?;
            let mut seen = BTreeSet::new();
            let parts = std::iter::once(manifest.config).chain(manifest.layers);
            let blobs: Vec<Descriptor> = parts.filter(|blob| seen.insert(blob.digest.clone())).collect();
            for blob in &blobs {
                self.report_progress(blob, 0, false);
            }
            parallel::for_each(&blobs, MAX_CONCURRENT, |blob, _| self.send_blob(blob))?;
        }
        let address = self.session.endpoint.url(self.repository, &format!("manifests/{name}"));
        let mut call = Call::new(Method::PUT, address, &self.scope())
            .header(CONTENT_TYPE.as_str(), &descriptor.media_type)
            .payload(Payload::Bytes(&bytes));
        let answer = self.session.send(&mut call)?;
        if answer.status().is_success() { Ok(()) } else { Err(unexpected_response(self.session, answer)) }
    }

    fn scope(&self) -> String {
        self.session.endpoint.scope(self.repository, "pull,push")
    }

    fn report_progress(&self, blob: &Descriptor, done: u64, known: bool) {
        (self.progress)(Progress::Blob { digest: blob.digest.clone(), done, total: Some(blob.size), known });
    }

    fn send_blob(&self, blob: &Descriptor) -> Result<()> {
        let endpoint = &self.session.endpoint;
        let address = endpoint.url(self.repository, &format!("blobs/{}", blob.digest));
        let answer = self.session.send(&mut Call::new(Method::HEAD, address, &self.scope()))?;
        match answer.status() {
            StatusCode::OK => {
                self.report_progress(blob, blob.size, true);
                return Ok(());
            }
            StatusCode::NOT_FOUND => {}
            _ => return Err(unexpected_response(self.session, answer)),
        }
        drop(answer);
        let mut backoff = Backoff::default();
        // A failed upload starts again: its progress is not known for sure, and the registry discards it.
        loop {
            match self.upload(blob) {
                Ok(known) => {
                    self.report_progress(blob, blob.size, known);
                    return Ok(());
                }
                Err(trouble) => wait_for_retry(&mut backoff, trouble)?,
            }
        }
    }

    /// Sends a blob in one piece, unless the registry can take it from another repository; returns whether it could.
    fn upload(&self, blob: &Descriptor) -> std::result::Result<bool, RequestError> {
        let endpoint = &self.session.endpoint;
        let mut what = "blobs/uploads/".to_owned();
        if let Some(from) = self.mount_sources.get(&blob.digest) {
            what +=
                &format!("?mount={}&from={}", encode_segment(&blob.digest.to_string()), encode_segment(from));
        }
        let begun = self.session.send_once(&mut Call::new(
            Method::POST,
            endpoint.url(self.repository, &what),
            &self.scope(),
        ))?;
        match begun.status() {
            StatusCode::CREATED => return Ok(true),
            StatusCode::ACCEPTED => {}
            _ => return Err(RequestError::Final(unexpected_response(self.session, begun))),
        }
        let address = self.location(&begun, &blob.digest)?;
        drop(begun);
        let file = self.store.blob(&blob.digest)?;
        let on_progress = |sent: u64| self.report_progress(blob, sent, false);
        let mut call = Call::new(Method::PUT, address, &self.scope())
            .header(CONTENT_TYPE.as_str(), "application/octet-stream")
            .payload(Payload::File(file, blob.size, &on_progress));
        let answer = self.session.send_once(&mut call)?;
        match answer.status() {
            StatusCode::CREATED | StatusCode::NO_CONTENT | StatusCode::OK => Ok(false),
            // The registry forgot the upload, as one does that is restarted or several behind one name.
            StatusCode::NOT_FOUND => {
                Err(RequestError::Temporary(unexpected_response(self.session, answer), None))
            }
            StatusCode::PAYLOAD_TOO_LARGE => Err(RequestError::Final(self.too_large(blob, answer))),
            _ => Err(RequestError::Final(unexpected_response(self.session, answer))),
        }
    }

    fn too_large(&self, blob: &Descriptor, answer: Response<Body>) -> Error {
        let error = unexpected_response(self.session, answer);
        let message = format!("{}: a layer of {} bytes is too large for it", error.message(), blob.size);
        Error::new(Kind::System, message).help(
            "make the layer smaller, or have the limit of the registry, or of the proxy before it, raised",
        )
    }

    /// The URL of an upload, with its digest.
    fn location(&self, begun: &Response<Body>, digest: &Digest) -> Result<String> {
        let location =
            begun.headers().get(LOCATION).and_then(|value| value.to_str().ok()).ok_or_else(|| {
                let message = format!(
                    "the registry `{}` accepted a blob without a location",
                    self.session.endpoint.name
                );
                Error::new(Kind::System, message)
            })?;
        let address = self.session.endpoint.resolve(location);
        let separator = if address.contains('?') { '&' } else { '?' };
        Ok(format!("{address}{separator}digest={}", encode_segment(&digest.to_string())))
    }
}
