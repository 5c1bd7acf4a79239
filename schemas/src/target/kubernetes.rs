//! `kubernetes` of a target.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// A queue of the KAI scheduler, which the provider `kai` needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["team-a"]))]
    pub kai: Option<String>,
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
    #[schemars(extend("examples" = [
        "nvidia", "nvidia-mig-mixed", "nvidia-mig-single", "nvidia-time-slicing", "nvidia-mps", "nvidia-dra",
        "aliyun-gpushare", "volcano-gpushare", "volcano-vgpu", "gpu-manager", "kubeshare-v1", "kubeshare-v2", "hami", "kai",
        "nos-mps", "nos-mig", "elasticgpu", "qgpu", "rcuda", "gvirtus", "orion", "kubevirt-vgpu", "kubevirt-sriov",
        "kubevirt-passthrough", "amd", "amd-mixed", "amd-dra", "intel", "intel-xe", "intel-dra", "gaudi", "ascend",
        "cambricon", "tpu"
    ]))]
    pub provider: Option<String>,
    /// Other providers that serve the same nodes; those that `provider` cannot stand beside are refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["nvidia"]]))]
    pub others: Vec<String>,
    /// How many replicas the device plugin makes of each GPU, with time-slicing or MPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2), extend("examples" = [4]))]
    pub replicas: Option<u32>,
    /// Whether the device plugin calls shared GPUs `nvidia.com/gpu.shared` (`renameByDefault` of its configuration).
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub renamed: bool,
    /// What the provider counts memory in, where its set-up or no document decides: gpushare in GiB unless written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["MiB"]))]
    pub memory_unit: Option<MemoryUnit>,
    /// How many MiB Volcano's device plugins count as one (their `gpu-memory-factor`, HAMi's `gpuMemoryFactor`); 1 unless
    /// written. It is larger where a machine has more than some 60,000 MiB on its GPUs, which the kubelet takes no list of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_048_576), extend("examples" = [10]))]
    pub memory_factor: Option<u32>,
    /// The resource's name on this cluster, where the provider gives none: that of a virtual machine's GPU, or one that was
    /// renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 3), extend("examples" = ["nvidia.com/GRID_T4-4Q"]))]
    pub resource: Option<String>,
    /// Machines that serve GPUs over the network, one GPU an entry, as `HOST[@PORT][:GPU]` for rCUDA; the controller for
    /// OrionX.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["gpu1@8308:0", "gpu1@8308:1"]]))]
    pub servers: Vec<String>,
    /// The folder of the provider's client library in the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^/"), extend("examples" = ["/opt/rCUDA/lib"]))]
    pub library: Option<String>,
    /// The models of the cluster's GPUs, for checks at build time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["A100-80GB"]]))]
    pub models: Vec<String>,
    /// The driver version of the cluster's nodes, for checks at build time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+(\.[0-9]+){0,2}$"), extend("examples" = ["550.54.15"]))]
    pub driver: Option<String>,
}

/// What memory of a GPU is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MemoryUnit {
    /// 2^20 bytes.
    MiB,
    /// 2^30 bytes.
    GiB,
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
