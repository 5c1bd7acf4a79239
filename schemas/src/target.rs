//! `targets.yaml`: how a place provides what jobs need; spec section "Targets".

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::forms;

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

/// Settings of Kubernetes manifests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KubernetesTarget {
    /// The kind of object a job becomes.
    #[serde(default)]
    #[schemars(extend("default" = "auto", "examples" = ["jobset"]))]
    pub kind: KubernetesKind,
    /// The Kubernetes release the output must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^1\.[0-9]+$"), extend("default" = "1.34", "examples" = ["1.34"]))]
    pub release: Option<String>,
    /// The JobSet release the output must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+\.[0-9]+$"), extend("default" = "0.12", "examples" = ["0.8"]))]
    pub jobset: Option<String>,
    /// The Kubeflow Trainer release the output must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+\.[0-9]+$"), extend("default" = "2.3", "examples" = ["2.3"]))]
    pub trainer: Option<String>,
    /// The namespace; whoever applies the files chooses unless written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"), extend("examples" = ["ml"]))]
    pub namespace: Option<String>,
    /// The queue a job waits in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"kueue": "user-queue"}]))]
    pub queue: Option<Queue>,
    /// Who serves GPUs and slices of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"provider": "nvidia"}]))]
    pub gpu: Option<KubernetesGpu>,
    /// What provides the job's data and outputs, by their names.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"imagenet": {"pvc": "imagenet-ro"}}]))]
    pub storage: IndexMap<String, Storage>,
    /// Whether bare paths become hostPath volumes.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub host_paths: bool,
    /// How long a finished job is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["1h"]))]
    pub ttl: Option<crate::duration::Seconds>,
    /// Whether the job is created suspended.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub suspend: bool,
    /// What every role's pods get.
    #[serde(flatten)]
    pub pod: PodSettings,
    /// What the pods of some roles get in place of or besides that.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"train": {"node_selector": {"pool": "gpu"}}}]))]
    pub roles: IndexMap<String, RolePodSettings>,
    /// Changes made to the objects at the end: JSON merge patches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [[{"kind": "Job", "patch": {"metadata": {"labels": {"team": "vision"}}}}]]))]
    pub patches: Vec<Patch>,
}

/// What pods get from a target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PodSettings {
    /// Labels of objects and pods.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"team": "vision"}]))]
    pub labels: IndexMap<String, String>,
    /// Annotations of objects and pods.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"example.com/owner": "vision"}]))]
    pub annotations: IndexMap<String, String>,
    /// Labels a node must have.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}]))]
    pub node_selector: IndexMap<String, String>,
    /// Taints the pods tolerate, as Kubernetes writes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [[{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]]))]
    pub tolerations: Vec<IndexMap<String, Value>>,
    /// Affinity rules, as Kubernetes writes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<IndexMap<String, Value>>", extend("examples" = [{"nodeAffinity": {}}]))]
    pub affinity: Option<Value>,
    /// The pods' priority class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["batch"]))]
    pub priority_class: Option<String>,
    /// The pods' service account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["trainer"]))]
    pub service_account: Option<String>,
    /// The pods' runtime class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["nvidia"]))]
    pub runtime_class: Option<String>,
    /// Secrets with registry log-ins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["registry-login"]]))]
    pub image_pull_secrets: Vec<String>,
    /// The resource name of the cluster's RDMA devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["rdma/hca"]))]
    pub rdma: Option<String>,
}

/// What the pods of one role get in place of or besides what all get.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RolePodSettings {
    /// The settings.
    #[serde(flatten)]
    pub pod: PodSettings,
}

/// The kind of object a job becomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KubernetesKind {
    /// The simplest that can express the job: Job, else JobSet.
    #[default]
    Auto,
    /// A Pod.
    Pod,
    /// A Job.
    Job,
    /// A JobSet.
    Jobset,
    /// A Volcano Job.
    Volcano,
    /// A PyTorchJob of the Kubeflow training operator.
    Pytorchjob,
    /// A TFJob of the Kubeflow training operator.
    Tfjob,
    /// An MPIJob of the MPI operator.
    Mpijob,
    /// A TrainJob of the Kubeflow Trainer.
    Trainjob,
}

