//! Roles of a plan.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gpu::{DriverCapability, Enforcement, Isolation, Vendor};
use crate::pointer::Pointer;
use crate::resources::Publish;
use crate::role::{NeedState, RetryScope, Security};

use super::text::Text;

/// A decided role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RolePlan {
    /// The role's name.
    pub name: String,
    /// How many instances run.
    pub instances: u32,
    /// How many run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u32>,
    /// The image, a name of the job's `images`.
    pub image: String,
    /// What each instance runs.
    pub command: CommandPlan,
    /// Which instances run the command; the others serve ssh or idle until the job ends.
    #[serde(default, skip_serializing_if = "Launch::is_all")]
    pub launch: Launch,
    /// The variables the user set.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub env: IndexMap<String, EnvPlan>,
    /// The variables jobc provides: `JOBC_*`, the framework's, and those of `compat`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub provided_env: IndexMap<String, Text>,
    /// The folder the command starts in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// Who the command runs as: `USER[:GROUP]`, names or numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Labels.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub labels: IndexMap<String, String>,
    /// What each instance gets of the machine.
    pub resources: ResourcesPlan,
    /// Ports, in the order of the file, then those a framework needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortPlan>,
    /// Roles that must be there first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<NeedPlan>,
    /// How it is known that an instance is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<ReadyPlan>,
    /// When the role ends the job.
    pub completion: CompletionPlan,
    /// What is tried again.
    pub retry: RetryPlan,
    /// How long one attempt of an instance may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Time between SIGTERM and SIGKILL.
    pub grace_period_seconds: u64,
    /// Volumes the role sees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<MountPlan>,
    /// Small files the user put in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FilePlan>,
    /// Small files jobc provides: `/etc/jobc/job.json`, a host file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provided_files: Vec<FilePlan>,
    /// What the instance may do on the machine.
    pub security: Security,
}

impl RolePlan {
    /// Where the job file declares the role.
    pub fn at(&self) -> Pointer {
        Pointer::ROOT.keys(["roles", &self.name])
    }

    /// The port with that label.
    pub fn port(&self, label: &str) -> Option<&PortPlan> {
        self.ports.iter().find(|port| port.label == label)
    }
}

/// What an instance runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CommandPlan {
    /// The image's own ENTRYPOINT and CMD.
    Image {},
    /// The image's own ENTRYPOINT with these arguments.
    Args(Vec<Text>),
    /// These arguments, with `setup` run by the shell before, where there is one.
    Argv {
        /// The arguments.
        argv: Vec<Text>,
        /// A script that runs before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        setup: Option<Text>,
    },
    /// A script.
    Script {
        /// The arguments before the script, such as `bash -euo pipefail -c`.
        shell: Vec<String>,
        /// A script that runs before, in the same shell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        setup: Option<Text>,
        /// The script.
        script: Text,
    },
}

/// Which instances run the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Launch {
    /// All.
    #[default]
    All,
    /// The first; the others serve.
    First,
    /// None: all serve.
    None,
}

impl Launch {
    /// Whether it is the default.
    pub fn is_all(&self) -> bool {
        *self == Self::All
    }
}

/// The value of an environment variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum EnvPlan {
    /// The value of a secret.
    Secret {
        /// The secret's name.
        secret: String,
    },
    /// Text.
    Text(Text),
}

/// What an instance gets of the machine; what is absent is the target's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourcesPlan {
    /// Thousandths of a logical CPU, asked for and limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u64>,
    /// Bytes of memory, asked for and limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Bytes of /dev/shm, inside the memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shm_bytes: Option<u64>,
    /// Bytes for files outside mounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// Processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// Bytes in huge pages, by page size as in `2MiB`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub hugepages_bytes: IndexMap<String, u64>,
    /// RDMA devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdma: Option<u32>,
    /// Limits of setrlimit(2) by lower-case name; absent number: unlimited.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub ulimits: IndexMap<String, Option<u64>>,
    /// GPUs; absent: the role says nothing, count 0: all GPUs are hidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuPlan>,
}

