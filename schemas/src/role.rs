//! A role: spec section "Role level".

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::Seconds;
use crate::failure::{Factor, Failure};
use crate::forms;
use crate::image::Image;
use crate::matrix::Matrix;
use crate::metric::Metric;
use crate::preflight::Check;
use crate::progress::Progress;
use crate::quantity::Bytes;
use crate::resources::Resources;
use crate::scalar::{EnvValue, Scalar};
use crate::stall::Stall;

/// A role: one kind of process of a job and its number of instances.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// Number of instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::positive", extend("default" = 1, "examples" = [4]))]
    pub instances: Option<u32>,
    /// Maximum number of instances that run at once. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::positive", extend("examples" = [2]))]
    pub parallel: Option<u32>,
    /// One group of tasks for each combination of the values of the axes. Each group is named `ROLE-m<i>`. `ROLE` in
    /// `needs` of other roles means all groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"lr": [0.1, 0.01]}]))]
    pub matrix: Option<Matrix>,
    /// Command of each instance: a script for `shell`, or a list of arguments that runs without a shell. Default: the
    /// command of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["python train.py --epochs 90", ["python", "train.py"]]))]
    pub run: Option<Run>,
    /// Arguments for the ENTRYPOINT of the image, instead of its CMD. Cannot be combined with `run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [["--port", "8888"]]))]
    pub args: Option<Vec<String>>,
    /// Shell that runs scripts: `bash` (`bash -euo pipefail`), `sh` (`/bin/sh -eu`), or the arguments before the
    /// script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "bash", "examples" = ["sh", ["python", "-c"]]))]
    pub shell: Option<Shell>,
    /// Script that runs before `run`. If it fails, the instance fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["pip install -e ."]))]
    pub setup: Option<String>,
    /// Roles that this role depends on, and the state they must reach first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [["prepare"], {"prepare": "succeeded", "server": "ready"}]))]
    pub needs: Option<Needs>,
    /// Readiness check: when an instance is ready to serve others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"port": "http"}]))]
    pub ready: Option<Ready>,
    /// Resources of each instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"cpu": 8, "memory": "32GiB", "gpu": 1}]))]
    pub resources: Option<Resources>,
    /// Image of this role, instead of the image of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"use": "tools"}]))]
    pub image: Option<Image>,
    /// Environment variables of this role. They override those of the job.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}, "examples" = [{"OMP_NUM_THREADS": 8}]))]
    pub env: IndexMap<String, EnvValue>,
    /// Working directory of the command. Default: from the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["/workspace"]))]
    pub workdir: Option<String>,
    /// User of the command: `USER` or `USER:GROUP`, by name or number. Default: from the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([A-Za-z_][A-Za-z0-9_.-]*|[0-9]+)(:([A-Za-z_][A-Za-z0-9_.-]*|[0-9]+))?$"), extend("examples" = ["1000:1000"]))]
    pub user: Option<String>,
    /// Labels that targets add to the objects of the role.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"team": "vision"}]))]
    pub labels: IndexMap<String, String>,
    /// Entries of `data` that this role mounts: names, or names with changes. `[]` mounts none. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [["imagenet"], {"imagenet": {"mount": "/mnt/imagenet"}}]))]
    pub data: Option<Uses>,
    /// Entries of `outputs` that this role mounts: names, or names with changes. `[]` mounts none. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [["checkpoints"]]))]
    pub outputs: Option<Uses>,
    /// Metrics of this role: numbers that `jobc ps` and `jobc report` show and compare. They are added to those of the
    /// job.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z_][A-Za-z0-9_./-]{0,62}$"}, "examples" = [{"accuracy": {"file": "/output/result.json", "key": "accuracy", "better": "higher"}}]))]
    pub metrics: IndexMap<String, Metric>,
    /// [preview] How far this role is, instead of `progress` of the job: two numbers, done and total, of a line of the log or of a file. `jobc ps` and
    /// `jobc report` show them with the time left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"log": "step (?P<done>[0-9]+)/(?P<total>[0-9]+)"}]))]
    pub progress: Option<Progress>,
    /// [preview] Checks before the command of this role, instead of `preflight` of the job. `[]` means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [["gpus", "data", {"disk": "100GiB"}]]))]
    pub preflight: Option<Vec<Check>>,
    /// [preview] When a task of this role makes no progress, instead of `stall` of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"after": "10m"}]))]
    pub stall: Option<Stall>,
    /// Small files in each instance, by absolute path.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^/"}, "examples" = [{"/etc/app.conf": {"content": "debug = false\n"}}]))]
    pub files: IndexMap<String, InlineFile>,
    /// Security settings: what an instance may do on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"read_only_root": true}]))]
    pub security: Option<Security>,
    /// When this role ends the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"min_succeeded": 1}]))]
    pub completion: Option<Completion>,
    /// Retries after a failure, instead of `retry` of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"max": 3}]))]
    pub retry: Option<Retry>,
    /// Maximum run time of one attempt of an instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["2h"]))]
    pub timeout: Option<Seconds>,
    /// Time between the stop signal and SIGKILL, instead of `grace_period` of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["1m"]))]
    pub grace_period: Option<Seconds>,
    /// Signal that asks an instance to end, by name. Default: STOPSIGNAL of the image, or SIGTERM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["SIGINT", "SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGHUP"]))]
    pub stop_signal: Option<String>,
    /// Whether a small process 1 forwards signals to the program and reaps orphaned processes. Programs that do so
    /// themselves, such as `tini`, never get one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true, "examples" = [false]))]
    pub init: Option<bool>,
    /// Template that provides the keys that this role omits: `std/NAME`, a path, or
    /// `git+https://HOST/REPO//PATH@COMMIT`, which `jobc lock` fetches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["std/tensorboard"]))]
    pub uses: Option<String>,
    /// Parameters of the template.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"logdir": "/output"}]))]
    pub with: IndexMap<String, Scalar>,
}

