//! The objects at the locations of an image's signatures in a registry.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jobc_image::manifest::{Index, media};
use jobc_image::store::{MAX_DOCUMENT_SIZE, parse};
use jobc_image::{Descriptor, Digest, Manifest, Reference};
use jobc_sys::error::Result;
use ureq::http::Method;

use super::key::PublicKey;
use super::{Claim, bundle, payload};
use crate::manifest::digest_like;
use crate::session::{Call, Session, no_response, unexpected_response};

/// The type of a payload.
const PAYLOAD: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The types of bundles and their manifests begin so.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
/// The type of a manifest with payloads that refers to the image.
const ARTIFACT: &str = "application/vnd.dev.cosign.artifact.sig.v1+json";
/// The annotation of a payload with its signature.
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// The annotation of a payload that was signed keyless.
const CERTIFICATE: &str = "dev.sigstore.cosign/certificate";

/// Maximum number of candidates checked per image.
const MAX_CANDIDATES: usize = 50;
/// The largest payload or bundle, in bytes. Payloads have about 250, bundles about 10,000.
const MAX_SIZE: u64 = 1 << 20;

/// Why a signature by a certificate is refused.
pub(super) const KEYLESS: &str =
    "a signature was made with a certificate (keyless); only signatures by a key can be verified";

/// A possible signature.
pub(super) struct Candidate {
    /// Where it is in the registry.
    pub(super) place: String,
    content: Content,
}

enum Content {
    Payload { text: Vec<u8>, signature: String, is_keyless: bool },
    Bundle(Vec<u8>),
}

impl Candidate {
    /// Its statement, if it is signed with one of the keys.
    pub(super) fn claim(&self, keys: &[PublicKey]) -> std::result::Result<Claim, String> {
        match &self.content {
            Content::Bundle(text) => bundle::claim(keys, text),
            Content::Payload { text, signature, is_keyless } => {
                let signature = STANDARD
                    .decode(signature.trim())
                    .map_err(|error| format!("a signature is not base64: {error}"))?;
                payload::claim(keys, text, &signature)
                    .map_err(|why| if *is_keyless { KEYLESS.to_owned() } else { why })
            }
        }
    }
}

impl Session {
    /// The possible signatures of an image. Other objects become reasons.
    pub(super) fn candidates(
        &self,
        reference: &Reference,
        digest: &Digest,
        reasons: &mut BTreeSet<String>,
    ) -> Result<Vec<Candidate>> {
        let mut found = Vec::new();
        let tag = format!("{}-{}", digest.algorithm().name(), digest.hex());
        let signature_tag = format!("{tag}.sig");
        if let Some(text) = self.find_document(reference, "manifests", &signature_tag)? {
            self.add(reference, &signature_tag, &text, &mut found, reasons)?;
        }
        // The fallback is for registries without that interface (distribution-spec, "Referrers Tag Schema").
        let index = match self.find_document(reference, "referrers", &digest.to_string())? {
            Some(index) => Some(index),
            None => self.find_document(reference, "manifests", &tag)?,
        };
        let Some(index) = index else { return Ok(found) };
        let Ok(index) = parse::<Index>(&index) else {
            reasons.insert("the list of what refers to it cannot be read".to_owned());
            return Ok(found);
        };
        let is_signature = |descriptor: &&Descriptor| {
            let kind = descriptor.rest.get("artifactType").and_then(|kind| kind.as_str()).unwrap_or_default();
            kind == ARTIFACT || kind.starts_with(BUNDLE)
        };
        for descriptor in index.manifests.iter().filter(is_signature).take(MAX_CANDIDATES) {
            let name = descriptor.digest.to_string();
            let Some(text) = self.find_document(reference, "manifests", &name)? else { continue };
            if digest_like(Some(&descriptor.digest), &text) != descriptor.digest {
                reasons.insert(format!("the content of {name} does not match its digest"));
                continue;
            }
            self.add(reference, &name, &text, &mut found, reasons)?;
        }
        Ok(found)
    }

    /// Adds the candidates of a manifest.
    fn add(
        &self,
        reference: &Reference,
        place: &str,
        manifest: &[u8],
        found: &mut Vec<Candidate>,
        reasons: &mut BTreeSet<String>,
    ) -> Result<()> {
        let Ok(manifest) = parse::<Manifest>(manifest) else {
            reasons.insert(format!("the manifest at `{place}` cannot be read"));
            return Ok(());
        };
        for layer in &manifest.layers {
            if found.len() >= MAX_CANDIDATES {
                reasons.insert(format!("it has more than {MAX_CANDIDATES} signatures"));
                break;
            }
            let is_bundle = layer.media_type.starts_with(BUNDLE);
            if !is_bundle && layer.media_type != PAYLOAD {
                reasons.insert(format!("`{place}` has a layer of unknown type `{}`", layer.media_type));
                continue;
            }
            let signature = layer.annotations.get(SIGNATURE);
            if !is_bundle && signature.is_none() {
                reasons.insert(format!("a payload at `{place}` has no signature"));
                continue;
            }
            if layer.size > MAX_SIZE {
                reasons.insert(format!("a signature has {} bytes; the limit is 1 MiB", layer.size));
                continue;
            }
            let path = format!("blobs/{}", layer.digest);
            let Some(text) = self.find(reference, &path, "*/*", MAX_SIZE)? else {
                reasons.insert(format!("the registry lacks {}, a signature", layer.digest));
                continue;
            };
            if text.len() as u64 != layer.size || digest_like(Some(&layer.digest), &text) != layer.digest {
                reasons.insert(format!("the content of {} does not match its digest", layer.digest));
                continue;
            }
            let content = match signature.filter(|_| !is_bundle) {
                None => Content::Bundle(text),
                Some(signature) => Content::Payload {
                    text,
                    signature: signature.clone(),
                    is_keyless: layer.annotations.contains_key(CERTIFICATE),
                },
            };
            found.push(Candidate { place: place.to_owned(), content });
        }
        Ok(())
    }

    /// A manifest or a list of what refers to an image; none if the registry has none.
    fn find_document(&self, reference: &Reference, kind: &str, name: &str) -> Result<Option<Vec<u8>>> {
        let accept = [media::MANIFEST, media::INDEX].join(", ");
        self.find(reference, &format!("{kind}/{name}"), &accept, MAX_DOCUMENT_SIZE)
    }

    /// The document at a path of a repository in the registry.
    fn find(&self, reference: &Reference, path: &str, accept: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        let address = self.endpoint.url(&reference.repository, path);
        let scope = self.endpoint.scope(&reference.repository, "pull");
        let mut answer = self.send(&mut Call::new(Method::GET, address, &scope).header("accept", accept))?;
        match answer.status().as_u16() {
            200 => {}
            404 => return Ok(None),
            // Of registries that do not know the request.
            400 | 405 | 406 | 501 if path.starts_with("referrers/") => return Ok(None),
            _ => return Err(unexpected_response(self, answer)),
        }
        let body = answer.body_mut().with_config().limit(limit);
        body.read_to_vec().map(Some).map_err(|error| no_response(self, &error).into_error())
    }
}
