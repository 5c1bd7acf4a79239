//! `targets.yaml`: targets and their settings; spec section "Targets".

mod backend_name;
mod gpus;
mod kubernetes;
mod openpai;
mod policy;
mod prices;
mod slurm;
mod ssh;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use backend_name::{BackendName, BackendNameError, PluginName};
pub use gpus::{TargetCard, TargetGpus};
pub use kubernetes::{
    GangScheduler, KubernetesGate, KubernetesGpu, KubernetesKind, KubernetesTarget, MemoryUnit, Patch,
    PatchOperation, PatchVerb, PodSecurity, PodSettings, Queue, QueueTopology, Quota, RolePodSettings,
    Storage, StorageClaim, TrainingRuntime,
};
pub use openpai::{OpenpaiPriority, OpenpaiRole, OpenpaiStorage, OpenpaiTarget};
pub use policy::{Policy, SignaturePolicy};
pub use prices::{GpuPrices, Prices};
pub use slurm::{SlurmContainer, SlurmGpu, SlurmMemory, SlurmTarget, image_file_name};
pub use ssh::SshTarget;

use crate::queueing::PriorityEntry;
use crate::scalar::Scalar;

/// Targets: where jobs can run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "jobc targets", extend("patternProperties" = {"^x-": true, r"^\$schema$": {"type": "string"}}))]
pub struct Targets {
    /// Version of the targets format. Always 1.
    #[schemars(schema_with = "version", extend("examples" = [1]))]
    pub version: u32,
    /// Targets that `jobc build` writes if none is given. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["local"]]))]
    pub default: Vec<String>,
    /// Targets by name.
    #[schemars(extend("propertyNames" = {"pattern": "^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$"}, "minProperties" = 1, "examples" = [{"lab": {"backends": ["kubernetes"]}}]))]
    pub targets: IndexMap<String, Target>,
}

fn version(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "integer", "enum": [1]})
}

/// Variables: strings, or numbers that keep their spelling.
fn variables(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
        "additionalProperties": {"type": ["string", "number"]}
    })
}

/// A target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Output formats of the target.
    #[schemars(length(min = 1), extend("examples" = [["dockerfile", "oci", "cgroup"]]))]
    pub backends: Vec<BackendName>,
    /// One-line description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["the group's cluster in building 5"]))]
    pub description: Option<String>,
    /// Registry and path that built images are pushed to and pulled from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["registry.example.com/ml"]))]
    pub registry: Option<String>,
    /// GPUs of its hosts. Jobs are checked against them at build time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"driver": "550.54.15", "cards": [{"model": "A100-80GB", "count": 8}]}]))]
    pub gpus: Option<TargetGpus>,
    /// Environment variables of every task: network interfaces, caches, proxies. Those that a job sets take precedence.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(schema_with = "variables", extend("examples" = [{"NCCL_SOCKET_IFNAME": "eth0"}]))]
    pub env: IndexMap<String, Scalar>,
    /// Limits for every job of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"require_digest": true, "max_gpus": 64}]))]
    pub policy: Option<Policy>,
    /// [preview] Names for `priority` of jobs, and what they are at this target.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$"}, "examples" = [{"urgent": {"value": 50, "class": "high", "qos": "urgent"}}]))]
    pub priorities: IndexMap<String, PriorityEntry>,
    /// [preview] What an hour of its resources costs. Plans, records and `budget` of jobs use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"currency": "EUR", "gpu": {"H100": 2.4, "A100": 1.5}, "cpu": 0.04}]))]
    pub prices: Option<Prices>,
    /// Settings of OCI bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"gpu_injection": "hook"}]))]
    pub oci: Option<OciTarget>,
    /// Cgroup settings of a host, for OCI bundles and cgroup files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"cpuset": "0-7", "swap": "4GiB"}]))]
    pub cgroup: Option<CgroupTarget>,
    /// Settings of Kubernetes manifests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"namespace": "ml", "queue": {"kueue": "user-queue"}}]))]
    pub kubernetes: Option<KubernetesTarget>,
    /// Settings of plug-ins by name, as each plug-in documents them.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"compose": {"project": "demo"}}]))]
    pub plugins: IndexMap<String, serde_json::Map<String, serde_json::Value>>,
    /// Settings of OpenPAI jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"virtual_cluster": "default"}]))]
    pub openpai: Option<OpenpaiTarget>,
    /// Settings of Slurm jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"partition": "gpu", "container": "apptainer"}]))]
    pub slurm: Option<SlurmTarget>,
    /// Host that runs the jobs, or login node of the cluster, reached over ssh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"host": "box"}]))]
    pub ssh: Option<SshTarget>,
}

