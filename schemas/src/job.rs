//! The job file, top level: spec section "Job level".

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::code::Code;
use crate::distributed::Distributed;
use crate::dns::Dns;
use crate::duration::Seconds;
use crate::forms;
use crate::idle::Idle;
use crate::image::Image;
use crate::matrix::Matrix;
use crate::metric::Metric;
use crate::notice::Notice;
use crate::preemption::Preemption;
use crate::preflight::Check;
use crate::progress::Progress;
use crate::queueing::Priority;
use crate::role::{Retry, Role};
use crate::scalar::{EnvValue, Scalar, ScalarKind};
use crate::schedule::Schedule;
use crate::stall::Stall;
use crate::storage::{Data, Output};
use crate::target::OpenpaiTarget;

/// A job: an image, data, roles with their resources and commands, and how they work together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "jobc job", extend("patternProperties" = {"^x-": true, r"^\$schema$": {"type": "string"}}))]
pub struct Job {
    /// Version of the job format. Always 1.
    #[schemars(schema_with = "version", extend("examples" = [1]))]
    pub version: u32,
    /// Name of the job: lower-case letters, digits and `-`, at most 40 characters. Every derived name begins with it.
    #[schemars(regex(pattern = r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$"), extend("examples" = ["resnet50"]))]
    pub name: String,
    /// One-line description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["ResNet-50 on ImageNet, data parallel"]))]
    pub description: Option<String>,
    /// Parameters with their defaults. Override them with `--set NAME=VALUE` or `--params FILE`, use them as
    /// `${{ params.NAME }}`. The default sets the type.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}, "examples" = [{"batch_size": 256}]))]
    pub params: IndexMap<String, Param>,
    /// Secrets: where each value comes from when the job starts. The values never enter the plan.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z_][A-Za-z0-9_-]{0,62}$"}, "examples" = [{"wandb": {"env": "WANDB_API_KEY"}}]))]
    pub secrets: IndexMap<String, Secret>,
    /// Image of the roles: an image reference, `host`, or a block that builds an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime"]))]
    pub image: Option<Image>,
    /// Named images. A role selects one with `image: {use: NAME}`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$"}, "examples" = [{"tools": "python:3.12-slim"}]))]
    pub images: IndexMap<String, Image>,
    /// Credentials for private registries, by host name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"registry.example.com": {"username": "robot", "password": {"secret": "registry"}}}]))]
    pub registries: IndexMap<String, Registry>,
    /// Input data of the roles. Each entry is mounted at its `mount`, read-only unless `writable: true`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$"}, "examples" = [{"imagenet": {"source": "/data/imagenet", "mount": "/data"}}]))]
    pub data: IndexMap<String, Data>,
    /// Output of the roles. Each source is created if missing and mounted writable.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$"}, "examples" = [{"checkpoints": {"source": "./checkpoints", "mount": "/output"}}]))]
    pub outputs: IndexMap<String, Output>,
    /// Directory with your code, which goes with the job and needs no image: a path relative to the job file, or a block
    /// with `from`. Commands start in it. `.jobcignore`, otherwise `.dockerignore`, names what stays here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [".", {"from": "./src", "mount": "/workspace"}]))]
    pub code: Option<Code>,
    /// Environment variables for all roles.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}, "examples" = [{"NCCL_DEBUG": "info"}]))]
    pub env: IndexMap<String, EnvValue>,
    /// Roles of the job, by name. A role is one kind of process.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$"}, "minProperties" = 1, "examples" = [{"train": {"run": "python train.py", "resources": {"cpu": 8, "memory": "32GiB", "gpu": 1}}}]))]
    pub roles: IndexMap<String, Role>,
    /// Rendezvous of a distributed framework: how its instances find each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"framework": "torchrun", "roles": ["train"]}]))]
    pub distributed: Option<Distributed>,
    /// Gang scheduling: whether all instances start together or none starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "auto", "examples" = ["required", {"min": 4}]))]
    pub gang: Option<Gang>,
    /// How the processes of the job reach each other and external networks.
    #[serde(default)]
    #[schemars(extend("default" = "auto", "examples" = ["job"]))]
    pub network: Network,
    /// Names for /etc/hosts of the roles, with their addresses. `host-gateway` stands for the host itself, so that tasks
    /// reach services on its loopback addresses.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"db.lab": "10.0.0.7", "host.containers.internal": "host-gateway"}]))]
    pub extra_hosts: IndexMap<String, String>,
    /// How the roles look up other names: name servers, search domains and options of the resolver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"servers": ["10.0.0.2"], "search": ["corp.example.com"]}]))]
    pub dns: Option<Dns>,
    /// Retries after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"max": 2, "backoff": "10s"}]))]
    pub retry: Option<Retry>,
    /// Maximum run time of the whole job. After that its tasks are stopped and the job fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["12h"]))]
    pub timeout: Option<Seconds>,
    /// Time between SIGTERM and SIGKILL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "30s", "examples" = ["2m"]))]
    pub grace_period: Option<Seconds>,
    /// [preview] Checks before the command of each task: GPUs, disks, data, network, or a command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["gpus", "data", {"disk": "100GiB"}]]))]
    pub preflight: Vec<Check>,
    /// [preview] When tasks make no progress, and what is done about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"after": "10m", "action": "restart"}]))]
    pub stall: Option<Stall>,
    /// [preview] How tasks are asked to leave for another job or for maintenance, and resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"grace": "2m", "exit_codes": [85], "checkpoint": "checkpoints"}]))]
    pub preemption: Option<Preemption>,
    /// [preview] What the job may use over all of its attempts: GPU-hours, energy, cost. At a limit its tasks are asked to
    /// leave as by `preemption`, and the job ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"gpu_hours": 96}, {"energy": "10kWh", "cost": 50}]))]
    pub budget: Option<Budget>,
    /// One job for each combination of the values of the axes. Each job is named `NAME-<i>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"lr": [0.1, 0.01]}]))]
    pub matrix: Option<Matrix>,
    /// Metrics of every role: numbers that `jobc ps` and `jobc report` show and compare. The last value counts.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z_][A-Za-z0-9_./-]{0,62}$"}, "examples" = [{"loss": {"log": "val_loss=([0-9.e+-]+)", "better": "lower"}}]))]
    pub metrics: IndexMap<String, Metric>,
    /// [preview] How far the job is: two numbers, done and total, of a line of the log or of a file. `jobc ps` and
    /// `jobc report` show them with the time left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"log": "step (?P<done>[0-9]+)/(?P<total>[0-9]+)"}]))]
    pub progress: Option<Progress>,
    /// [preview] Which jobs it comes before in a queue: -100 to 100, higher is sooner, or a name of `priorities` of the
    /// target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 0, "examples" = [-10, "urgent"]))]
    pub priority: Option<Priority>,
    /// [preview] Earliest start: a time of the day, a date with a time, or how long after the job is submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["22:00", "2026-12-24T22:00", "2h"]))]
    pub after: Option<String>,
    /// [preview] When the job starts again and again: a CronJob of Kubernetes or a timer of systemd, which `jobc build`
    /// writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"cron": "0 3 * * *", "zone": "Europe/Berlin"}]))]
    pub schedule: Option<Schedule>,
    /// [preview] Who hears of the start and the end of the job. The job does not wait for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [[{"on": ["failed", "stalled"], "webhook": "slack"}]]))]
    pub notify: Vec<Notice>,
    /// [preview] What happens to a job that holds GPUs and does not use them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"after": "1h", "action": "stop"}]))]
    pub idle: Option<Idle>,
    /// Variables that every task has, whether or not the job file names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["openpai"], ["jobc"]]))]
    pub compat: Vec<Compat>,
    /// Settings that only OpenPAI supports, for a job imported from OpenPAI. `openpai` of a target overrides them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"virtual_cluster": "research"}]))]
    pub openpai: Option<OpenpaiTarget>,
    /// Template that provides the keys that this file omits: `std/NAME`, a path, or
    /// `git+https://HOST/REPO//PATH@COMMIT`, which `jobc lock` fetches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["std/torchrun"]))]
    pub uses: Option<String>,
    /// Parameters of the template.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"nodes": 4}]))]
    pub with: IndexMap<String, Scalar>,
}