/// A script, or arguments that run without a shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Run {
    /// A script.
    Script(String),
    /// Arguments.
    Argv(#[schemars(length(min = 1))] Vec<String>),
}

/// The shell that runs scripts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Shell {
    /// One of the known shells.
    Known(KnownShell),
    /// The arguments before the script.
    Argv(#[schemars(length(min = 1))] Vec<String>),
}

/// Shells by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KnownShell {
    /// `bash -euo pipefail`.
    Bash,
    /// `/bin/sh -eu`.
    Sh,
}

/// Roles that must reach a state first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Needs {
    /// Names. Each must have succeeded.
    Names(Vec<String>),
    /// Names with the state that each must reach.
    States(IndexMap<String, Need>),
}

/// State that a needed role must reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Need {
    /// Every instance.
    State(NeedState),
    /// At least some instances.
    Min(NeedMin),
}

/// State that a minimum number of instances must reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NeedMin {
    /// The state.
    #[serde(default)]
    #[schemars(extend("default" = "succeeded", "examples" = ["ready"]))]
    pub state: NeedState,
    /// Minimum number of instances. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::positive", extend("examples" = [1]))]
    pub min: Option<u32>,
}

/// State that a needed role must reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NeedState {
    /// Its processes are running.
    Started,
    /// Its `ready` check has succeeded once.
    Ready,
    /// It has succeeded.
    #[default]
    Succeeded,
}

/// Readiness check of an instance: exactly one of `port`, `http`, `exec`, `log`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// Label of a port that must accept connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["http"]))]
    pub port: Option<String>,
    /// HTTP request that must return a status below 400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"port": "http", "path": "/healthz"}]))]
    pub http: Option<ReadyHttp>,
    /// Command that must exit with 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = [["test", "-e", "/tmp/ready"]]))]
    pub exec: Option<Vec<String>>,
    /// Regular expression that a line of the log must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["listening on port [0-9]+"]))]
    pub log: Option<String>,
    /// Time before the first check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "0s", "examples" = ["5s"]))]
    pub delay: Option<Seconds>,
    /// Time between checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "5s", "examples" = ["2s"]))]
    pub every: Option<Seconds>,
    /// Timeout of one check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "5s", "examples" = ["1s"]))]
    pub try_timeout: Option<Seconds>,
    /// Timeout until the instance is ready. After that the instance fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "10m", "examples" = ["1h"]))]
    pub timeout: Option<Seconds>,
    /// Whether to continue the checks after the instance is ready.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub keep: bool,
}

/// HTTP request that checks whether an instance is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadyHttp {
    /// Label of the port.
    #[schemars(extend("examples" = ["http"]))]
    pub port: String,
    /// Path of the request.
    #[serde(default = "slash")]
    #[schemars(extend("default" = "/", "examples" = ["/healthz"]))]
    pub path: String,
}

fn slash() -> String {
    "/".to_owned()
}

/// Entries of `data` or `outputs` that a role mounts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Uses {
    /// Names.
    Names(Vec<String>),
    /// Names with changes.
    Changes(IndexMap<String, UseChange>),
}

/// How a role mounts an entry of `data` or `outputs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UseChange {
    /// Mount point in this role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["/mnt/imagenet"]))]
    pub mount: Option<String>,
    /// Whether this role can write to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [true]))]
    pub writable: Option<bool>,
    /// Subdirectory to mount instead of the whole entry: a relative path. It is created if it is missing and the role
    /// can write to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["lr-${{ matrix.lr }}"]))]
    pub subpath: Option<String>,
}

/// A small file: exactly one of `content`, `from`, `secret`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InlineFile {
    /// Content of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["debug = false\n"]))]
    pub content: Option<String>,
    /// File next to the job file. Its text is read when the job is built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["configs/app.conf"]))]
    pub from: Option<String>,
    /// Secret whose value becomes the content when the job starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["wandb"]))]
    pub secret: Option<String>,
    /// Permission bits, in octal, as a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^0?[0-7]{3}$"), extend("default" = "0644", "examples" = ["0600"]))]
    pub mode: Option<String>,
}

