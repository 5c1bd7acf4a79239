//! The plan: a resolved job, independent of any backend, readable by people and by other programs.
//!
//! Every quantity has its unit in its field's name; every default is filled in; what is absent means the
//! target's own default. A role carries `instances` and never a list of tasks, so that a plan's size does not
//! grow with them. What only a target knows (addresses, ports, the instance's number) stays a reference inside
//! [`Text`].

mod files;
mod image;
pub mod order;
mod outline;
mod preflight;
mod resources;
mod retry;
mod role;
mod text;
mod usage;

use std::fmt;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::digest::Digest;
use crate::distributed::{ElasticBackend, Framework, MemberPart};
use crate::dns::Dns;
use crate::idle::Idle;
use crate::job::{Compat, Network};
use crate::notice::Notice;
use crate::pointer::Pointer;
use crate::queueing::PriorityPlan;
use crate::scalar::Scalar;
use crate::schedule::Schedule;
use crate::target::{Devices, Target};

pub use files::{FileContent, FilePlan, MountPlan};
pub use image::{BuildStep, ImagePlan, ImageSource};
pub use preflight::CheckPlan;
pub use resources::{GpuAmount, GpuPlan, IoPlan, ResourcesPlan, SharePlan};
pub use retry::{RetryPlan, StallPlan};
pub use role::{
    CommandPlan, CompletionPlan, EnvPlan, Launch, MetricPlan, MetricSource, NeedPlan, PortPlan, ProbePlan,
    ReadyPlan, RoleMatrixPlan, RolePlan,
};
pub use text::{Piece, Reference, Text};
pub use usage::Estimate;

/// Resolved jobs of one job file for one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "jobc plan")]
pub struct Plan {
    /// Version of the plan format. Always 1.
    #[serde(deserialize_with = "supported_version")]
    pub version: u32,
    /// Jobs: one, or one for each combination of `matrix`.
    pub jobs: Vec<JobPlan>,
}

fn supported_version<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        1 => Ok(1),
        other => Err(serde::de::Error::custom(format_args!(
            "version {other} of the format; this one reads version 1"
        ))),
    }
}

/// How tasks that leave are resumed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PreemptionPlan {
    /// Exit codes by which a task says that it wants to be resumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exit_codes: Vec<u8>,
    /// The output with the checkpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
}

/// A resolved job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobPlan {
    /// Name of the job, with the suffix `-<i>` in a matrix.
    pub name: String,
    /// One-line description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Combination of matrix values of this job.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub matrix: IndexMap<String, Scalar>,
    /// Maximum number of jobs of the matrix that run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    /// Parameters and their values. A value from an environment variable is recorded by the name of the variable.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub params: IndexMap<String, ParamPlan>,
    /// Target of the plan.
    pub target: TargetPlan,
    /// Images of the roles, by name: `main` for `image` of the job, the same name for entries of `images`, the name of
    /// the role for `image` of a role.
    pub images: IndexMap<String, ImagePlan>,
    /// Data and outputs by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub volumes: IndexMap<String, VolumePlan>,
    /// Where each secret's value comes from.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub secrets: IndexMap<String, SecretPlan>,
    /// Credentials for private registries, by host name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub registries: IndexMap<String, RegistryPlan>,
    /// Roles in the order of the file.
    pub roles: Vec<RolePlan>,
    /// Role names in stages: all roles that a role needs are in earlier stages.
    pub stages: Vec<Vec<String>>,
    /// Rendezvous of a distributed framework.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distributed: Option<DistributedPlan>,
    /// Whether all instances start together.
    pub gang: GangPlan,
    /// How the processes reach each other.
    pub network: Network,
    /// Names for /etc/hosts and their addresses; `host-gateway` is the host.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub extra_hosts: IndexMap<String, String>,
    /// Settings of the resolver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns: Option<Dns>,
    /// Maximum run time of the whole job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Which jobs it comes before in a queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<PriorityPlan>,
    /// Earliest start, as in the job file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// When it starts again and again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// Who hears of its start and end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notify: Vec<Notice>,
    /// What happens when its GPUs are not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
    /// How tasks are resumed; the signal and the time to leave are those of the roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemption: Option<PreemptionPlan>,
    /// What it may use over all of its attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Variables that every task has, whether or not the job file names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compat: Vec<Compat>,
    /// Total resources of all instances of all roles.
    pub totals: Totals,
}

impl JobPlan {
    /// Digits of the digest in labels, which may have at most 63 characters, and in tags.
    pub const LABEL_LENGTH: usize = 32;

    /// The digest of the plan, with the target's settings but without the way to reach the target.
    pub fn digest(&self) -> Digest {
        let mut decided = self.clone();
        let settings = &mut decided.target.settings;
        settings.ssh = None;
        Digest::of(&serde_json::to_vec(&decided).unwrap_or_default())
    }

