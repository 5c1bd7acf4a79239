//! The job file, top level: spec section "Job level".

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distributed::Distributed;
use crate::duration::Seconds;
use crate::forms;
use crate::image::Image;
use crate::role::{Retry, Role};
use crate::scalar::{EnvValue, Scalar, ScalarKind};
use crate::storage::{Data, Output};
use crate::target::OpenpaiTarget;

/// A job: an image, data, roles with their resources and commands, and how they work together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "jobc job", extend("patternProperties" = {"^x-": true}))]
pub struct Job {
    /// The version of the job language; always 1.
    #[schemars(schema_with = "version", extend("examples" = [1]))]
    pub version: u32,
    /// The job's name: lower-case letters, digits and `-`, at most 40 characters. Every derived name begins with it.
    #[schemars(regex(pattern = r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$"), extend("examples" = ["resnet50"]))]
    pub name: String,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["ResNet-50 on ImageNet, data parallel"]))]
    pub description: Option<String>,
    /// Values that `--set NAME=VALUE` and `--params FILE` override, typed by their defaults; used as `${{ params.NAME }}`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}, "examples" = [{"batch_size": 256}]))]
    pub params: IndexMap<String, Param>,
    /// References to values that never enter the plan: where each comes from when the job starts.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z_][A-Za-z0-9_-]{0,62}$"}, "examples" = [{"wandb": {"env": "WANDB_API_KEY"}}]))]
    pub secrets: IndexMap<String, Secret>,
    /// What the roles run in: an image reference, `host`, or a block that builds one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime"]))]
    pub image: Option<Image>,
    /// Named images that a role picks with `image: {use: NAME}`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$"}, "examples" = [{"tools": "python:3.12-slim"}]))]
    pub images: IndexMap<String, Image>,
    /// Log-ins for private registries, by host name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"registry.example.com": {"username": "robot", "password": {"secret": "registry"}}}]))]
    pub registries: IndexMap<String, Registry>,
    /// What the roles read; each is mounted at its `mount`, read-only unless `writable: true`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$"}, "examples" = [{"imagenet": {"source": "/data/imagenet", "mount": "/data"}}]))]
    pub data: IndexMap<String, Data>,
    /// What the roles write; created if missing, mounted writable.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$"}, "examples" = [{"checkpoints": {"source": "./checkpoints", "mount": "/output"}}]))]
    pub outputs: IndexMap<String, Output>,
    /// Environment variables of all roles.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}, "examples" = [{"NCCL_DEBUG": "info"}]))]
    pub env: IndexMap<String, EnvValue>,
    /// The kinds of processes the job is made of, by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$"}, "minProperties" = 1, "examples" = [{"train": {"run": "python train.py", "resources": {"cpu": 8, "memory": "32GiB", "gpu": 1}}}]))]
    pub roles: IndexMap<String, Role>,
    /// How the instances of a distributed framework find each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"framework": "torchrun", "roles": ["train"]}]))]
    pub distributed: Option<Distributed>,
    /// Whether instances start all together or not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "auto", "examples" = ["required", {"min": 4}]))]
    pub gang: Option<Gang>,
    /// How the job's processes reach each other and the outside.
    #[serde(default)]
    #[schemars(extend("default" = "auto", "examples" = ["job"]))]
    pub network: Network,
    /// What is tried again after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"max": 2, "backoff": "10s"}]))]
    pub retry: Option<Retry>,
    /// How long the whole job may run; then its tasks are ended and the job has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["12h"]))]
    pub timeout: Option<Seconds>,
    /// How long a process has between SIGTERM and SIGKILL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "30s", "examples" = ["2m"]))]
    pub grace_period: Option<Seconds>,
    /// One job for each combination of the axes' values, named `NAME-<i>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"lr": [0.1, 0.01]}]))]
    pub matrix: Option<Matrix>,
    /// Other systems whose environment variables are set as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["openpai"]]))]
    pub compat: Vec<Compat>,
    /// What only OpenPAI understands, for a job that came from there; a target's own `openpai` wins over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"virtual_cluster": "research"}]))]
    pub openpai: Option<OpenpaiTarget>,
    /// A template that fills in what this file leaves out: `std/NAME` or a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["std/torchrun"]))]
    pub uses: Option<String>,
    /// The template's parameters.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"nodes": 4}]))]
    pub with: IndexMap<String, Scalar>,
}

fn version(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "integer", "enum": [1]})
}

/// A parameter: its default alone, or the default with its rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Param {
    /// The default with its rules.
    Rules(ParamRules),
    /// The default; its type is the parameter's.
    Default(Scalar),
}

