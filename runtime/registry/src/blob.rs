//! Downloads a blob into the store: resumes after interruptions, and verifies size and digest against the manifest.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use jobc_image::store::{Store, Writer};
use jobc_image::{Descriptor, Progress, ProgressFn};
use jobc_sys::error::{Error, Kind, Result};
use ureq::Body;
use ureq::http::header::{CONTENT_LENGTH, CONTENT_RANGE, RANGE};
use ureq::http::{Method, Response, StatusCode};

use crate::retry::Backoff;
use crate::session::{
    Call, RequestError, Session, no_response, registry_message, unexpected_response, wait_for_retry,
};

/// Bytes read at a time.
const CHUNK_SIZE: usize = 128 << 10;

/// A blob that is fetched from one place.
pub(crate) struct BlobFetch<'a> {
    pub(crate) session: &'a Session,
    pub(crate) store: &'a Store,
    pub(crate) repository: &'a str,
    pub(crate) progress: ProgressFn<'a>,
    /// Set if another blob failed, so that this one stops.
    pub(crate) stopped: &'a AtomicBool,
}

impl BlobFetch<'_> {
    /// Fetches a blob, or its missing part. Waits for another process that fetches the same one.
    pub(crate) fn fetch(&self, descriptor: &Descriptor) -> Result<()> {
        let Some(mut writer) = self.store.resume(descriptor)? else {
            self.report_progress(descriptor, descriptor.size, true);
            return Ok(());
        };
        let mut goes_on = writer.written() > 0;
        loop {
            self.fetch_remaining(descriptor, &mut writer)?;
            match writer.finish(Some(descriptor)) {
                Ok(_) => return Ok(()),
                // After a power failure, a partial file may have other content than was received.
                Err(_) if goes_on => goes_on = false,
                Err(error) => return Err(error),
            }
            match self.store.resume(descriptor)? {
                Some(again) => writer = again,
                None => return Ok(()),
            }
        }
    }

    fn report_progress(&self, descriptor: &Descriptor, done: u64, known: bool) {
        let digest = descriptor.digest.clone();
        (self.progress)(Progress::Blob { digest, done, total: Some(descriptor.size), known });
    }

    fn fetch_remaining(&self, descriptor: &Descriptor, writer: &mut Writer<'_>) -> Result<()> {
        let mut backoff = Backoff::default();
        // The maximum that ever existed: repeated bytes are not progress.
        let mut best = writer.written();
        while writer.written() < descriptor.size {
            let received = self.receive(descriptor, writer);
            if writer.written() > best {
                best = writer.written();
                backoff.progressed();
            }
            if let Err(trouble) = received {
                wait_for_retry(&mut backoff, trouble)?;
            }
        }
        Ok(())
    }

    /// Requests the missing part and stores the response.
    fn receive(
        &self,
        descriptor: &Descriptor,
        writer: &mut Writer<'_>,
    ) -> std::result::Result<(), RequestError> {
        let endpoint = &self.session.endpoint;
        let address = endpoint.url(self.repository, &format!("blobs/{}", descriptor.digest));
        let mut call = Call::new(Method::GET, address, &endpoint.scope(self.repository, "pull"));
        if writer.written() > 0 {
            call = call.header(RANGE.as_str(), format!("bytes={}-", writer.written()));
        }
        let mut answer = self.session.send_once(&mut call)?;
        match answer.status() {
            StatusCode::PARTIAL_CONTENT if range_start(&answer) == Some(writer.written()) => {}
            // The whole blob, from a registry without range requests; or another range than requested.
            StatusCode::OK => writer.restart()?,
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
                writer.restart()?;
                return Err(RequestError::Temporary(unexpected_response(self.session, answer), None));
            }
            StatusCode::NOT_FOUND => return Err(RequestError::Final(self.missing_blob(descriptor, answer))),
            _ => return Err(RequestError::Final(unexpected_response(self.session, answer))),
        }
        let missing = descriptor.size - writer.written();
        let length = answer.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        if length.is_some_and(|length: u64| length != missing) {
            writer.restart()?;
            return Err(RequestError::Final(
                self.size_mismatch(descriptor, length.map(|length| length + descriptor.size - missing)),
            ));
        }
        let mut body = answer.body_mut().with_config().limit(u64::MAX).reader();
        let mut piece = vec![0; CHUNK_SIZE];
        loop {
            if self.stopped.load(Ordering::Relaxed) {
                return Err(RequestError::Final(Error::new(
                    Kind::State,
                    "another blob of the image could not be fetched",
                )));
            }
            match body.read(&mut piece) {
                Ok(0) if writer.written() < descriptor.size => {
                    let (is, of) = (writer.written(), descriptor.size);
                    let message = format!(
                        "the registry `{}` ended {} after {is} of {of} bytes",
                        endpoint.name, descriptor.digest
                    );
                    return Err(RequestError::Temporary(Error::new(Kind::System, message), None));
                }
                Ok(0) => return Ok(()),
                Ok(read) if descriptor.size - writer.written() < read as u64 => {
                    writer.restart()?;
                    return Err(RequestError::Final(self.size_mismatch(descriptor, None)));
                }
                Ok(read) => {
                    writer
                        .write_all(&piece[..read])
                        .map_err(|error| self.store.write_error("write to", &error))?;
                    self.report_progress(descriptor, writer.written(), false);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(no_response(self.session, &ureq::Error::from(error))),
            }
        }
    }

    fn missing_blob(&self, descriptor: &Descriptor, answer: Response<Body>) -> Error {
        let (name, digest) = (&self.session.endpoint.name, &descriptor.digest);
        let message = format!(
            "the registry `{name}` lacks {digest} of `{}`{}",
            self.repository,
            registry_message(answer)
        );
        Error::new(Kind::System, message)
            .help("push the image again, or contact the operator of the registry")
    }

    fn size_mismatch(&self, descriptor: &Descriptor, is: Option<u64>) -> Error {
        let (name, digest, size) = (&self.session.endpoint.name, &descriptor.digest, descriptor.size);
        let is = is.map_or_else(|| "more".to_owned(), |is| is.to_string());
        let message = format!(
            "the content that the registry `{name}` sent for {digest} does not match: {is} bytes, but the manifest says {size}"
        );
        Error::new(Kind::System, message)
            .help("retry; if it fails again, report it to the operator of the server")
    }
}

/// Where the range of a response begins (RFC 9110, section 14.4: `bytes 5-9/10`).
fn range_start(answer: &Response<Body>) -> Option<u64> {
    let range = answer.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    range.trim().strip_prefix("bytes")?.trim_start().split('-').next()?.parse().ok()
}
