//! A role: spec section "Role level".

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::Seconds;
use crate::forms;
use crate::image::Image;
use crate::resources::Resources;
use crate::scalar::{EnvValue, Scalar};

/// One kind of process of a job, and how many instances of it run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// How many instances run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::positive", extend("default" = 1, "examples" = [4]))]
    pub instances: Option<u32>,
    /// How many instances may run at once; all unless written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::positive", extend("examples" = [2]))]
    pub parallel: Option<u32>,
    /// What each instance runs: a script for `shell`, or a list of arguments that no shell sees. Without it the image's own command runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["python train.py --epochs 90", ["python", "train.py"]]))]
    pub run: Option<Run>,
    /// Arguments for the image's own ENTRYPOINT, in place of its CMD; excludes `run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [["--port", "8888"]]))]
    pub args: Option<Vec<String>>,
    /// What runs a script: `bash` (`bash -euo pipefail`), `sh` (`/bin/sh -eu`), or the arguments before the script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "bash", "examples" = ["sh", ["python", "-c"]]))]
    pub shell: Option<Shell>,
    /// A script that runs before `run` and fails the instance like it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["pip install -e ."]))]
    pub setup: Option<String>,
    /// Roles that must be there first, and how far they must be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [["prepare"], {"prepare": "succeeded", "server": "ready"}]))]
    pub needs: Option<Needs>,
    /// How it is known that an instance is ready to serve others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"port": "http"}]))]
    pub ready: Option<Ready>,
    /// What each instance gets of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"cpu": 8, "memory": "32GiB", "gpu": 1}]))]
    pub resources: Option<Resources>,
    /// The image of this role; replaces the job's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"use": "tools"}]))]
    pub image: Option<Image>,
    /// Environment variables of this role, over the job's.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}, "examples" = [{"OMP_NUM_THREADS": 8}]))]
    pub env: IndexMap<String, EnvValue>,
    /// The folder the command starts in; the image's own unless written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["/workspace"]))]
    pub workdir: Option<String>,
    /// Who the command runs as, by name or number, with a group after `:` if wanted; the image's own unless written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([A-Za-z_][A-Za-z0-9_.-]*|[0-9]+)(:([A-Za-z_][A-Za-z0-9_.-]*|[0-9]+))?$"), extend("examples" = ["1000:1000"]))]
    pub user: Option<String>,
    /// Labels that targets attach to the role's objects.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"team": "vision"}]))]
    pub labels: IndexMap<String, String>,
    /// Which of the job's `data` this role sees: names, or names with changes; `[]` is none, absent is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [["imagenet"], {"imagenet": {"mount": "/mnt/imagenet"}}]))]
    pub data: Option<Uses>,
    /// Which of the job's `outputs` this role sees: names, or names with changes; `[]` is none, absent is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [["checkpoints"]]))]
    pub outputs: Option<Uses>,
    /// Small files put into each instance, by absolute path.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^/"}, "examples" = [{"/etc/app.conf": {"content": "debug = false\n"}}]))]
    pub files: IndexMap<String, InlineFile>,
    /// What the instance may do on the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"read_only_root": true}]))]
    pub security: Option<Security>,
    /// When this role ends the whole job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"min_succeeded": 1}]))]
    pub completion: Option<Completion>,
    /// What is tried again after a failure, in place of the job's `retry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"max": 3}]))]
    pub retry: Option<Retry>,
    /// How long one attempt of an instance may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["2h"]))]
    pub timeout: Option<Seconds>,
    /// How long a process has between SIGTERM and SIGKILL, in place of the job's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["1m"]))]
    pub grace_period: Option<Seconds>,
    /// A template that fills in what this role leaves out: `std/NAME` or a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["std/tensorboard"]))]
    pub uses: Option<String>,
    /// The template's parameters.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"logdir": "/output"}]))]
    pub with: IndexMap<String, Scalar>,
}

/// A script, or arguments that no shell sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Run {
    /// A script.
    Script(String),
    /// Arguments.
    Argv(#[schemars(length(min = 1))] Vec<String>),
}

/// What runs a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Shell {
    /// One of the known shells.
    Known(KnownShell),
    /// The arguments before the script.
    Argv(#[schemars(length(min = 1))] Vec<String>),
}

/// The shells known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KnownShell {
    /// `bash -euo pipefail`.
    Bash,
    /// `/bin/sh -eu`.
    Sh,
}

/// Roles that must be there first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Needs {
    /// Names; each must have succeeded.
    Names(Vec<String>),
    /// Names with how far each must be.
    States(IndexMap<String, Need>),
}

/// How far a needed role must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Need {
    /// Every instance.
    State(NeedState),
    /// At least some instances.
    Min(NeedMin),
}