/// A parameter's default and rules.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParamRules {
    /// The value unless `--set` or `--params` gives another; without it the parameter must be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["resnet50", 256, 0.1]))]
    pub default: Option<Scalar>,
    /// The parameter's type; the default's unless written.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["integer"]))]
    pub kind: Option<ScalarKind>,
    /// The values allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["resnet18", "resnet50"]]))]
    pub choices: Vec<Scalar>,
    /// The least value allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [1]))]
    pub min: Option<f64>,
    /// The greatest value allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [4096]))]
    pub max: Option<f64>,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["torchvision model name"]))]
    pub description: Option<String>,
}

/// Where a secret's value comes from when the job starts: exactly one of the three.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct Secret {
    /// An environment variable of whoever starts the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"), extend("examples" = ["WANDB_API_KEY"]))]
    pub env: Option<String>,
    /// A file, read when the job starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["~/.config/wandb/key"]))]
    pub file: Option<String>,
    /// An entry of the place's own secret store, such as a Kubernetes Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"name": "team-secrets", "key": "wandb"}]))]
    pub store: Option<SecretStore>,
}

/// An entry of a place's secret store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretStore {
    /// The store's object, such as the name of a Kubernetes Secret.
    #[schemars(length(min = 1), extend("examples" = ["team-secrets"]))]
    pub name: String,
    /// The key in it.
    #[schemars(length(min = 1), extend("examples" = ["wandb"]))]
    pub key: String,
}

/// A log-in for a private registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Registry {
    /// The user's name there.
    #[schemars(extend("examples" = ["robot"]))]
    pub username: String,
    /// The secret that holds the password.
    #[schemars(extend("examples" = [{"secret": "registry"}]))]
    pub password: SecretRef,
}

/// A secret by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretRef {
    /// The name under `secrets`.
    #[schemars(extend("examples" = ["registry"]))]
    pub secret: String,
}

/// Whether instances start all together or not at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Gang {
    /// One of the words.
    Word(GangWord),
    /// At least this many instances.
    Min(GangMin),
}

/// The words of `gang`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GangWord {
    /// All or nothing where the target can, else a note.
    Auto,
    /// All or nothing; a target that cannot is refused.
    Required,
    /// Each instance starts when it can.
    None,
}

/// A gang of part of the instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GangMin {
    /// How many instances must be able to start together.
    #[schemars(schema_with = "forms::positive", extend("examples" = [4]))]
    pub min: u32,
}

/// How the job's processes reach each other and the outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// The target's own way: locally the host's network with distinct ports, on Kubernetes the pods' network.
    #[default]
    Auto,
    /// The host's network.
    Host,
    /// A network of the job's own: every instance has an address.
    Job,
    /// No network.
    None,
}

/// The axes of a sweep: a map of lists, or `axes` with more rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Matrix {
    /// Axes with more rules.
    Rules(MatrixRules),
    /// Axes alone.
    Axes(IndexMap<String, Vec<Scalar>>),
}

impl JsonSchema for Matrix {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Matrix".into()
    }

    /// The two forms are both maps, so they share one schema: the rules' keys, and any other key as an axis.
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = MatrixRules::json_schema(generator);
        let axis = generator.subschema_for::<Vec<Scalar>>();
        schema.insert("additionalProperties".to_owned(), axis.to_value());
        schema.insert("propertyNames".to_owned(), serde_json::json!({"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}));
        schema.remove("required");
        let text = "The axes of a sweep: a map of lists, or `axes` with more rules.";
        schema.insert("description".to_owned(), text.into());
        schema
    }
}

/// Axes with more rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatrixRules {
    /// The values of each axis.
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}, "examples" = [{"lr": [0.1, 0.01], "model": ["resnet18", "resnet50"]}]))]
    pub axes: IndexMap<String, Vec<Scalar>>,
    /// Combinations added to the product of the axes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [[{"lr": 0.5, "model": "resnet18"}]]))]
    pub include: Vec<IndexMap<String, Scalar>>,
    /// Combinations left out: those that agree with every value given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [[{"lr": 0.1, "model": "resnet50"}]]))]
    pub exclude: Vec<IndexMap<String, Scalar>>,
    /// How many combinations may run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::positive", extend("examples" = [2]))]
    pub max_parallel: Option<u32>,
}

/// Other systems whose environment variables are set as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Compat {
    /// The `PAI_*` variables of OpenPAI.
    Openpai,
}
