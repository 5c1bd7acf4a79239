//! Roles of a plan.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::gpu::{DriverCapability, Enforcement, Isolation, Vendor};
use crate::image::is_false;
use crate::metric::Better;
use crate::pointer::Pointer;
use crate::resources::Publish;
use crate::role::{Disruptions, NeedState, RetryScope, Security};
use crate::scalar::Scalar;
use crate::stall::{StallAction, StallSign};

use super::text::Text;

/// A resolved role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RolePlan {
    /// The role's name.
    pub name: String,
    /// The combination that the role is, if it comes from a role with a matrix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<RoleMatrixPlan>,
    /// Number of instances.
    pub instances: u32,
    /// Maximum number of instances that run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u32>,
    /// Image: a name in `images` of the job.
    pub image: String,
    /// Command of each instance.
    pub command: CommandPlan,
    /// Instances that run the command. The others run an SSH server or stay idle until the job ends.
    #[serde(default, skip_serializing_if = "Launch::is_all")]
    pub launch: Launch,
    /// Variables that the user set.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub env: IndexMap<String, EnvPlan>,
    /// Variables that jobc provides: those `JOBC_*` that the role asks for, those of the framework, of `compat` and of
    /// the target.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub provided_env: IndexMap<String, Text>,
    /// Working directory of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// User of the command: `USER[:GROUP]`, names or numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Labels.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub labels: IndexMap<String, String>,
    /// Resources of each instance.
    pub resources: ResourcesPlan,
    /// Ports in the order of the file, then those that a framework needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortPlan>,
    /// Roles that must reach a state first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<NeedPlan>,
    /// Readiness check of an instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<ReadyPlan>,
    /// When the role ends the job.
    pub completion: CompletionPlan,
    /// Retries.
    pub retry: RetryPlan,
    /// Checks before the command, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preflight: Vec<CheckPlan>,
    /// When a task makes no progress, and what is done about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall: Option<StallPlan>,
    /// Maximum run time of one attempt of an instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Time between the stop signal and SIGKILL.
    pub grace_period_seconds: u64,
    /// Signal that asks an instance to end, with `SIG`. Missing means STOPSIGNAL of the image, or SIGTERM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_signal: Option<String>,
    /// Whether the program gets a process 1 that forwards signals and reaps orphans.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    #[schemars(extend("default" = true))]
    pub init: bool,
    /// Volumes that the role mounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<MountPlan>,
    /// Metrics by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub metrics: IndexMap<String, MetricPlan>,
    /// Small files from the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FilePlan>,
    /// Small files that jobc provides, if the role or its framework asks for them: `/etc/jobc/job.json`, a host file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provided_files: Vec<FilePlan>,
    /// Security settings: what an instance may do on the host.
    pub security: Security,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_true(value: &bool) -> bool {
    *value
}

impl RolePlan {
    /// Where the job file declares the role; of a combination, as if it were a role of its own there.
    pub fn at(&self) -> Pointer {
        Pointer::ROOT.keys(["roles", &self.name])
    }

    /// The role's name in the job file: that of the role with the matrix, if it comes from one.
    pub fn declared(&self) -> &str {
        self.matrix.as_ref().map_or(&self.name, |matrix| &matrix.role)
    }

    /// The entry of a map for the role: by its own name, or by its name in the job file.
    pub fn entry_in<'a, T>(&self, map: &'a IndexMap<String, T>) -> Option<&'a T> {
        map.get(&self.name).or_else(|| map.get(self.declared()))
    }

    /// Number of instances that run at once.
    pub fn at_once(&self) -> u32 {
        self.parallel.map_or(self.instances, |n| n.min(self.instances))
    }

    /// The GPUs of an instance, if it is known to have some.
    pub fn gpus(&self) -> Option<&GpuPlan> {
        self.resources.gpu.as_ref().filter(|gpu| gpu.count > 0)
    }

    /// Whole GPUs of the instances that run at once.
    pub fn gpus_at_once(&self) -> u64 {
        let whole = self.resources.gpu.as_ref().filter(|gpu| gpu.share.is_none());
        whole.map_or(0, |gpu| u64::from(gpu.count) * u64::from(self.at_once()))
    }

    /// Whether it has metrics that are in files, and not in its output.
    pub fn has_file_metrics(&self) -> bool {
        self.metrics.values().any(|metric| matches!(metric.source, MetricSource::File { .. }))
    }

    /// The port with that label.
    pub fn port(&self, label: &str) -> Option<&PortPlan> {
        self.ports.iter().find(|port| port.label == label)
    }
}

/// A combination of a role's matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoleMatrixPlan {
    /// Role in the job file.
    pub role: String,
    /// Number of the combination, from 0.
    pub number: u32,
    /// Values of the axes.
    pub values: IndexMap<String, Scalar>,
    /// Maximum number of combinations of the role that run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
}

/// A number that a role reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricPlan {
    /// Where it is read.
    pub source: MetricSource,
    /// Which values are better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
}

