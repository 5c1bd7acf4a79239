//! `kubernetes` of a target.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Settings of Kubernetes manifests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KubernetesTarget {
    /// Kind of Kubernetes object for a job.
    #[serde(default)]
    #[schemars(extend("default" = "auto", "examples" = ["jobset"]))]
    pub kind: KubernetesKind,
    /// Kubernetes release that the output must be compatible with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^1\.[0-9]+$"), extend("default" = "1.36", "examples" = ["1.36"]))]
    pub release: Option<String>,
    /// JobSet release that the output must be compatible with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+\.[0-9]+$"), extend("default" = "0.12", "examples" = ["0.8"]))]
    pub jobset: Option<String>,
    /// Feature gates that are on in the cluster although they are off by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("uniqueItems" = true, "examples" = [["RestartJob"]]))]
    pub gates: Vec<KubernetesGate>,
    /// Kubeflow Trainer release that the output must be compatible with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+\.[0-9]+$"), extend("default" = "2.3", "examples" = ["2.3"]))]
    pub trainer: Option<String>,
    /// KubeRay release that the output must be compatible with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+\.[0-9]+$"), extend("default" = "1.7", "examples" = ["1.7"]))]
    pub kuberay: Option<String>,
    /// LeaderWorkerSet release that the output must be compatible with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+\.[0-9]+$"), extend("default" = "0.10", "examples" = ["0.10"]))]
    pub lws: Option<String>,
    /// Groups of a LeaderWorkerSet: each has all instances of the job, which find each other in their group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("default" = 1, "examples" = [3]))]
    pub replicas: Option<u32>,
    /// Training runtime of the platform for `kind: trainjob`. Default: a runtime of the job's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"name": "torch-distributed"}]))]
    pub runtime: Option<TrainingRuntime>,
    /// Plugins of `kind: volcano` with their arguments, besides `svc`, which jobc always uses.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"ssh": [], "env": []}]))]
    pub volcano_plugins: IndexMap<String, Vec<String>>,
    /// Scheduler of gangs. Default: what the queue or the kind of object provides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["native"]))]
    pub gang: Option<GangScheduler>,
    /// Namespace. Default: none in the files; the user who applies them chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"), extend("examples" = ["ml"]))]
    pub namespace: Option<String>,
    /// Pod Security level that the namespace enforces. Settings that it forbids are errors at their lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["restricted"]))]
    pub pod_security: Option<PodSecurity>,
    /// Kubeconfig file for `jobc submit` and the commands about its jobs, relative to the targets file; `~/` is the home
    /// directory. Default: the files of `KUBECONFIG`, or `~/.kube/config`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["~/.kube/lab"]))]
    pub kubeconfig: Option<String>,
    /// Context of the kubeconfig. Default: its current context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["lab"]))]
    pub context: Option<String>,
    /// Queue for the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"kueue": "user-queue"}]))]
    pub queue: Option<Queue>,
    /// Quota of the queue or namespace. Jobs that request more are reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"gpu": 32}]))]
    pub quota: Option<Quota>,
    /// Provider of GPUs and GPU slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"provider": "nvidia"}]))]
    pub gpu: Option<KubernetesGpu>,
    /// Volumes for entries of `data` and `outputs`, by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"imagenet": {"pvc": "imagenet-ro"}}]))]
    pub storage: IndexMap<String, Storage>,
    /// PersistentVolumeClaim for the code of jobs (`code`) that ConfigMaps cannot hold, above 4 MiB packed. `jobc submit`
    /// puts it into the directory `jobc-code`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"), extend("examples" = ["team"]))]
    pub code_claim: Option<String>,
    /// Whether bare paths become hostPath volumes.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub host_paths: bool,
    /// Time after which a finished job is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["1h"]))]
    pub ttl: Option<crate::duration::Seconds>,
    /// Whether the job is created suspended.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub suspend: bool,
    /// Settings of the pods of every role.
    #[serde(flatten)]
    pub pod: PodSettings,
    /// Settings of the pods of one role, by role. They override or extend those of all pods.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"train": {"node_selector": {"pool": "gpu"}}}]))]
    pub roles: IndexMap<String, RolePodSettings>,
    /// JSON merge patches that are applied to the generated objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [[{"kind": "Job", "patch": {"metadata": {"labels": {"team": "vision"}}}}]]))]
    pub patches: Vec<Patch>,
}