impl Target {
    /// Whether `jobc run` can run its jobs on this host: it has bundles, and they are neither for the nodes of a
    /// cluster nor for another host.
    pub fn is_host(&self) -> bool {
        self.has_bundles() && self.ssh.is_none()
    }

    /// Whether it is another host, where `jobc run` runs the jobs.
    pub fn is_machine(&self) -> bool {
        self.has_bundles() && self.ssh.is_some()
    }

    fn has_bundles(&self) -> bool {
        self.backends.contains(&BackendName::Oci) && !self.backends.contains(&BackendName::Slurm)
    }
}

/// Settings of OCI bundles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OciTarget {
    /// GPU setup in a bundle in addition to the NVIDIA environment variables.
    #[serde(default)]
    #[schemars(extend("default" = "none", "examples" = ["cdi"]))]
    pub gpu_injection: GpuInjection,
    /// Host directories for entries of `data` and `outputs`, by name. They replace the sources in the job.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"imagenet": "/mnt/imagenet"}]))]
    pub storage: IndexMap<String, String>,
    /// GPUs of the host that `jobc run` may use, in order of preference: a list for every role, or lists by role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [[0, 1], {"train": ["GPU-3a1b2c3d", "1:0"]}]))]
    pub devices: Option<Devices>,
    /// How `jobc run` shares GPUs that are not MIG instances. Default: chosen from job and host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["mps"]))]
    pub gpu_share: Option<GpuShare>,
}

/// GPUs of a host, for every role or by role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Devices {
    /// For every role.
    All(Vec<DeviceName>),
    /// By role. Roles that a job does not have are ignored.
    Roles(IndexMap<String, Vec<DeviceName>>),
}

/// Identifier of a GPU of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DeviceName {
    /// Its number.
    Number(u32),
    /// Prefix of the UUID, `GPU-3a1b2c3d` or `MIG-…`, or index of a card and of an instance on it, `0:1`.
    Name(String),
}

impl std::fmt::Display for DeviceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

/// How GPUs that are not MIG instances are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GpuShare {
    /// NVIDIA's Multi-Process Service.
    Mps,
    /// HAMi-core, a library that is loaded into every program.
    Hami,
    /// Time slicing by the card. Nothing is enforced.
    None,
}

/// Cgroup settings of a host. They apply to every task on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CgroupTarget {
    /// CPUs that tasks can use, in the list format of the kernel: `0-7,16`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$"), extend("examples" = ["0-7,16"]))]
    pub cpuset: Option<String>,
    /// NUMA memory nodes that tasks can use, in the list format of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$"), extend("examples" = ["0"]))]
    pub mems: Option<String>,
    /// Block I/O weight of a task relative to others, from 10 to 1000 as in the OCI specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 1000), extend("examples" = [100]))]
    pub io_weight: Option<u16>,
    /// Swap that a task can use in addition to memory. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["4GiB"]))]
    pub swap: Option<crate::quantity::Bytes>,
}

/// GPU setup in a bundle in addition to the NVIDIA environment variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GpuInjection {
    /// No setup. The user who runs the bundle adds the devices.
    #[default]
    None,
    /// NVIDIA's prestart hook.
    Hook,
    /// CDI device names in an annotation.
    Cdi,
}
