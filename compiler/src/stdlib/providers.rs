//! Who hands out GPUs or parts of them: `stdlib/gpu/providers.yaml`.

use std::sync::LazyLock;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::load;

pub(super) const TEXT: &str = include_str!("../../../stdlib/gpu/providers.yaml");

static PROVIDERS: LazyLock<Providers> = LazyLock::new(|| load("stdlib/gpu/providers.yaml", TEXT));

/// Who hands out GPUs or parts of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Providers {
    /// The form of the file.
    pub schema: String,
    /// The providers.
    pub providers: Vec<Provider>,
}

/// A device plugin, a scheduler or a library that hands out GPUs or parts of them.
///
/// What every provider has is typed; `other` keeps what only one or two of them have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provider {
    /// Its name, as `gpu.provider` of a target gives it.
    pub name: String,
    /// What it counts, by a short name: `gpu`, `mem`, `cores`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub resources: IndexMap<String, Resource>,
    /// Where the resources go in a pod: `limits`, or `limits+requests`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What keeps a program inside its part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforce: Option<Enforcement>,
    /// The scheduler that pods must name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// The runtime class that pods must name where it is not the node's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_class: Option<String>,
    /// Taints that its nodes usually have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<IndexMap<String, String>>,
    /// Labels that its nodes must have.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub node_labels: IndexMap<String, String>,
    /// Providers that cannot serve the same node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
    /// The least versions of what it stands on.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub requires: IndexMap<String, String>,
    /// Variables it sets in containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_injected: Vec<String>,
    /// Where the facts come from.
    pub source: String,
    /// Everything else, as the file has it.
    #[serde(flatten)]
    pub other: IndexMap<String, Value>,
}

/// What keeps a program inside its part of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Enforcement {
    /// Nothing: the numbers only place pods.
    None,
    /// A library between the program and CUDA.
    Library,
    /// The driver.
    Driver,
    /// The hardware.
    Hardware,
    /// Whole cards only.
    WholeDevice,
    /// The machine on which the program's GPU work is done.
    Remote,
}

/// Something a provider counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// Its name in a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its name with a hole, such as `nvidia.com/mig-{profile}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_template: Option<String>,
    /// Its name where the provider is set to rename it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_key: Option<String>,
    /// Characters that change when the hole is filled.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub replace: IndexMap<String, String>,
    /// What one of it is: `count`, `MiB`, `GiB`, `MB`, `256MiB`, `percent`, `percent-of-gpu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The unit where the provider is set so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alt_unit: Option<String>,
    /// What the amount is counted for, where it is not the pod: `gpu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<String>,
    /// The amount's type.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The least amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// The greatest amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// The amount unless written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<u64>,
    /// The only amount there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// Which amounts there are, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Whether pods must ask for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// When pods must ask for it, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_if: Option<String>,
    /// Whether nodes show it and pods cannot ask for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_only: Option<bool>,
}

/// The providers.
pub fn all() -> &'static [Provider] {
    &PROVIDERS.providers
}

/// The provider of that name; `nvidia` and `mig` are short for the NVIDIA device plugin and its mixed MIG strategy.
pub fn find(name: &str) -> Option<&'static Provider> {
    let name = match name {
        "nvidia" => "nvidia-device-plugin",
        "mig" | "nvidia-mig" => "nvidia-mig-mixed",
        other => other,
    };
    all().iter().find(|provider| provider.name == name)
}