/// Where a metric is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum MetricSource {
    /// Regular expression for a line of the log; its only group is the number.
    Log(String),
    /// A file.
    File {
        /// Volume: a name in `volumes` of the job.
        volume: String,
        /// Path in the volume, relative.
        path: String,
        /// Key of the number, with dots between the keys of nested objects.
        key: String,
    },
}

/// Command of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CommandPlan {
    /// ENTRYPOINT and CMD of the image.
    Image {},
    /// ENTRYPOINT of the image with these arguments.
    Args(Vec<Text>),
    /// These arguments. If `setup` is present, the shell runs it first.
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
    /// The first. The others run an SSH server or stay idle.
    First,
    /// None. All run an SSH server or stay idle.
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

/// Resources of an instance. A missing value is the default of the target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourcesPlan {
    /// Thousandths of a logical CPU, both request and limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u64>,
    /// Bytes of memory, both request and limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Bytes of /dev/shm. They count against the memory.
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
    /// Limits of disk traffic, by path or number of the device.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub io: IndexMap<String, IoPlan>,
    /// RDMA devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdma: Option<u32>,
    /// Device nodes of the host, and directories of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// Limits of setrlimit(2), by lower-case name. null means unlimited.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub ulimits: IndexMap<String, Option<u64>>,
    /// Whether a host that cannot enforce these limits refuses the job.
    #[serde(default, skip_serializing_if = "is_false")]
    pub enforce: bool,
    /// GPUs. Missing if the role does not mention GPUs. With count 0 all GPUs are hidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuPlan>,
}

/// Limits of the disk traffic of an instance with one device, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IoPlan {
    /// Bytes read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_bytes: Option<u64>,
    /// Read operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ops: Option<u32>,
    /// Write operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_ops: Option<u32>,
}

impl IoPlan {
    /// The limits that exist, by the keys of `io.max` of cgroup v2.
    pub fn rates(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let rates = [
            ("rbps", self.read_bytes),
            ("wbps", self.write_bytes),
            ("riops", self.read_ops.map(u64::from)),
            ("wiops", self.write_ops.map(u64::from)),
        ];
        rates.into_iter().filter_map(|(key, rate)| Some((key, rate?)))
    }
}

/// GPUs of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GpuPlan {
    /// Number of GPUs, or number of slices with `share`. With `all`, as many as were found; 0 if the host is not known.
    pub count: u32,
    /// Whether the job requests all GPUs of the host, `gpu: all`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Logical index of the first GPU of the first instance. Instance `i` has `count` GPUs from `first + i * count`.
    pub first: u32,
    /// Vendor of the GPUs.
    pub vendor: Vendor,
    /// Accepted models. Empty means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Minimum bytes of memory on each GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Minimum compute capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<String>,
    /// CUDA version that the program needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// Minimum driver version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Parts of the driver that are used. Empty if `count` is 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<DriverCapability>,
    /// Slices instead of whole GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<SharePlan>,
}

/// How many GPUs an instance asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuAmount {
    /// None: all GPUs are hidden from it.
    Hidden,
    /// This many.
    Count(u32),
    /// All of a host that is not known.
    All,
    /// All of a host that has this many.
    AllOf(u32),
}

impl GpuPlan {
    /// How many GPUs an instance asks for.
    pub fn amount(&self) -> GpuAmount {
        match (self.all, self.count) {
            (false, 0) => GpuAmount::Hidden,
            (false, count) => GpuAmount::Count(count),
            (true, 0) => GpuAmount::All,
            (true, count) => GpuAmount::AllOf(count),
        }
    }
}

/// A slice of a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharePlan {
    /// Bytes of GPU memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Percentage of the cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores_percent: Option<u32>,
    /// A MIG profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Minimum isolation.
    pub isolation: Isolation,
    /// Whether all slices must be on one card.
    pub same_card: bool,
    /// What enforces the slice, if the target decides. Missing if the host that runs the job decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforced_by: Option<Enforcement>,
}

/// A port of each instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortPlan {
    /// Label.
    pub label: String,
    /// Port number if each instance has its own address.
    pub number: u16,
    /// Number of consecutive ports.
    pub count: u32,
    /// Whether jobc chose the number.
    pub auto: bool,
    /// Port number of the first instance if instances share one address. Instance `i` has `shared_base + i * count`.
    /// Missing for a fixed port, which is the same everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_base: Option<u32>,
    /// Where the port is reachable.
    pub publish: Publish,
}

impl PortPlan {
    /// The port's number where instances share one address.
    pub fn shared_number(&self, index: u32) -> u32 {
        self.shared_base.map_or(u32::from(self.number), |base| base + index * self.count)
    }
}

/// A role that must reach a state first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NeedPlan {
    /// The role.
    pub role: String,
    /// State that the role must reach.
    pub state: NeedState,
    /// Minimum number of its instances.
    pub min: u32,
}

/// Readiness check of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadyPlan {
    /// The check.
    pub probe: ProbePlan,
    /// Time before the first check.
    pub delay_seconds: u64,
    /// Time between checks.
    pub every_seconds: u64,
    /// Timeout of one check.
    pub try_timeout_seconds: u64,
    /// Timeout until the instance fails.
    pub timeout_seconds: u64,
    /// Whether to continue the checks.
    pub keep: bool,
}

