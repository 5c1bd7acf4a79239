//! Manifests and indexes: requested by tag or digest, bounded in size, and validated.

use jobc_image::digest::Hasher;
use jobc_image::manifest::media;
use jobc_image::store::{MAX_DOCUMENT_SIZE, MAX_LAYERS, parse};
use jobc_image::{Descriptor, Digest, Manifest, Reference};
use jobc_sys::error::{Error, Kind, Result};
use serde::Deserialize;
use ureq::Body;
use ureq::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use ureq::http::{Method, Response, StatusCode};

use crate::session::{Call, Session, registry_message, unexpected_response};

/// The kinds of document that are understood.
pub(crate) const ACCEPTED_TYPES: [&str; 4] =
    [media::INDEX, media::MANIFEST, media::DOCKER_INDEX, media::DOCKER_MANIFEST];
/// The header with a manifest's digest.
pub(crate) const DIGEST_HEADER: &str = "docker-content-digest";

/// A document with its descriptor.
pub(crate) struct Document {
    pub(crate) descriptor: Descriptor,
    pub(crate) bytes: Vec<u8>,
}

/// The fields of a document that identify its type.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypeFields {
    #[serde(default)]
    schema_version: u32,
    #[serde(default)]
    media_type: String,
    manifests: Option<serde::de::IgnoredAny>,
    layers: Option<serde::de::IgnoredAny>,
}

impl Session {
    /// Fetches the document of a reference.
    pub(crate) fn document(&self, reference: &Reference) -> Result<Document> {
        let answer = self.request_document(Method::GET, reference)?;
        let declared = header(&answer, CONTENT_TYPE.as_str());
        let promised = header(&answer, DIGEST_HEADER);
        let bytes = self.read_document(answer)?;
        let media_type = kind(reference, declared.as_deref(), &bytes)?;
        let expected = match &reference.digest {
            Some(digest) => Some(digest.clone()),
            None => promised.and_then(|promised| promised.parse().ok()),
        };
        let digest = digest_like(expected.as_ref(), &bytes);
        if let Some(expected) = expected.filter(|expected| *expected != digest) {
            return Err(Error::new(
                Kind::System,
                format!(
                    "the content that the registry `{}` sent for {expected} does not match: it has the digest {digest}",
                    self.endpoint.name
                ),
            )
            .help("retry; if it fails again, report it to the operator of the server"));
        }
        Ok(Document { descriptor: Descriptor::new(media_type, digest, bytes.len() as u64), bytes })
    }

    /// The descriptor of a reference; its content is only fetched if the registry's headers lack it.
    pub(crate) fn look_up(&self, reference: &Reference) -> Result<Descriptor> {
        let answer = self.request_document(Method::HEAD, reference)?;
        let digest = header(&answer, DIGEST_HEADER).and_then(|digest| digest.parse::<Digest>().ok());
        let size = header(&answer, CONTENT_LENGTH.as_str()).and_then(|size| size.parse().ok());
        let media_type = header(&answer, CONTENT_TYPE.as_str());
        match (digest, size, media_type) {
            (Some(digest), Some(size), Some(media_type))
                if reference.digest.as_ref().is_none_or(|is| *is == digest) =>
            {
                Ok(Descriptor::new(&media_type, digest, size))
            }
            _ => Ok(self.document(reference)?.descriptor),
        }
    }

    fn request_document(&self, method: Method, reference: &Reference) -> Result<Response<Body>> {
        let repository = &reference.repository;
        let what = match (&reference.digest, &reference.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, tag) => tag.clone().unwrap_or_else(|| "latest".to_owned()),
        };
        let address = self.endpoint.url(repository, &format!("manifests/{what}"));
        let scope = self.endpoint.scope(repository, "pull");
        let answer =
            self.send(&mut Call::new(method, address, &scope).header("accept", ACCEPTED_TYPES.join(", ")))?;
        match answer.status() {
            StatusCode::OK => Ok(answer),
            StatusCode::NOT_FOUND => {
                let message = registry_message(answer);
                let name = &self.endpoint.name;
                Err(Error::new(
                    Kind::State,
                    format!("the registry `{name}` has no `{}`{message}", reference.familiar()),
                )
                .help("check the name and the tag"))
            }
            _ => Err(unexpected_response(self, answer)),
        }
    }

    fn read_document(&self, mut answer: Response<Body>) -> Result<Vec<u8>> {
        let body = answer.body_mut().with_config().limit(MAX_DOCUMENT_SIZE);
        body.read_to_vec().map_err(|error| crate::session::no_response(self, &error).into_error())
    }
}

/// Reads a manifest and refuses what could not be run, before anything large is fetched.
pub(crate) fn image(reference: &Reference, document: &Document) -> Result<Manifest> {
    let name = reference.familiar();
    let manifest: Manifest = parse(&document.bytes).map_err(|error| {
        Error::new(Kind::Config, format!("the manifest of `{name}` cannot be read: {error}"))
    })?;
    let unsupported = |what: String, help: &str| Err(Error::new(Kind::Unsupported, what).help(help));
    if !media::is_config(&manifest.config.media_type) {
        let kind = &manifest.config.media_type;
        return unsupported(
            format!("`{name}` is an artifact of type `{kind}`, not a runnable image"),
            "name a container image",
        );
    }
    if manifest.config.size > MAX_DOCUMENT_SIZE {
        return unsupported(
            format!("`{name}` has a configuration of {} bytes; the limit is 4 MiB", manifest.config.size),
            "ask its author for another one",
        );
    }
    if manifest.layers.len() > MAX_LAYERS {
        let layers = manifest.layers.len();
        return unsupported(
            format!("`{name}` has {layers} layers; the limit is {MAX_LAYERS}"),
            "ask its author for another one",
        );
    }
    let Some(layer) = manifest.layers.iter().find(|layer| !media::is_layer(&layer.media_type)) else {
        return Ok(manifest);
    };
    let kind = &layer.media_type;
    if kind.contains("foreign") || kind.contains("nondistributable") {
        return unsupported(
            format!(
                "`{name}` has a layer that registries may not distribute: {} of kind `{kind}`",
                layer.digest
            ),
            "choose an image for Linux, or one without such a layer",
        );
    }
    unsupported(
        format!("`{name}` has a layer of kind `{kind}`"),
        "layers must be tar archives, uncompressed or compressed with gzip or zstd; convert it with `skopeo copy`",
    )
}