/// How far at least some instances must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NeedMin {
    /// How far.
    #[serde(default)]
    #[schemars(extend("default" = "succeeded", "examples" = ["ready"]))]
    pub state: NeedState,
    /// How many instances; all unless written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::positive", extend("examples" = [1]))]
    pub min: Option<u32>,
}

/// How far a needed role must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NeedState {
    /// Its processes run.
    Started,
    /// Its `ready` has once been true.
    Ready,
    /// It has ended well.
    #[default]
    Succeeded,
}

/// How it is known that an instance is ready: exactly one of `port`, `http`, `exec`, `log`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// The label of a port that accepts connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["http"]))]
    pub port: Option<String>,
    /// A page that answers with a status below 400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"port": "http", "path": "/healthz"}]))]
    pub http: Option<ReadyHttp>,
    /// A command that exits with 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = [["test", "-e", "/tmp/ready"]]))]
    pub exec: Option<Vec<String>>,
    /// A regular expression that a line of the log matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["listening on port [0-9]+"]))]
    pub log: Option<String>,
    /// How long to wait before the first try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "0s", "examples" = ["5s"]))]
    pub delay: Option<Seconds>,
    /// How long to wait between tries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "5s", "examples" = ["2s"]))]
    pub every: Option<Seconds>,
    /// How long one try may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "5s", "examples" = ["1s"]))]
    pub try_timeout: Option<Seconds>,
    /// How long it may take until the instance is ready; then it has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "10m", "examples" = ["1h"]))]
    pub timeout: Option<Seconds>,
    /// Whether to go on watching once ready.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub keep: bool,
}

/// A page that answers when an instance is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadyHttp {
    /// The label of the port.
    #[schemars(extend("examples" = ["http"]))]
    pub port: String,
    /// The path asked for.
    #[serde(default = "slash")]
    #[schemars(extend("default" = "/", "examples" = ["/healthz"]))]
    pub path: String,
}

fn slash() -> String {
    "/".to_owned()
}

/// Which of the job's data or outputs a role sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Uses {
    /// Names.
    Names(Vec<String>),
    /// Names with changes.
    Changes(IndexMap<String, UseChange>),
}

/// How a role sees one of the job's data or outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UseChange {
    /// Where this role sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["/mnt/imagenet"]))]
    pub mount: Option<String>,
    /// Whether this role may write to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [true]))]
    pub writable: Option<bool>,
}

/// A small file: exactly one of `content`, `from`, `secret`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InlineFile {
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["debug = false\n"]))]
    pub content: Option<String>,
    /// A file beside the job file whose text is taken when the job is built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["configs/app.conf"]))]
    pub from: Option<String>,
    /// A secret whose value is the text when the job starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["wandb"]))]
    pub secret: Option<String>,
    /// Permission bits, in octal, as a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^0?[0-7]{3}$"), extend("default" = "0644", "examples" = ["0600"]))]
    pub mode: Option<String>,
}

/// What an instance may do on the machine; absent: no new privileges, the usual engines' capabilities, seccomp on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Security {
    /// Whether the root file system is read-only.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub read_only_root: bool,
    /// Linux capabilities added to and taken from the usual set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"add": ["IPC_LOCK"]}]))]
    pub capabilities: Option<Capabilities>,
    /// Whether the instance has all of the machine's privileges; for trusted images only.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub privileged: bool,
}

/// Linux capabilities added to and taken from the usual set, without the `CAP_` prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capabilities {
    /// Added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["IPC_LOCK"]]))]
    pub add: Vec<String>,
    /// Taken away; `ALL` takes every one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["NET_RAW"]]))]
    pub drop: Vec<String>,
}

/// When a role ends the whole job; absent: never by success, and by its first failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Completion {
    /// How many instances must succeed to end the job as a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "threshold_all", extend("default" = "none", "examples" = ["all", 1]))]
    pub min_succeeded: Option<Threshold>,
    /// How many instances must fail to end the job as a failure.
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

/// What is tried again after a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// How many more attempts there are after the first.
    #[schemars(schema_with = "forms::count", extend("examples" = [2]))]
    pub max: u32,
    /// What one attempt covers; `task`, and `job` for roles of `distributed`, unless written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["job"]))]
    pub scope: Option<RetryScope>,
    /// The exit codes that are tried again; all but 0 unless written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(range(min = 1, max = 255)), extend("examples" = [[137, 143]]))]
    pub on_exit_codes: Vec<u8>,
    /// How long to wait before another attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["10s"]))]
    pub backoff: Option<Seconds>,
}

/// What one attempt covers.
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