/// GPUs of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GpuPlan {
    /// How many GPUs, or with `share` slices.
    pub count: u32,
    /// The logical number of the first instance's first GPU; instance `i` has `count` of them from `first + i * count`.
    pub first: u32,
    /// Who makes them.
    pub vendor: Vendor,
    /// Models that will do; empty: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// At least these bytes on each GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// At least this compute capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<String>,
    /// The CUDA version the program needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// At least this driver version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// What of the driver is used; empty for `count` 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<DriverCapability>,
    /// Slices instead of whole GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<SharePlan>,
}

/// A slice of a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharePlan {
    /// Bytes of GPU memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Percent of the cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores_percent: Option<u32>,
    /// A MIG profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// How strictly it must be kept.
    pub isolation: Isolation,
    /// Whether all slices must be on one card.
    pub same_card: bool,
    /// What keeps programs inside it, where the target decides; absent: the machine decides that runs the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforced_by: Option<Enforcement>,
}

/// A port of each instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortPlan {
    /// Its label.
    pub label: String,
    /// The number where each instance has an address of its own.
    pub number: u16,
    /// How many consecutive ports.
    pub count: u32,
    /// Whether jobc chose the number.
    pub auto: bool,
    /// Where instances share one address: the first instance's number; instance `i` has `shared_base + i * count`. Absent for a fixed port, which is the same everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_base: Option<u32>,
    /// Who can reach it.
    pub publish: Publish,
}

impl PortPlan {
    /// The port's number where instances share one address.
    pub fn shared_number(&self, index: u32) -> u32 {
        self.shared_base.map_or(u32::from(self.number), |base| base + index * self.count)
    }
}

/// A role that must be there first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NeedPlan {
    /// The role.
    pub role: String,
    /// How far it must be.
    pub state: NeedState,
    /// How many of its instances.
    pub min: u32,
}

/// How it is known that an instance is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadyPlan {
    /// What is tried.
    pub probe: ProbePlan,
    /// Wait before the first try.
    pub delay_seconds: u64,
    /// Wait between tries.
    pub every_seconds: u64,
    /// How long one try may take.
    pub try_timeout_seconds: u64,
    /// How long until the instance has failed.
    pub timeout_seconds: u64,
    /// Whether to go on watching.
    pub keep: bool,
}

/// What is tried to see whether an instance is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum ProbePlan {
    /// A connection to the port with this label.
    Port(String),
    /// A page.
    Http {
        /// The port's label.
        port: String,
        /// The path.
        path: String,
    },
    /// A command that exits with 0.
    Exec(Vec<Text>),
    /// A regular expression that a line of the log matches.
    Log(String),
}

/// When a role ends the job; absent: never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompletionPlan {
    /// So many successes end the job as a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_succeeded: Option<u32>,
    /// So many failures end the job as a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_failed: Option<u32>,
}

/// What is tried again after a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryPlan {
    /// Attempts after the first.
    pub max: u32,
    /// What one attempt covers.
    pub scope: RetryScope,
    /// The exit codes tried again; empty: all but 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_exit_codes: Vec<u8>,
    /// Wait before another attempt; absent: the target's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_seconds: Option<u64>,
}

/// A volume a role sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MountPlan {
    /// The volume, a name of the job's `volumes`.
    pub volume: String,
    /// Where the role sees it: an absolute path.
    pub path: String,
    /// Whether it may write to it.
    pub writable: bool,
}

/// A small file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilePlan {
    /// Where: an absolute path.
    pub path: String,
    /// What.
    pub content: FileContent,
    /// Permission bits, as a number: 0644 is 420.
    pub mode: u32,
}

/// What a small file holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FileContent {
    /// The value of a secret.
    Secret {
        /// The secret's name.
        secret: String,
    },
    /// Text.
    Text(Text),
}
