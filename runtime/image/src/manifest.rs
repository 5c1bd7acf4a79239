//! Descriptors, manifests and indexes (image-spec: descriptor.md, manifest.md, image-index.md), of OCI and of Docker
//! alike.
//!
//! Own types and not those of oci-spec: what is unknown here is kept as it was, and maps keep their order, so that the
//! same image is written as the same bytes.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::platform::Platform;
pub use crate::unknown_fields::UnknownFields;
use jobc_schema::digest::Digest;

/// Media types by document.
pub mod media {
    /// An image's manifest.
    pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
    /// A list of manifests, one a platform.
    pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
    /// An image's configuration.
    pub const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
    /// A layer as it is.
    pub const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
    /// A layer compressed by gzip.
    pub const LAYER_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
    /// A layer compressed by zstd.
    pub const LAYER_ZSTD: &str = "application/vnd.oci.image.layer.v1.tar+zstd";
    /// Docker's manifest, version 2, schema 2.
    pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
    /// Docker's list of manifests.
    pub const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
    /// Docker's configuration of an image.
    pub const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
    /// Docker's layer, always compressed by gzip.
    pub const DOCKER_LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";

    /// Whether something is a list of manifests.
    pub fn is_index(media_type: &str) -> bool {
        matches!(media_type, INDEX | DOCKER_INDEX)
    }

    /// Whether something is a manifest.
    pub fn is_manifest(media_type: &str) -> bool {
        matches!(media_type, MANIFEST | DOCKER_MANIFEST)
    }

    /// Whether something is the configuration of an image that can be run.
    pub fn is_config(media_type: &str) -> bool {
        matches!(media_type, CONFIG | DOCKER_CONFIG)
    }

    /// Whether something is a layer that can be unpacked.
    pub fn is_layer(media_type: &str) -> bool {
        matches!(media_type, LAYER | LAYER_GZIP | LAYER_ZSTD | DOCKER_LAYER)
    }
}

/// The annotation that holds a name in an image layout (image-spec, annotations.md).
pub const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// The annotation that containerd, and with it Docker since version 25, has a whole name in.
pub const CONTAINERD_NAME: &str = "io.containerd.image.name";

/// A descriptor: the media type, digest and size in bytes of a content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// The media type of the document.
    pub media_type: String,
    /// Its digest.
    pub digest: Digest,
    /// Its bytes.
    pub size: u64,
    /// Alternative addresses, for layers that registries may not serve.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
    /// Its annotations.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub annotations: IndexMap<String, String>,
    /// The platform of a manifest in an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Unknown fields.
    #[serde(flatten)]
    pub rest: UnknownFields,
}

impl Descriptor {
    /// The descriptor of a content without annotations.
    pub fn new(media_type: &str, digest: Digest, size: u64) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest,
            size,
            urls: Vec::new(),
            annotations: IndexMap::new(),
            platform: None,
            rest: UnknownFields::new(),
        }
    }

    /// The same content without the annotations of its reference: name and platform.
    #[must_use]
    pub fn bare(&self) -> Self {
        Self::new(&self.media_type, self.digest.clone(), self.size)
    }
}

/// An image's manifest: its configuration and its layers, the lowest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always 2.
    pub schema_version: u32,
    /// The media type of this document, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The configuration.
    pub config: Descriptor,
    /// The layers.
    pub layers: Vec<Descriptor>,
    /// Its annotations.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub annotations: IndexMap<String, String>,
    /// Unknown fields.
    #[serde(flatten)]
    pub rest: UnknownFields,
}

impl Manifest {
    /// A manifest of OCI's kind.
    pub fn new(config: Descriptor, layers: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: Some(media::MANIFEST.to_owned()),
            config,
            layers,
            annotations: IndexMap::new(),
            rest: UnknownFields::new(),
        }
    }
}

/// A list of manifests, one a platform; also what `index.json` of a layout holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// Always 2.
    pub schema_version: u32,
    /// The media type of this document, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The manifests, or nested indexes.
    pub manifests: Vec<Descriptor>,
    /// Its annotations.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub annotations: IndexMap<String, String>,
    /// Unknown fields.
    #[serde(flatten)]
    pub rest: UnknownFields,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            schema_version: 2,
            media_type: Some(media::INDEX.to_owned()),
            manifests: Vec::new(),
            annotations: IndexMap::new(),
            rest: UnknownFields::new(),
        }
    }
}