    /// The role with that name.
    pub fn role(&self, name: &str) -> Option<&RolePlan> {
        self.roles.iter().find(|role| role.name == name)
    }

    /// The role that the job file declares under a name; of a role with a matrix its first combination.
    pub fn declared_role(&self, name: &str) -> Option<&RolePlan> {
        self.roles.iter().find(|role| role.declared() == name)
    }

    /// The volumes of each instance of a role that are on the disk of its host, and the bytes that they ask for.
    pub fn scratch<'a>(&'a self, role: &'a RolePlan) -> impl Iterator<Item = (&'a str, u64)> {
        let storage = self.target.settings.kubernetes.as_ref().map(|kubernetes| &kubernetes.storage);
        role.mounts.iter().filter_map(move |mount| {
            let VolumeSource::Instance { size_bytes: Some(bytes) } = self.volumes.get(&mount.volume)?.source
            else {
                return None;
            };
            let is_claim = storage.and_then(|storage| storage.get(&mount.volume)?.claim.as_ref()).is_some();
            (!is_claim).then_some((mount.volume.as_str(), bytes))
        })
    }

    /// The directories in memory of each instance of a role, and their bytes.
    pub fn in_memory<'a>(&'a self, role: &'a RolePlan) -> impl Iterator<Item = (&'a str, u64)> {
        role.mounts.iter().filter_map(|mount| match self.volumes.get(&mount.volume)?.source {
            VolumeSource::Memory { size_bytes } => Some((mount.volume.as_str(), size_bytes)),
            _ => None,
        })
    }

    /// The bytes of the host's disk that an instance of a role needs: its `disk`, else what [`Self::scratch`] asks for.
    pub fn disk_bytes(&self, role: &RolePlan) -> Option<u64> {
        let scratch = || self.scratch(role).map(|(_, bytes)| bytes).fold(0, u64::saturating_add);
        role.resources.disk_bytes.or_else(|| Some(scratch()).filter(|bytes| *bytes > 0))
    }

    /// What the host calls the GPUs of an instance: `oci.devices` of the target in its order, else their logical numbers.
    ///
    /// Instances that do not run at once share the names of the target. `None` if it names too few.
    pub fn gpu_names(&self, role: &RolePlan, index: u32) -> Option<Vec<String>> {
        let Some(gpu) = &role.resources.gpu else { return Some(vec![]) };
        let count = u64::from(gpu.count);
        let seat = u64::from(index % role.at_once().max(1));
        let devices = self.target.settings.oci.as_ref().and_then(|oci| oci.devices.as_ref());
        let (names, first) = match devices {
            Some(Devices::All(names)) => (Some(names), u64::from(gpu.first) + seat * count),
            Some(Devices::Roles(roles)) => (role.entry_in(roles), seat * count),
            None => (None, 0),
        };
        let Some(names) = names else {
            let first = u64::from(gpu.first) + u64::from(index) * count;
            return Some((first..first + count).map(|number| number.to_string()).collect());
        };
        let first = usize::try_from(first).ok()?;
        let last = first.checked_add(usize::try_from(count).ok()?)?;
        names.get(first..last).map(|names| names.iter().map(ToString::to_string).collect())
    }

    /// The image a role runs in.
    pub fn image_of(&self, role: &RolePlan) -> Option<&ImagePlan> {
        self.images.get(&role.image)
    }
}

/// A parameter of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ParamPlan {
    /// Its value.
    Value(Scalar),
    /// The environment variable that its value comes from.
    Environment {
        /// Name of the variable.
        env: String,
    },
}

impl fmt::Display for ParamPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => value.fmt(f),
            Self::Environment { env } => write!(f, "${env}"),
        }
    }
}

/// Target of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetPlan {
    /// The target's name.
    pub name: String,
    /// Whether this is a built-in target, used because no `targets.yaml` was found.
    #[serde(default)]
    pub built_in: bool,
    /// Its settings, as in `targets.yaml`.
    pub settings: Target,
}

/// Input data or output of the roles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumePlan {
    /// Whether the job reads or writes it.
    pub kind: VolumeKind,
    /// Where it is.
    pub source: VolumeSource,
    /// Secret with the credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Mount options for the target.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub options: IndexMap<String, String>,
}

/// The address in `extra_hosts` that stands for the host that runs a task.
pub const HOST_GATEWAY: &str = "host-gateway";

/// The name of the volume with the code of a job.
pub const CODE: &str = "jobc-code";
/// The directory of the code beside the other files of a job that was sent to a host.
pub const CODE_DIRECTORY: &str = ".jobc-code";
/// The archive of the code among the files of a backend.
pub const CODE_ARCHIVE: &str = "code.tar.gz";

