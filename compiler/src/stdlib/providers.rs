//! Providers of GPUs or parts of them on a cluster: `stdlib/gpu/providers.yaml`.

use std::sync::LazyLock;

use indexmap::IndexMap;
use jobc_schema::gpu::{Enforcement, Vendor};
use jobc_schema::plan::SharePlan;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::load;

pub(super) static PROVIDERS: LazyLock<Providers> =
    LazyLock::new(|| load(include_str!(concat!(env!("OUT_DIR"), "/providers.json"))));

/// Providers of GPUs or parts of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Providers {
    /// The content of the file.
    pub schema: String,
    /// The providers.
    pub providers: Vec<Provider>,
    /// Release of Kubernetes to the version of `resource.k8s.io` that it supports.
    pub claims: IndexMap<String, String>,
    /// Providers of RDMA devices.
    pub rdma: Rdma,
}

/// Providers of RDMA devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rdma {
    /// Linux capabilities that a program needs to use one.
    pub linux_capabilities: Vec<String>,
    /// The resource's name by plugin.
    pub names: IndexMap<String, String>,
    /// The sources of the facts.
    pub source: String,
}

/// A device plugin, a scheduler or a driver that provides GPUs or parts of them.
///
/// Keys that the lowering uses are typed; `other` keeps information for users only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provider {
    /// Its name in `gpu.provider` of a target.
    pub name: String,
    /// Other names for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// A short description.
    pub about: String,
    /// The vendor of the cards.
    pub vendor: Vendor,
    /// How whole GPUs are requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<RequestForm>,
    /// How memory and cores of a GPU are requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<RequestForm>,
    /// How a slice by profile is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<RequestForm>,
    /// What else a pod needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<PodRequirements>,
    /// How the card's model is selected: `labels` of GPU feature discovery, `labels-of-slices` of it, `claim`,
    /// `resource`, or the annotation that lists models. `None` if it cannot be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<String>,
    /// The available models, if the resource's name contains the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_names: Vec<String>,
    /// The number of instances that a role may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances: Option<u32>,
    /// Required settings of a target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// Claims of `resource.k8s.io`, used instead of resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimForm>,
    /// The object used instead of a Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectKind>,
    /// Providers that cannot serve the same node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
    /// Why it is not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unserved: Option<String>,
    /// The minimum versions of its dependencies.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub requires: IndexMap<String, String>,
    /// The sources of the facts.
    pub source: String,
    /// All other keys.
    #[serde(flatten)]
    pub other: IndexMap<String, Value>,
}

/// A way to request GPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestForm {
    /// What confines a program to its slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforce: Option<Enforcement>,
    /// The parts of a share that can be expressed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub takes: Vec<Part>,
    /// The required parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Part>,
    /// The number of GPUs or slices that an instance may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
    /// The maximum percentage of cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_cores: Option<u32>,
    /// Whether only one part of a share can be expressed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub alone: bool,
    /// What sets a slice's size, if pods do not: `replica`, the card divided into equal parts; `name`, the resource's
    /// name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// Whether several slices can be placed on one card.
    #[serde(default, skip_serializing_if = "is_false")]
    pub same_card: bool,
    /// Whether all instances of a role share one claim, and so one card.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shared_claim: bool,
    /// The request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<ResourceRequest>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// A part of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Memory.
    Memory,
    /// The percentage of cores.
    Cores,
}

impl Part {
    /// The key of `share`.
    pub fn key(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cores => "cores",
        }
    }

    /// Whether a share sets it.
    pub fn is_in(self, share: &SharePlan) -> bool {
        match self {
            Self::Memory => share.memory_bytes.is_some(),
            Self::Cores => share.cores_percent.is_some(),
        }
    }
}

/// A request of a pod: a key and an amount, both with placeholders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceRequest {
    /// The key.
    pub key: String,
    /// The amount.
    pub amount: String,
    /// Its place.
    #[serde(default, skip_serializing_if = "PodField::is_limits")]
    pub place: PodField,
    /// The unit of `{memory}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<Unit>,
    /// The unit of `{cores}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// Whether it is written once for each GPU.
    #[serde(default, skip_serializing_if = "is_false")]
    pub each: bool,
    /// Whether it is written only for more than one GPU.
    #[serde(default, skip_serializing_if = "is_false")]
    pub above_one: bool,
}

/// A place in a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodField {
    /// The container's limits.
    #[default]
    #[serde(rename = "limits")]
    Limits,
    /// The container's limits and requests.
    #[serde(rename = "limits+requests")]
    Both,
    /// The pod's labels.
    #[serde(rename = "labels")]
    Labels,
    /// The pod's annotations.
    #[serde(rename = "annotations")]
    Annotations,
    /// The container's environment.
    #[serde(rename = "env")]
    Env,
    /// The container's environment, from a field of the pod.
    #[serde(rename = "field")]
    Field,
}

