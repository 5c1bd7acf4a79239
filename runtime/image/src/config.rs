//! An image's configuration (image-spec, config.md): the settings of its processes, and its layers.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::unknown_fields::UnknownFields;
use jobc_schema::digest::Digest;

/// The configuration of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// When it was made, as RFC 3339 has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// Its author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The processor, by Go's name: `amd64`, `arm64`.
    #[serde(default)]
    pub architecture: String,
    /// The variant of the processor: `v8`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The system, by Go's name: `linux`.
    #[serde(default)]
    pub os: String,
    /// The settings of its processes.
    #[serde(default)]
    pub config: Execution,
    /// Its layers.
    pub rootfs: RootFs,
    /// Its history, one entry per step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<History>,
    /// Unknown fields.
    #[serde(flatten)]
    pub rest: UnknownFields,
}

/// The settings of the processes of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Execution {
    /// The user: `user`, `uid`, `user:group`, `uid:gid` and so on.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// Ports that they listen on, `8080/tcp`.
    #[serde(skip_serializing_if = "no_entries", deserialize_with = "entries")]
    pub exposed_ports: IndexMap<String, Value>,
    /// Variables, `NAME=value`.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub env: Vec<String>,
    /// The entrypoint, before the arguments.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub entrypoint: Vec<String>,
    /// The arguments, or the whole command if there is no entrypoint.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub cmd: Vec<String>,
    /// Directories whose content is data.
    #[serde(skip_serializing_if = "no_entries", deserialize_with = "entries")]
    pub volumes: IndexMap<String, Value>,
    /// The directory that they start in.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub working_dir: String,
    /// Labels.
    #[serde(skip_serializing_if = "IndexMap::is_empty", deserialize_with = "null_as_default")]
    pub labels: IndexMap<String, String>,
    /// The signal that stops them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_signal: Option<String>,
    /// Docker's: the shell of shell forms.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub shell: Vec<String>,
    /// Docker's: instructions for builds upon this image.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub on_build: Vec<String>,
    /// Docker's: how to see whether a container is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healthcheck: Option<Value>,
    /// Unknown fields.
    #[serde(flatten)]
    pub rest: UnknownFields,
}

/// The layers of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootFs {
    /// Always `layers`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The digests of the layers as they are, uncompressed, the lowest first.
    pub diff_ids: Vec<Digest>,
}

impl Default for RootFs {
    fn default() -> Self {
        Self { kind: "layers".to_owned(), diff_ids: Vec::new() }
    }
}

/// A step in how an image came to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// By which command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// Its author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Its comment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Whether it made no layer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub empty_layer: bool,
}

fn no_entries(map: &IndexMap<String, Value>) -> bool {
    map.is_empty()
}

/// Docker writes `null` where something is absent.
fn null_as_default<'de, D: serde::Deserializer<'de>, T: Default + Deserialize<'de>>(
    d: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or_default())
}

fn entries<'de, D: serde::Deserializer<'de>>(d: D) -> Result<IndexMap<String, Value>, D::Error> {
    null_as_default(d)
}
