//! Parsers of a registry's answers, for the fuzz targets in fuzz/.

use jobc_image::{Descriptor, Digest, Reference};
use ureq::Body;
use ureq::http::Response;

use crate::challenge;
use crate::manifest::{Document, image, kind};
use crate::session::registry_message;

/// Reads a `WWW-Authenticate` header.
pub fn read_challenge(header: &str) {
    for challenge in challenge::parse(header) {
        assert!(!challenge.scheme.is_empty(), "a challenge without a scheme");
        let _ = challenge.get("realm");
    }
}

/// Reads a refusal's body; the message for the user is one short line.
pub fn read_refusal(body: &[u8]) {
    let answer = Response::builder().status(403).body(Body::builder().data(body.to_vec()));
    let message = registry_message(answer.expect("a response of two parts"));
    assert!(message.len() < 2048 && !message.contains('\n'), "not one short line: {message:?}");
}

/// Reads a manifest or index that a registry sent under a content type.
pub fn read_document(content_type: &str, bytes: &[u8]) {
    let reference: Reference = "localhost:5000/fuzz:1".parse().expect("a reference");
    let Ok(media_type) = kind(&reference, Some(content_type), bytes) else { return };
    let descriptor = Descriptor::new(media_type, Digest::of(bytes), bytes.len() as u64);
    let _ = image(&reference, &Document { descriptor, bytes: bytes.to_vec() });
}