/// The queue a job waits in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// A Kueue local queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["user-queue"]))]
    pub kueue: Option<String>,
    /// A Volcano queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["default"]))]
    pub volcano: Option<String>,
    /// A Kueue workload priority class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["high"]))]
    pub priority: Option<String>,
}

/// Who serves GPUs and slices of them on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KubernetesGpu {
    /// The device plugin or scheduler; the vendor's own plugin unless written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["nvidia", "nvidia-mig-mixed", "hami"]))]
    pub provider: Option<String>,
    /// The models of the cluster's GPUs, for checks at build time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["A100-80GB"]]))]
    pub models: Vec<String>,
    /// The driver version of the cluster's nodes, for checks at build time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+(\.[0-9]+){0,2}$"), extend("examples" = ["550.54.15"]))]
    pub driver: Option<String>,
}

/// What provides a data or output: exactly one of its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// A PersistentVolumeClaim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["imagenet-ro"]))]
    pub pvc: Option<String>,
    /// A folder of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^/"), extend("examples" = ["/mnt/imagenet"]))]
    pub host_path: Option<String>,
    /// An NFS export: `HOST:/PATH` or `nfs://HOST/PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["filer.example.com:/imagenet"]))]
    pub nfs: Option<String>,
    /// A folder that lives as long as the pod.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub ephemeral: bool,
    /// A folder below the volume's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["runs/resnet50"]))]
    pub sub_path: Option<String>,
}

/// A change made to the objects at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Patch {
    /// The kind of the objects that change.
    #[schemars(extend("examples" = ["Job"]))]
    pub kind: String,
    /// The name of the object, where not all of the kind change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["resnet50"]))]
    pub name: Option<String>,
    /// A JSON merge patch (RFC 7396).
    #[schemars(with = "IndexMap<String, Value>", extend("examples" = [{"metadata": {"labels": {"team": "vision"}}}]))]
    pub patch: Value,
}

/// Settings of OpenPAI jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenpaiTarget {
    /// The virtual cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "default", "examples" = ["research"]))]
    pub virtual_cluster: Option<String>,
    /// The job's priority class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["test"]))]
    pub priority: Option<OpenpaiPriority>,
    /// Storages mounted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [[{"name": "confignfs", "mount": "/data"}]]))]
    pub storages: Vec<OpenpaiStorage>,
    /// Runtime plugins, as OpenPAI writes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<IndexMap<String, Value>>", extend("examples" = [[{"plugin": "teamwise_storage", "parameters": {"storageConfigNames": ["confignfs"]}}]]))]
    pub plugins: Vec<Value>,
    /// Settings of some roles.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"train": {"sku_type": "V100"}}]))]
    pub roles: IndexMap<String, OpenpaiRole>,
}

/// An OpenPAI priority class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OpenpaiPriority {
    /// Guaranteed.
    Prod,
    /// For tests.
    Test,
    /// Opportunistic: may be preempted.
    Oppo,
}

/// A storage mounted by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenpaiStorage {
    /// The storage's name in the cluster.
    #[schemars(extend("examples" = ["confignfs"]))]
    pub name: String,
    /// Where tasks see it; `/mnt/NAME` unless written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["/data"]))]
    pub mount: Option<String>,
    /// The job's data or output that the storage provides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["imagenet"]))]
    pub provides: Option<String>,
    /// Whether tasks may only read it.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub read_only: bool,
}

/// Settings of one role on OpenPAI.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenpaiRole {
    /// The HiveD SKU; excludes `pinned_cell`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["V100"]))]
    pub sku_type: Option<String>,
    /// How many SKUs an instance takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::positive", extend("examples" = [1]))]
    pub sku_num: Option<u32>,
    /// The HiveD cell the role is pinned to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["cell-1"]))]
    pub pinned_cell: Option<String>,
}