impl PodField {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
    fn is_limits(&self) -> bool {
        *self == Self::Limits
    }
}

/// The unit of an amount of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Bytes.
    B,
    /// 2^20 bytes.
    MiB,
    /// 2^28 bytes.
    #[serde(rename = "256MiB")]
    Blocks,
    /// 10^9 bytes.
    GB,
    /// 2^30 bytes.
    GiB,
    /// The target's `memory_unit`; GiB by default.
    #[serde(rename = "GiB unless set")]
    GiBUnlessSet,
    /// The target's `memory_factor` in MiB; 1 by default.
    #[serde(rename = "MiB by factor")]
    Factor,
    /// The target's `memory_unit`, because the unit is not documented.
    #[serde(rename = "setting")]
    Setting,
}

/// What a pod needs besides its requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PodRequirements {
    /// Its scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// Whether it shares the node's IPC namespace.
    #[serde(default, skip_serializing_if = "is_false")]
    pub host_ipc: bool,
    /// Whether its /dev/shm is that of the server that shares the GPU, so that its size cannot be set.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shared_shm: bool,
    /// The user it runs as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_as_user: Option<i64>,
    /// Linux capabilities of its container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub linux_capabilities: Vec<String>,
    /// Taints it tolerates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<IndexMap<String, String>>,
    /// Labels of its node, needed if the resource alone does not distinguish such nodes from others.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub node_selector: IndexMap<String, String>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub labels: IndexMap<String, String>,
    /// Its annotations.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub annotations: IndexMap<String, String>,
}

/// How a driver for dynamic resource allocation describes its devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimForm {
    /// The driver's name, which is the prefix of its attributes.
    pub driver: String,
    /// Device classes: `whole`, `profile`.
    pub classes: IndexMap<String, String>,
    /// The attribute with the product's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// The attribute with a slice's profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The capacity with the memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// The attribute with the compute capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<String>,
    /// The attribute with the driver's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_version: Option<String>,
    /// The attribute with the newest CUDA that the driver runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// The attribute that slices of one card share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_card: Option<String>,
    /// How MPS shares a card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mps: Option<MpsForm>,
}

/// The attributes of a device that a claim may request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceProperty {
    /// The product's name.
    Product,
    /// The memory.
    Memory,
    /// The compute capability, the driver's version and its CUDA.
    Versions,
}

impl ClaimForm {
    /// Whether the driver already describes its devices.
    pub fn knows(&self, what: DeviceProperty) -> bool {
        match what {
            DeviceProperty::Product => self.product.is_some(),
            DeviceProperty::Memory => self.memory.is_some(),
            DeviceProperty::Versions => {
                self.compute_capability.is_some() && self.driver_version.is_some() && self.cuda.is_some()
            }
        }
    }
}

/// The driver's own parameters for sharing with MPS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MpsForm {
    /// Their API version.
    pub api_version: String,
    /// Their kind.
    pub kind: String,
    /// The driver's feature gate that must be enabled.
    pub gate: String,
}

/// The kind of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectKind {
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
}

/// The whole table.
pub fn table() -> &'static Providers {
    &PROVIDERS
}

/// The providers.
pub fn all() -> &'static [Provider] {
    &PROVIDERS.providers
}

/// The provider with that name or alias.
pub fn find(name: &str) -> Option<&'static Provider> {
    all().iter().find(|provider| provider.name == name || provider.aliases.iter().any(|alias| alias == name))
}

/// The provider that a target names, or the first one in the table for a vendor: its own device plugin.
pub fn chosen(named: Option<&str>, vendor: Vendor) -> Option<&'static Provider> {
    match named {
        Some(name) => find(name),
        None => all().iter().find(|provider| provider.vendor == vendor),
    }
}

impl Provider {
    /// Whether it serves any number of whole GPUs of any kind for every role.
    pub fn is_plain(&self) -> bool {
        self.whole.as_ref().is_some_and(|way| way.most.is_none() && way.asks.iter().all(|ask| !ask.each))
            && self.unserved.is_none()
            && self.instances.is_none()
            && self.model_names.is_empty()
            && self.pod.as_ref().is_none_or(|pod| pod.run_as_user.is_none())
    }

    /// How GPUs with that share are requested.
    pub fn way(&self, share: Option<&SharePlan>) -> Option<&RequestForm> {
        match share {
            None => self.whole.as_ref(),
            Some(share) if share.profile.is_some() => self.profile.as_ref(),
            Some(_) => self.share.as_ref(),
        }
    }
}
