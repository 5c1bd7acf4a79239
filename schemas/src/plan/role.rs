//! Roles of a plan.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Better;
use crate::pointer::Pointer;
use crate::resources::Publish;
use crate::role::{NeedState, Security};
use crate::scalar::Scalar;

use super::files::{FilePlan, MountPlan};
use super::preflight::CheckPlan;
use super::resources::{GpuPlan, ResourcesPlan};
use super::retry::{RetryPlan, StallPlan};
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