fn version(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "integer", "enum": [1]})
}

/// A parameter: its default, or a block with the default and rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Param {
    /// The default with rules.
    Rules(ParamRules),
    /// The default. Its type is the type of the parameter.
    Default(Scalar),
}

/// Default and rules of a parameter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParamRules {
    /// Value when neither `--set` nor `--params` sets one: a value, or `{env: NAME}` for an environment variable.
    /// Without a default the parameter is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["resnet50", 256, 0.1, {"env": "BATCH_SIZE", "default": 256}]))]
    pub default: Option<ParamDefault>,
    /// Type of the parameter. Default: the type of `default`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["integer"]))]
    pub kind: Option<ScalarKind>,
    /// Allowed values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["resnet18", "resnet50"]]))]
    pub choices: Vec<Scalar>,
    /// Minimum value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [1]))]
    pub min: Option<f64>,
    /// Maximum value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [4096]))]
    pub max: Option<f64>,
    /// One-line description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["torchvision model name"]))]
    pub description: Option<String>,
}

/// Default of a parameter: a value, or an environment variable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ParamDefault {
    /// An environment variable.
    Environment(ParamEnvironment),
    /// The value.
    Value(Scalar),
}

/// An environment variable of the user who builds or starts the job. The plan records its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParamEnvironment {
    /// Name of the variable.
    #[schemars(regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"), extend("examples" = ["BATCH_SIZE"]))]
    pub env: String,
    /// Value if the variable is not set. Without it, an unset variable is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [256]))]
    pub default: Option<Scalar>,
}