/// Settings of the pods of a target.
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
    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}]))]
    pub node_selector: IndexMap<String, String>,
    /// Tolerations of the pods, in Kubernetes syntax.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [[{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]]))]
    pub tolerations: Vec<IndexMap<String, Value>>,
    /// Affinity rules, in Kubernetes syntax.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<IndexMap<String, Value>>", extend("examples" = [{"nodeAffinity": {}}]))]
    pub affinity: Option<Value>,
    /// Priority class of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["batch"]))]
    pub priority_class: Option<String>,
    /// Scheduler of the pods, such as a profile that fills nodes one after another. Default: the scheduler of the GPU
    /// provider or of the kind of object, otherwise the cluster's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"), extend("examples" = ["binpack-scheduler"]))]
    pub scheduler: Option<String>,
    /// Service account of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["trainer"]))]
    pub service_account: Option<String>,
    /// Runtime class of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["nvidia"]))]
    pub runtime_class: Option<String>,
    /// Secrets with registry credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["registry-login"]]))]
    pub image_pull_secrets: Vec<String>,
    /// Resource name of the RDMA devices of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["rdma/hca"]))]
    pub rdma: Option<String>,
    /// What gives pods the device nodes of `resources.devices`, by path: the resource name of a device plugin, or
    /// `hostPath` for the node itself, which needs `privileged: true` of the role.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": r"^/dev/[^\x00-\x1f]+$"}, "examples" = [{"/dev/fuse": "github.com/fuse", "/dev/gdrdrv": "hostPath"}]))]
    pub devices: IndexMap<String, String>,
}

/// Settings of the pods of one role. They override or extend those of all pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RolePodSettings {
    /// The settings.
    #[serde(flatten)]
    pub pod: PodSettings,
}

/// Kind of Kubernetes object for a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KubernetesKind {
    /// Simplest kind that can express the job: Job, otherwise JobSet.
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
    /// A PyTorchJob of the Kubeflow Training Operator.
    Pytorchjob,
    /// A TFJob of the Kubeflow Training Operator.
    Tfjob,
    /// An MPIJob of the MPI Operator.
    Mpijob,
    /// A TrainJob of Kubeflow Trainer.
    Trainjob,
    /// A RayJob of KubeRay.
    Rayjob,
    /// A LeaderWorkerSet.
    Leaderworkerset,
}

/// Training runtime of a platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrainingRuntime {
    /// Name of the runtime.
    #[schemars(length(min = 1), extend("examples" = ["torch-distributed"]))]
    pub name: String,
    /// Whether it is a TrainingRuntime of the namespace, and not a ClusterTrainingRuntime.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub namespaced: bool,
    /// Replicated job of the runtime that runs the training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("default" = "node", "examples" = ["node"]))]
    pub job: Option<String>,
}

/// Scheduler of gangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GangScheduler {
    /// Kubernetes itself, by a PodGroup. Alpha from Kubernetes 1.35, beta from 1.37, off by default.
    Native,
}

/// Level of the Pod Security Standards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PodSecurity {
    /// No user 0, no capabilities, no volumes of the host or of NFS.
    Restricted,
    /// No access to the host.
    Baseline,
    /// Everything.
    Privileged,
}

impl std::fmt::Display for PodSecurity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Restricted => "restricted",
            Self::Baseline => "baseline",
            Self::Privileged => "privileged",
        })
    }
}

/// Feature gate of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum KubernetesGate {
    /// JobSet restarts the Job of one role alone. Alpha in JobSet 0.12.
    RestartJob,
    /// Kubelets read variables from files of the pod. On by default from Kubernetes 1.35.
    EnvFiles,
}

/// Queue for the job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Kueue local queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["user-queue"]))]
    pub kueue: Option<String>,
    /// Volcano queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["default"]))]
    pub volcano: Option<String>,
    /// Queue of the KAI scheduler. The provider `kai` requires it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["team-a"]))]
    pub kai: Option<String>,
    /// Kueue workload priority class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["high"]))]
    pub priority: Option<String>,
    /// Kueue topology of the pods of a role: how close together their nodes must be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"required": "cloud.provider.com/topology-rack"}]))]
    pub topology: Option<QueueTopology>,
}

/// How close together the nodes of the pods of a role must be: exactly one of the keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueTopology {
    /// Node label of the topology level within which all pods of a role must run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["cloud.provider.com/topology-rack"]))]
    pub required: Option<String>,
    /// Node label of the topology level within which all pods of a role run if they fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["cloud.provider.com/topology-block"]))]
    pub preferred: Option<String>,
}

/// Quota of a queue or namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [32]))]
    pub gpu: Option<u32>,
    /// CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [512]))]
    pub cpu: Option<crate::quantity::Cpus>,
    /// Memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["4TiB"]))]
    pub memory: Option<crate::quantity::Bytes>,
}