/// What an instance may do on the host. Default: no new privileges, the default capabilities of container engines,
/// seccomp on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Security {
    /// Whether the root filesystem is read-only.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub read_only_root: bool,
    /// Linux capabilities to add to and drop from the default set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"add": ["IPC_LOCK"]}]))]
    pub capabilities: Option<Capabilities>,
    /// Whether the instance has all privileges on the host. Use it for trusted images only.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub privileged: bool,
}

/// Linux capabilities to add to and drop from the default set, without the `CAP_` prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capabilities {
    /// Capabilities to add.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["IPC_LOCK"]]))]
    pub add: Vec<String>,
    /// Capabilities to drop. `ALL` drops every capability.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["NET_RAW"]]))]
    pub drop: Vec<String>,
}

/// When a role ends the job. Default: its first failure ends the job, its success does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Completion {
    /// Number of successful instances that ends the job as a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "threshold_all", extend("default" = "none", "examples" = ["all", 1]))]
    pub min_succeeded: Option<Threshold>,
    /// Number of failed instances that ends the job as a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "threshold", extend("default" = 1, "examples" = ["none", 2]))]
    pub min_failed: Option<Threshold>,
}

/// A number of instances, or a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Threshold {
    /// That many instances.
    Count(u32),
    /// A word.
    Word(ThresholdWord),
}

/// The words of a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThresholdWord {
    /// Every instance.
    All,
    /// Never.
    None,
}

fn threshold_all(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": ["integer", "string"], "minimum": 1, "maximum": 2_147_483_647, "pattern": r"^(all|none|\$\{\{[ -~]*\}\})$"})
}

fn threshold(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": ["integer", "string"], "minimum": 1, "maximum": 2_147_483_647, "pattern": r"^(none|\$\{\{[ -~]*\}\})$"})
}

/// Retries after a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Maximum number of retries, or `unlimited`.
    #[serde(with = "retry_limit")]
    #[schemars(schema_with = "retry_limit::schema", extend("examples" = [2, "unlimited"]))]
    pub max: u32,
    /// What is restarted on a retry. Default: `task`, or `job` for roles of `distributed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["job"]))]
    pub scope: Option<RetryScope>,
    /// Exit codes that are retried. Default: all except 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(range(min = 1, max = 255)), extend("examples" = [[137, 143]]))]
    pub on_exit_codes: Vec<u8>,
    /// Exit codes that are never retried; all others are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(range(min = 1, max = 255)), extend("examples" = [[42]]))]
    pub never_on_exit_codes: Vec<u8>,
    /// Time before a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["10s"]))]
    pub backoff: Option<Seconds>,
    /// Whether a failure that the platform causes counts as a retry: an evicted or preempted task, a drained or lost
    /// node. `ignore` does not count it; with `max: 0`, only such failures are retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "count", "examples" = ["ignore"]))]
    pub disruptions: Option<Disruptions>,
    /// [preview] Kinds of failures that are retried, by the verdict on the attempt, in addition to `on_exit_codes`. Default:
    /// all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["node", "preempted"]]))]
    pub on: Vec<Failure>,
    /// [preview] Factor by which the memory of the next attempt is larger after one that ran out of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [1.5]))]
    pub memory: Option<Factor>,
    /// [preview] Most memory that an attempt gets by `memory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["96GiB"]))]
    pub max_memory: Option<Bytes>,
}

/// The number of retries that `unlimited` stands for; larger than any number allowed in a job file.
pub const UNLIMITED_RETRIES: u32 = u32::MAX;

/// How a number of retries is written: a number, or `unlimited`.
pub(crate) mod retry_limit {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::UNLIMITED_RETRIES;
    use crate::resources::UlimitWord;

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Limit {
        Count(u32),
        Word(UlimitWord),
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
    pub(crate) fn serialize<S: Serializer>(max: &u32, serializer: S) -> Result<S::Ok, S::Error> {
        match *max {
            UNLIMITED_RETRIES => Limit::Word(UlimitWord::Unlimited).serialize(serializer),
            max => Limit::Count(max).serialize(serializer),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
        Ok(match Limit::deserialize(deserializer)? {
            Limit::Count(max) => max,
            Limit::Word(UlimitWord::Unlimited) => UNLIMITED_RETRIES,
        })
    }

    pub(crate) fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": ["integer", "string"], "minimum": 0, "maximum": 2_147_483_647, "pattern": r"^(unlimited|\$\{\{[ -~]*\}\})$"})
    }
}

/// Whether failures that the platform causes count as retries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Disruptions {
    /// They count like any other failure.
    #[default]
    Count,
    /// They are retried and do not count.
    Ignore,
}

impl Disruptions {
    /// Whether it is the default.
    pub fn is_count(&self) -> bool {
        *self == Self::Count
    }
}

/// What is restarted on a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RetryScope {
    /// One instance.
    Task,
    /// All instances of a role.
    Role,
    /// The whole job.
    Job,
}
