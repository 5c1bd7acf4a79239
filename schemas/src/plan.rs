//! The plan: what was decided about a job, neutral of any backend, readable by people and by other programs.
//!
//! Every quantity has its unit in its field's name; every default is filled in; what is absent means the
//! target's own default. A role carries `instances` and never a list of tasks, so that a plan's size does not
//! grow with them. What only a target knows (addresses, ports, the instance's number) stays a reference inside
//! [`Text`].

mod image;
pub mod order;
mod role;
mod text;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distributed::{Framework, MemberPart};
use crate::job::{Compat, Network};
use crate::scalar::Scalar;
use crate::target::Target;

pub use image::{BuildStep, ImagePlan, ImageSource};
pub use role::{
    CommandPlan, CompletionPlan, EnvPlan, FileContent, FilePlan, GpuPlan, Launch, MountPlan, NeedPlan,
    PortPlan, ProbePlan, ReadyPlan, ResourcesPlan, RetryPlan, RolePlan, SharePlan,
};
pub use text::{Piece, Reference, Text};

/// The decided jobs of one job file for one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "jobc plan")]
pub struct Plan {
    /// The version of the plan's format; always 1.
    pub version: u32,
    /// The jobs: one, or one for each combination of `matrix`.
    pub jobs: Vec<JobPlan>,
}

/// One decided job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobPlan {
    /// The job's name, with `-<i>` behind it in a matrix.
    pub name: String,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The combination of matrix values this job stands for.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub matrix: IndexMap<String, Scalar>,
    /// How many jobs of the matrix may run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    /// The parameters with their values.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub params: IndexMap<String, Scalar>,
    /// The place the plan is for.
    pub target: TargetPlan,
    /// The images the roles run in, by name: `main` is the job's own, `images` keep their names, a role's own has the role's.
    pub images: IndexMap<String, ImagePlan>,
    /// Data and outputs by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub volumes: IndexMap<String, VolumePlan>,
    /// Where each secret's value comes from.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub secrets: IndexMap<String, SecretPlan>,
    /// Log-ins of private registries, by host name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub registries: IndexMap<String, RegistryPlan>,
    /// The roles, in the order of the file.
    pub roles: Vec<RolePlan>,
    /// Names of roles in layers: a role's needs are all in earlier layers.
    pub stages: Vec<Vec<String>>,
    /// The rendezvous of a distributed framework.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distributed: Option<DistributedPlan>,
    /// Whether instances start together.
    pub gang: GangPlan,
    /// How processes reach each other.
    pub network: Network,
    /// How long the whole job may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Other systems whose environment variables are set as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compat: Vec<Compat>,
    /// What all instances of all roles take together.
    pub totals: Totals,
}

impl JobPlan {
    /// The role with that name.
    pub fn role(&self, name: &str) -> Option<&RolePlan> {
        self.roles.iter().find(|role| role.name == name)
    }

    /// The image a role runs in.
    pub fn image_of(&self, role: &RolePlan) -> Option<&ImagePlan> {
        self.images.get(&role.image)
    }
}

/// The place a plan is for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetPlan {
    /// The target's name.
    pub name: String,
    /// Whether the target is one of the built-in ones, used because no `targets.yaml` was found.
    #[serde(default)]
    pub built_in: bool,
    /// Its settings, as in `targets.yaml`.
    pub settings: Target,
}

/// Something the roles read or write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumePlan {
    /// Whether the job reads or writes it.
    pub kind: VolumeKind,
    /// Where it is.
    pub source: VolumeSource,
    /// The secret that opens it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Mount options that only the target understands.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub options: IndexMap<String, String>,
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
    /// A path of the machine: absolute, or relative to the job file.
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
    /// Whatever the target provides under the volume's name.
    Target {},
}

/// Where a secret's value comes from when the job starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum SecretPlan {
    /// An environment variable of whoever starts the job.
    Env(String),
    /// A file.
    File(String),
    /// An entry of the place's secret store.
    Store {
        /// The store's object.
        name: String,
        /// The key in it.
        key: String,
    },
}

/// A log-in for a private registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegistryPlan {
    /// The user.
    pub username: String,
    /// The secret that holds the password.
    pub password_secret: String,
}

/// The rendezvous of a distributed framework.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DistributedPlan {
    /// The framework.
    pub framework: Framework,
    /// The members in rank order, then those outside the rank space.
    pub members: Vec<MemberPlan>,
    /// How many instances are in the rank space.
    pub instances: u32,
    /// How many processes are in the rank space.
    pub world_size: u32,
    /// The rendezvous port of the first ranked instance.
    pub port: u16,
    /// Password-less ssh between the instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<SshPlan>,
}

/// A role that takes part in a rendezvous.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberPlan {
    /// The role.
    pub role: String,
    /// The part it plays.
    pub part: MemberPart,
    /// The instance rank of its first instance; absent outside the rank space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_rank: Option<u32>,
    /// Processes on each instance.
    pub processes: u32,
}

/// Password-less ssh between instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SshPlan {
    /// The port sshd listens on.
    pub port: u16,
    /// The user that logs in.
    pub user: String,
}

/// Whether instances start together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum GangPlan {
    /// All or nothing where the target can.
    Auto,
    /// All or nothing.
    Required,
    /// Each instance starts when it can.
    None,
    /// At least this many together.
    Min(u32),
}

/// What all instances of all roles take together; what a role leaves to the target is not counted.
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