/// Where the value of a secret comes from when the job starts: exactly one of `env`, `file`, `store`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct Secret {
    /// Environment variable of the user who starts the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"), extend("examples" = ["WANDB_API_KEY"]))]
    pub env: Option<String>,
    /// File that is read when the job starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["~/.config/wandb/key"]))]
    pub file: Option<String>,
    /// Entry of the secret store of the target, such as a Kubernetes Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"name": "team-secrets", "key": "wandb"}]))]
    pub store: Option<SecretStore>,
}

/// An entry of the secret store of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretStore {
    /// Name of the object in the store, such as a Kubernetes Secret.
    #[schemars(length(min = 1), extend("examples" = ["team-secrets"]))]
    pub name: String,
    /// Key in the object.
    #[schemars(length(min = 1), extend("examples" = ["wandb"]))]
    pub key: String,
}

/// Credentials for a private registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Registry {
    /// User name.
    #[schemars(extend("examples" = ["robot"]))]
    pub username: String,
    /// Secret that holds the password.
    #[schemars(extend("examples" = [{"secret": "registry"}]))]
    pub password: SecretRef,
}

/// A reference to a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretRef {
    /// Name of an entry in `secrets`.
    #[schemars(extend("examples" = ["registry"]))]
    pub secret: String,
}

/// Gang scheduling: whether all instances start together or none starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Gang {
    /// A keyword.
    Word(GangWord),
    /// At least this many instances.
    Min(GangMin),
}

/// Keywords of `gang`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GangWord {
    /// All or nothing if the target supports it; otherwise a note.
    Auto,
    /// All or nothing; an error if the target does not support it.
    Required,
    /// Each instance starts on its own.
    None,
}

/// A gang with a minimum number of instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GangMin {
    /// Minimum number of instances that must start together.
    #[schemars(schema_with = "forms::positive", extend("examples" = [4]))]
    pub min: u32,
}

/// How the processes of the job reach each other and external networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// The default of the target: the host network with distinct ports on this host, the pod network on Kubernetes.
    #[default]
    Auto,
    /// The host network.
    Host,
    /// A private network for the job. Every instance has its own address.
    Job,
    /// No network.
    None,
}

/// Variables that every task has, whether or not the job file names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Compat {
    /// The `PAI_*` variables of OpenPAI.
    Openpai,
    /// All `JOBC_*` variables and files of jobc, for programs in an image that read them.
    Jobc,
}
