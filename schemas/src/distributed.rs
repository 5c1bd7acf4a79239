//! Distributed training: `distributed`.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::forms;

/// How the instances of a distributed framework find each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Distributed {
    /// The framework whose rendezvous is set up.
    #[schemars(extend("examples" = ["torchrun"]))]
    pub framework: Framework,
    /// The roles that take part, in rank order; with the part each plays where the framework tells them apart.
    #[schemars(extend("examples" = [["train"], {"trainer": "worker", "server": "ps"}]))]
    pub roles: Members,
    /// The rendezvous port on the first instance; the framework's usual one unless written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::port", extend("examples" = [29500]))]
    pub port: Option<u16>,
    /// Worker processes on each instance; its GPU count, else 1, unless written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::positive", extend("examples" = [8]))]
    pub processes_per_instance: Option<u32>,
    /// Which instances run the command: `all`, the `first` one, or those of a role; the others serve ssh or idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["first", "all"]))]
    pub launch: Option<String>,
    /// Password-less ssh between the instances; `true` for `mpi` and `horovod` unless written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [true, {"port": 2222}]))]
    pub ssh: Option<Ssh>,
}

/// A distributed framework.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Framework {
    /// PyTorch's torchrun: the `PET_*` variables.
    Torchrun,
    /// Plain PyTorch processes: MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK.
    Ddp,
    /// TensorFlow: TF_CONFIG.
    Tensorflow,
    /// Horovod over MPI: a host file and ssh.
    Horovod,
    /// MPI: a host file and ssh.
    Mpi,
    /// DeepSpeed: a host file, and the variables of torchrun.
    Deepspeed,
    /// JAX: the coordinator's address and the process numbers.
    Jax,
}

/// The roles that take part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Members {
    /// Roles in rank order.
    Names(#[schemars(length(min = 1))] Vec<String>),
    /// Roles with the part each plays.
    Parts(#[schemars(extend("minProperties" = 1))] IndexMap<String, MemberPart>),
}

/// The part a role plays in a framework.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemberPart {
    /// The first worker, which also writes checkpoints.
    Chief,
    /// A worker.
    Worker,
    /// A parameter server; outside the rank space.
    Ps,
    /// An evaluator; outside the rank space.
    Evaluator,
    /// The process that starts the others by ssh; outside the rank space.
    Launcher,
}

/// Password-less ssh between the instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Ssh {
    /// Whether there is.
    Switch(bool),
    /// With a port and a user.
    Rules(SshRules),
}

/// Where ssh listens, and for whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SshRules {
    /// The port sshd listens on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::port", extend("default" = 22, "examples" = [2222]))]
    pub port: Option<u16>,
    /// The user that logs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "root", "examples" = ["mpi"]))]
    pub user: Option<String>,
}