/// The type of a document: its own `mediaType`, the registry's content type, and its fields must agree, or one client
/// would read as a list what another reads as an image (CVE-2021-41190).
pub(crate) fn kind(reference: &Reference, declared: Option<&str>, bytes: &[u8]) -> Result<&'static str> {
    let name = reference.familiar();
    let Ok(kinds) = serde_json::from_slice::<TypeFields>(bytes) else {
        return Err(Error::new(
            Kind::System,
            format!("what the registry has for `{name}` is not a manifest"),
        )
        .help("is this a registry? it should respond at `/v2/`"));
    };
    let declared = declared.map(|declared| declared.split(';').next().unwrap_or_default().trim());
    let of_schema_1 = declared.is_some_and(|declared| declared.contains("docker.distribution.manifest.v1+"));
    if kinds.schema_version == 1 || of_schema_1 {
        return Err(Error::new(
            Kind::Unsupported,
            format!("`{name}` is an image of Docker's schema 1, which was deprecated in 2017"),
        )
        .help("push it again with a current client, or convert it with `skopeo copy --format oci`"));
    }
    let known = |kind: &str| ACCEPTED_TYPES.into_iter().find(|known| *known == kind);
    let own = Some(kinds.media_type.as_str()).filter(|kind| !kind.is_empty());
    let looks = match (kinds.manifests.is_some(), kinds.layers.is_some()) {
        (true, false) => media::INDEX,
        (false, true) => media::MANIFEST,
        _ => {
            let message =
                format!("what the registry has for `{name}` is neither an image nor a list of images");
            return Err(Error::new(Kind::Unsupported, message).help("name a container image"));
        }
    };
    // The generic content type of registries does not identify a document.
    let kind_name = own.or(declared.filter(|declared| {
        !matches!(*declared, "application/json" | "application/octet-stream" | "text/plain")
    }));
    let Some(kind) = kind_name.map_or(Some(looks), known) else {
        let kind_name = kind_name.unwrap_or_default();
        return Err(Error::new(
            Kind::Unsupported,
            format!("`{name}` is a document of unknown type `{kind_name}`"),
        )
        .help("name a container image"));
    };
    let disagrees = media::is_index(kind) != media::is_index(looks)
        || declared
            .and_then(known)
            .is_some_and(|declared| media::is_index(declared) != media::is_index(looks));
    if disagrees {
        let message =
            format!("what the registry has for `{name}` is labeled `{kind}` but looks like another type");
        return Err(Error::new(Kind::System, message).help("ask its author for another one"));
    }
    Ok(kind)
}

/// The digest of some bytes by the same algorithm as another's.
pub(crate) fn digest_like(other: Option<&Digest>, bytes: &[u8]) -> Digest {
    let mut hasher = other.map_or_else(Hasher::default, |other| Hasher::new(other.algorithm()));
    hasher.update(bytes);
    hasher.finish()
}

fn header(answer: &Response<Body>, name: &str) -> Option<String> {
    Some(answer.headers().get(name)?.to_str().ok()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(declared: Option<&str>, text: &str) -> String {
        let reference = "r.example/a:1".parse().unwrap();
        match kind(&reference, declared, text.as_bytes()) {
            Ok(kind) => kind.to_owned(),
            Err(error) => error.message(),
        }
    }

    #[test]
    fn a_document_is_what_it_says_and_looks_like() {
        let list = format!(r#"{{"schemaVersion": 2, "mediaType": "{}", "manifests": []}}"#, media::INDEX);
        assert_eq!(check(Some(media::INDEX), &list), media::INDEX);
        let bare = r#"{"schemaVersion": 2, "config": {}, "layers": []}"#;
        assert_eq!(check(Some(media::DOCKER_MANIFEST), bare), media::DOCKER_MANIFEST);
        assert_eq!(check(Some("application/json; charset=utf-8"), bare), media::MANIFEST);
        assert_eq!(check(None, bare), media::MANIFEST);
    }

    #[test]
    fn ambiguous_documents_are_rejected() {
        let list = r#"{"schemaVersion": 2, "manifests": []}"#;
        assert!(check(Some(media::MANIFEST), list).contains("looks like another type"));
        let own = format!(r#"{{"mediaType": "{}", "layers": []}}"#, media::INDEX);
        assert!(check(Some(media::MANIFEST), &own).contains("looks like another type"));
        let both = r#"{"manifests": [], "layers": []}"#;
        assert!(check(Some(media::MANIFEST), both).contains("neither an image nor a list"));
    }

    #[test]
    fn documents_that_are_not_images_are_named() {
        assert!(check(None, "<html>").contains("is not a manifest"));
        assert!(check(None, r#"{"schemaVersion": 1}"#).contains("schema 1"));
        let signed = Some("application/vnd.docker.distribution.manifest.v1+prettyjws");
        assert!(check(signed, r#"{"layers": []}"#).contains("schema 1"));
        assert!(
            check(Some("application/vnd.x"), r#"{"layers": []}"#)
                .contains("of unknown type `application/vnd.x`")
        );
    }
}
