//! `targets.yaml`: how a place provides what jobs need; spec section "Targets".

mod gpus;
mod kubernetes;
mod openpai;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use gpus::{TargetCard, TargetGpus};
pub use kubernetes::{
    KubernetesGpu, KubernetesKind, KubernetesTarget, MemoryUnit, Patch, PodSettings, Queue, RolePodSettings,
    Storage,
};
pub use openpai::{OpenpaiPriority, OpenpaiRole, OpenpaiStorage, OpenpaiTarget};

/// The places a job can go to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "jobc targets", extend("patternProperties" = {"^x-": true}))]
pub struct Targets {
    /// The version of the targets language; always 1.
    #[schemars(schema_with = "version", extend("examples" = [1]))]
    pub version: u32,
    /// The targets `build` writes when none is named; all of them unless written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["local"]]))]
    pub default: Vec<String>,
    /// The targets by name.
    #[schemars(extend("propertyNames" = {"pattern": "^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$"}, "minProperties" = 1, "examples" = [{"lab": {"backends": ["kubernetes"]}}]))]
    pub targets: IndexMap<String, Target>,
}

fn version(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "integer", "enum": [1]})
}

/// One place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The formats written for it.
    #[schemars(length(min = 1), extend("examples" = [["dockerfile", "oci", "cgroup"]]))]
    pub backends: Vec<BackendName>,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["the group's cluster in building 5"]))]
    pub description: Option<String>,
    /// Where built images are pushed to and pulled from: a registry with a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["registry.example.com/ml"]))]
    pub registry: Option<String>,
    /// The GPUs of its machines, which jobs are checked against when they are built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"driver": "550.54.15", "cards": [{"model": "A100-80GB", "count": 8}]}]))]
    pub gpus: Option<TargetGpus>,
    /// Settings of OCI bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"gpu_injection": "hook"}]))]
    pub oci: Option<OciTarget>,
    /// Control group settings of a machine, for OCI bundles and control group files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"cpuset": "0-7", "swap": "4GiB"}]))]
    pub cgroup: Option<CgroupTarget>,
    /// Settings of Kubernetes manifests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"namespace": "ml", "queue": {"kueue": "user-queue"}}]))]
    pub kubernetes: Option<KubernetesTarget>,
    /// Settings of OpenPAI jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"virtual_cluster": "default"}]))]
    pub openpai: Option<OpenpaiTarget>,
}

/// A format that jobc writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BackendName {
    /// Dockerfiles of the images the job builds.
    Dockerfile,
    /// One OCI bundle a task.
    Oci,
    /// Cgroup v1 and v2 files and systemd properties, one set a task.
    Cgroup,
    /// Kubernetes manifests.
    Kubernetes,
    /// An OpenPAI protocol v2 job.
    Openpai,
}

impl BackendName {
    /// All backends in the order they are written.
    pub const ALL: [Self; 5] = [Self::Dockerfile, Self::Oci, Self::Cgroup, Self::Kubernetes, Self::Openpai];

    /// The name as written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dockerfile => "dockerfile",
            Self::Oci => "oci",
            Self::Cgroup => "cgroup",
            Self::Kubernetes => "kubernetes",
            Self::Openpai => "openpai",
        }
    }
}

impl std::fmt::Display for BackendName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Settings of OCI bundles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OciTarget {
    /// What of the GPU set-up a bundle carries besides the NVIDIA environment.
    #[serde(default)]
    #[schemars(extend("default" = "none", "examples" = ["cdi"]))]
    pub gpu_injection: GpuInjection,
    /// Folders of the machine that provide the job's data and outputs, by their names, in place of the job's sources.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"imagenet": "/mnt/imagenet"}]))]
    pub storage: IndexMap<String, String>,
    /// The machine's GPUs that jobs may have when `jobc run` carries them out, the first ones first: a list for every role, or
    /// lists by role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [[0, 1], {"train": ["GPU-3a1b2c3d", "1:0"]}]))]
    pub devices: Option<Devices>,
    /// What serves slices of GPUs when `jobc run` carries a job out; what suits the job and the machine unless written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["mps"]))]
    pub gpu_share: Option<GpuShare>,
}

/// GPUs of a machine, of every role or by role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Devices {
    /// Of every role.
    All(Vec<DeviceName>),
    /// By role; roles that a job does not have count for nothing.
    Roles(IndexMap<String, Vec<DeviceName>>),
}

/// What a machine's GPU is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DeviceName {
    /// Its number.
    Number(u32),
    /// The beginning of its name, `GPU-3a1b2c3d` or `MIG-…`, or the number of a card and of an instance of it, `0:1`.
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

/// What serves slices of GPUs that are not instances of a card that is cut up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GpuShare {
    /// NVIDIA's Multi-Process Service.
    Mps,
    /// HAMi-core, a library in every program.
    Hami,
    /// Nothing but the card's own time slices; nothing is enforced.
    None,
}

/// Control group settings of a machine, which every task on it gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CgroupTarget {
    /// The CPUs tasks may run on, as the kernel writes a list: `0-7,16`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$"), extend("examples" = ["0-7,16"]))]
    pub cpuset: Option<String>,
    /// The memory nodes tasks may use, as the kernel writes a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$"), extend("examples" = ["0"]))]
    pub mems: Option<String>,
    /// The weight of a task's disk traffic against others', from 10 to 1000 as OCI counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 1000), extend("examples" = [100]))]
    pub io_weight: Option<u16>,
    /// Swap a task may use besides its memory; none unless written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["4GiB"]))]
    pub swap: Option<crate::quantity::Bytes>,
}

/// What of the GPU set-up a bundle carries besides the NVIDIA environment variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GpuInjection {
    /// Nothing: whoever runs the bundle adds the devices.
    #[default]
    None,
    /// NVIDIA's prestart hook.
    Hook,
    /// CDI device names as an annotation.
    Cdi,
}