/// A readiness check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum ProbePlan {
    /// A connection to the port with this label.
    Port(String),
    /// An HTTP request.
    Http {
        /// The port's label.
        port: String,
        /// The path.
        path: String,
    },
    /// Command that must exit with 0.
    Exec(Vec<Text>),
    /// Regular expression that a line of the log must match.
    Log(String),
}

/// When a role ends the job. Missing means never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompletionPlan {
    /// Number of successful instances that ends the job as a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_succeeded: Option<u32>,
    /// Number of failed instances that ends the job as a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_failed: Option<u32>,
}

/// Retries after a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryPlan {
    /// Maximum number of retries, or `unlimited`.
    #[serde(with = "crate::role::retry_limit")]
    #[schemars(schema_with = "crate::role::retry_limit::schema")]
    pub max: u32,
    /// What is restarted on a retry.
    pub scope: RetryScope,
    /// Exit codes that are retried. Empty means all except 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_exit_codes: Vec<u8>,
    /// Exit codes that are never retried; all others are. Empty if `on_exit_codes` is not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never_on_exit_codes: Vec<u8>,
    /// Time before a retry. Missing means the default of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_seconds: Option<u64>,
    /// Whether failures that the platform causes count as retries.
    #[serde(default, skip_serializing_if = "Disruptions::is_count")]
    pub disruptions: Disruptions,
    /// Kinds of failures that are retried, beside `on_exit_codes`. Empty, with no exit codes either, means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<Failure>,
    /// Memory in bytes of the attempts after one, two and more that ran out of it; the last one stays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_bytes: Vec<u64>,
}

/// A check before the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CheckPlan {
    /// The task sees its GPUs.
    Gpus {},
    /// The driver is at least this version.
    Driver {
        /// The version. Default: what the image's own `CUDA_VERSION` needs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        oldest: Option<String>,
        /// What needs it, as text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        needed_by: Option<String>,
    },
    /// Each GPU multiplies matrices correctly.
    Matmul {},
    /// A file below each path can be read.
    Data {
        /// Paths of the task.
        paths: Vec<String>,
    },
    /// Bytes are free.
    Disk {
        /// How many.
        bytes: u64,
        /// Directories of the task.
        paths: Vec<String>,
    },
    /// The members of the rendezvous reach the first one.
    Network {
        /// How long they wait for each other.
        seconds: u64,
    },
    /// The clocks of the members of the rendezvous are the same.
    Clock {
        /// By how much they may differ.
        seconds: u64,
    },
    /// The processes of the rendezvous add up a tensor.
    Allreduce {
        /// Bytes a second of the bus that they reach at least.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes_per_second: Option<u64>,
    },
    /// A command of the user.
    Run {
        /// The command line for `sh`.
        command: String,
        /// How long it may take.
        timeout_seconds: u64,
    },
}

/// When a task makes no progress, and what is done about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StallPlan {
    /// How long two of the signs must last together.
    pub after_seconds: u64,
    /// Signs that are looked at.
    pub signs: Vec<StallSign>,
    /// What is done.
    pub action: StallAction,
}

impl RetryPlan {
    /// Whether a failure with an exit code is retried, as far as the code and the kind of failure decide it.
    pub fn covers(&self, code: u8, kind: Option<Failure>) -> bool {
        let all = self.on_exit_codes.is_empty() && self.on.is_empty();
        let listed = self.on_exit_codes.contains(&code) || kind.is_some_and(|kind| self.on.contains(&kind));
        (all || listed) && !self.never_on_exit_codes.contains(&code)
    }

    /// Whether some failures are final because of their exit code or kind.
    pub fn has_final_codes(&self) -> bool {
        let lists = [&self.on_exit_codes, &self.never_on_exit_codes];
        self.max > 0 && !(lists.into_iter().all(Vec::is_empty) && self.on.is_empty())
    }

    /// The key of the job file that names the exit codes or kinds.
    pub fn codes_key(&self) -> &'static str {
        match (&self.on_exit_codes[..], &self.never_on_exit_codes[..]) {
            ([], []) if !self.on.is_empty() => "on",
            (_, []) => "on_exit_codes",
            _ => "never_on_exit_codes",
        }
    }
}

/// A volume that a role mounts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MountPlan {
    /// Volume: a name in `volumes` of the job.
    pub volume: String,
    /// Mount point in the role: an absolute path.
    pub path: String,
    /// Whether the role can write to it.
    pub writable: bool,
    /// Directory in the volume that is mounted instead of all of it: a relative path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subpath: Option<String>,
}

/// A small file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilePlan {
    /// Absolute path.
    pub path: String,
    /// Content.
    pub content: FileContent,
    /// Permission bits as a decimal number: 0644 is 420.
    pub mode: u32,
}

impl FilePlan {
    /// Whether all users have the permissions of the owner: to read and execute the file.
    pub fn is_for_all(&self) -> bool {
        self.mode & 0o500 == (self.mode & 0o005) << 6
    }
}

/// Content of a small file.
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