impl VolumePlan {
    /// Where the job file declares the volume with a name.
    pub fn at(&self, name: &str) -> Pointer {
        match (&self.source, self.kind) {
            (VolumeSource::Code { .. }, _) => Pointer::ROOT.key("code"),
            (_, VolumeKind::Data) => Pointer::ROOT.keys(["data", name]),
            (_, VolumeKind::Output) => Pointer::ROOT.keys(["outputs", name]),
        }
    }
}

/// Whether the job reads or writes a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VolumeKind {
    /// Under `data`.
    Data,
    /// Under `outputs`.
    Output,
}

/// Where a volume is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum VolumeSource {
    /// A path on the host: absolute, or relative to the job file.
    Path {
        /// The path.
        path: String,
    },
    /// An NFS export.
    Nfs {
        /// The server.
        host: String,
        /// The exported path, absolute.
        path: String,
    },
    /// A bucket of an S3 store.
    S3 {
        /// The bucket.
        bucket: String,
        /// The path in it, without a leading `/`.
        path: String,
    },
    /// A Kubernetes PersistentVolumeClaim.
    Pvc {
        /// Its name.
        name: String,
    },
    /// A file or archive to fetch.
    Https {
        /// The address.
        url: String,
        /// Whether to unpack it.
        unpack: bool,
    },
    /// A git repository to fetch.
    Git {
        /// The address, without `git+`.
        url: String,
        /// The branch, tag or commit.
        #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
        reference: Option<String>,
    },
    /// A directory that lives as long as the job.
    Job {
        /// Whether it is in memory, so that only the tasks of one host share it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        in_memory: bool,
    },
    /// A directory in memory (tmpfs) of each instance, which is empty when it starts.
    Memory {
        /// Its size in bytes.
        size_bytes: u64,
    },
    /// A directory of each instance, which is empty when it starts.
    Instance {
        /// Its size in bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size_bytes: Option<u64>,
    },
    /// A volume that the target provides under this name.
    Target {},
    /// A directory with code, which goes with the job.
    Code {
        /// The directory: absolute, or relative to the job file.
        path: String,
        /// Digest of the packed code. Missing if the directory itself is mounted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
    },
}

/// Where a secret's value comes from when the job starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum SecretPlan {
    /// Environment variable of the user who starts the job.
    Env(String),
    /// A file.
    File(String),
    /// An entry of the secret store of the target.
    Store {
        /// Name of the object in the store.
        name: String,
        /// Key in the object.
        key: String,
    },
}

/// Credentials for a private registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegistryPlan {
    /// The user.
    pub username: String,
    /// Secret that holds the password.
    pub password_secret: String,
}

/// Rendezvous of a distributed framework.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DistributedPlan {
    /// The framework.
    pub framework: Framework,
    /// The members in rank order, then those outside the rank space.
    pub members: Vec<MemberPlan>,
    /// Number of instances in the rank space.
    pub instances: u32,
    /// Number of processes in the rank space.
    pub world_size: u32,
    /// The rendezvous port of the first ranked instance.
    pub port: u16,
    /// Numbers of an elastic rendezvous.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elastic: Option<ElasticPlan>,
    /// Passwordless SSH between the instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<SshPlan>,
}

/// An elastic rendezvous.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ElasticPlan {
    /// Minimum number of instances.
    pub min: u32,
    /// Maximum number of instances.
    pub max: u32,
    /// Number of restarts of the workers on each instance.
    pub max_restarts: u32,
    /// Store of the rendezvous.
    pub backend: ElasticBackend,
    /// Address of a store outside of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Name of the rendezvous in the store.
    pub id: String,
}

/// A role that takes part in a rendezvous.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberPlan {
    /// The role.
    pub role: String,
    /// Part of the role.
    pub part: MemberPart,
    /// Rank of its first instance. Missing outside the rank space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_rank: Option<u32>,
    /// Number of processes on each instance.
    pub processes: u32,
}

/// Passwordless SSH between instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SshPlan {
    /// Port of sshd.
    pub port: u16,
    /// User that logs in: a name, or the number of a user of the image.
    pub user: String,
}

/// Whether all instances start together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum GangPlan {
    /// All or nothing if the target supports it.
    Auto,
    /// All or nothing.
    Required,
    /// Each instance starts on its own.
    None,
    /// At least this many instances together.
    Min(u32),
}

/// Total resources of all instances of all roles, without values that a role leaves to the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Instances.
    pub instances: u64,
    /// Thousandths of a logical CPU.
    pub cpu_millis: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Whole GPUs.
    pub gpus: u64,
    /// Slices of GPUs.
    pub gpu_slices: u64,
}