/// Provider of GPUs and GPU slices on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KubernetesGpu {
    /// Device plugin or scheduler. Default: the device plugin of the vendor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [
        "nvidia", "nvidia-mig-mixed", "nvidia-mig-single", "nvidia-time-slicing", "nvidia-mps", "nvidia-dra",
        "aliyun-gpushare", "volcano-gpushare", "volcano-vgpu", "gpu-manager", "kubeshare-v1", "kubeshare-v2", "hami", "kai",
        "nos-mps", "nos-mig", "elasticgpu", "qgpu", "rcuda", "gvirtus", "orion", "kubevirt-vgpu", "kubevirt-sriov",
        "kubevirt-passthrough", "amd", "amd-mixed", "amd-dra", "intel", "intel-xe", "intel-dra", "gaudi", "ascend",
        "cambricon", "tpu"
    ]))]
    pub provider: Option<String>,
    /// Other providers on the same nodes. Providers that cannot be combined with `provider` are an error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["nvidia"]]))]
    pub others: Vec<String>,
    /// Number of replicas of each GPU in the device plugin, with MPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2), extend("examples" = [4]))]
    pub replicas: Option<u32>,
    /// Whether the device plugin names shared GPUs `nvidia.com/gpu.shared` (`renameByDefault` in its configuration).
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub renamed: bool,
    /// Memory unit of the provider, if it depends on its setup or is not documented. Default for gpushare: GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["MiB"]))]
    pub memory_unit: Option<MemoryUnit>,
    /// MiB per memory unit of Volcano's device plugins (`gpu-memory-factor`, `gpuMemoryFactor` of HAMi). Default: 1. A
    /// host whose GPUs have more than about 60,000 MiB needs a larger factor, because the kubelet rejects longer device
    /// lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_048_576), extend("examples" = [10]))]
    pub memory_factor: Option<u32>,
    /// Resource name on this cluster, if the provider has no fixed one: for the GPU of a virtual machine or a renamed
    /// resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 3), extend("examples" = ["nvidia.com/GRID_T4-4Q"]))]
    pub resource: Option<String>,
    /// Servers that provide GPUs over the network, one entry per GPU: `HOST[@PORT][:GPU]` for rCUDA, the controller for
    /// OrionX.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["gpu1@8308:0", "gpu1@8308:1"]]))]
    pub servers: Vec<String>,
    /// Directory of the client library of the provider in the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^/"), extend("examples" = ["/opt/rCUDA/lib"]))]
    pub library: Option<String>,
    /// GPU models of the cluster, for checks at build time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["A100-80GB"]]))]
    pub models: Vec<String>,
    /// Driver version of the nodes of the cluster, for checks at build time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+(\.[0-9]+){0,2}$"), extend("examples" = ["550.54.15"]))]
    pub driver: Option<String>,
}

/// Unit of GPU memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MemoryUnit {
    /// 2^20 bytes.
    MiB,
    /// 2^30 bytes.
    GiB,
}

/// Volume for an entry of `data` or `outputs`: exactly one of the keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// A PersistentVolumeClaim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["imagenet-ro"]))]
    pub pvc: Option<String>,
    /// A directory on the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^/"), extend("examples" = ["/mnt/imagenet"]))]
    pub host_path: Option<String>,
    /// An NFS export: `HOST:/PATH` or `nfs://HOST/PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["filer.example.com:/imagenet"]))]
    pub nfs: Option<String>,
    /// A directory with the lifetime of the pod.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub ephemeral: bool,
    /// A new PersistentVolumeClaim for each pod, for data with the source `instance:SIZE`. It ends with the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"class": "fast-ssd"}]))]
    pub claim: Option<StorageClaim>,
    /// A directory in the volume, instead of its root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["runs/resnet50"]))]
    pub sub_path: Option<String>,
}

/// PersistentVolumeClaim of each pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StorageClaim {
    /// Storage class. Default: that of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["fast-ssd"]))]
    pub class: Option<String>,
}

/// A patch that is applied to the generated objects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Patch {
    /// Kind of the objects to patch.
    #[schemars(extend("examples" = ["Job"]))]
    pub kind: String,
    /// Name of the object. Default: all objects of the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["resnet50"]))]
    pub name: Option<String>,
    /// A JSON merge patch (RFC 7396).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<IndexMap<String, Value>>", extend("examples" = [{"metadata": {"labels": {"team": "vision"}}}]))]
    pub patch: Option<Value>,
    /// Operations of a JSON Patch (RFC 6902), applied in order after `patch`. An operation that matches nothing is an
    /// error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [[{"op": "remove", "path": "/spec/template/spec/hostNetwork"}]]))]
    pub operations: Vec<PatchOperation>,
}

/// An operation of a JSON Patch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchOperation {
    /// What it does.
    #[schemars(extend("examples" = ["add"]))]
    pub op: PatchVerb,
    /// Place in the object, as a JSON Pointer; `-` is the end of a list.
    #[schemars(regex(pattern = r"^(/[^/]*)+$"), extend("examples" = ["/spec/template/spec/containers/0/env/-"]))]
    pub path: String,
    /// Place that is moved or copied, for `move` and `copy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(/[^/]*)+$"), extend("examples" = ["/metadata/labels/team"]))]
    pub from: Option<String>,
    /// New value, for `add` and `replace`; expected value, for `test`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value", extend("examples" = [{"name": "TZ", "value": "UTC"}]))]
    pub value: Option<Value>,
}

/// Operation of a JSON Patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PatchVerb {
    /// Adds a key, or inserts an item into a list.
    Add,
    /// Removes a value, which must exist.
    Remove,
    /// Replaces a value, which must exist.
    Replace,
    /// Moves the value at `from`.
    Move,
    /// Copies the value at `from`.
    Copy,
    /// Fails unless the value equals `value`.
    Test,
}
