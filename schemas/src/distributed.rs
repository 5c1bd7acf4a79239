//! Distributed training: `distributed`.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::forms;

/// Rendezvous of a distributed framework: how its instances find each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Distributed {
    /// The distributed framework.
    #[schemars(extend("examples" = ["torchrun"]))]
    pub framework: Framework,
    /// Roles that take part, in rank order. Add the part of each role if the framework distinguishes them.
    #[schemars(extend("examples" = [["train"], {"trainer": "worker", "server": "ps"}]))]
    pub roles: Members,
    /// Rendezvous port on the first instance. Default: the default port of the framework.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::port", extend("examples" = [29500]))]
    pub port: Option<u16>,
    /// Number of worker processes on each instance. Default: its number of GPUs, or 1 without GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::positive", extend("examples" = [8]))]
    pub processes_per_instance: Option<u32>,
    /// Instances that run the command: `all`, `first`, or those of a role. The others run an SSH server or stay idle.
    /// Default: `first` for `mpi`, `horovod` and `deepspeed`, otherwise `all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["first", "all"]))]
    pub launch: Option<String>,
    /// Passwordless SSH between the instances. Default: `true` where one instance starts the others.
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
    /// Horovod over MPI: a host file and SSH.
    Horovod,
    /// MPI: a host file and SSH.
    Mpi,
    /// DeepSpeed: a host file and SSH, and the variables of torchrun.
    Deepspeed,
    /// JAX: the coordinator's address and the process numbers.
    Jax,
}

/// Roles that take part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Members {
    /// Roles in rank order.
    Names(#[schemars(length(min = 1))] Vec<String>),
    /// Roles with the part of each.
    Parts(#[schemars(extend("minProperties" = 1))] IndexMap<String, MemberPart>),
}

/// Part of a role in a framework.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemberPart {
    /// The first worker. It also writes checkpoints.
    Chief,
    /// A worker.
    Worker,
    /// A parameter server; outside the rank space.
    Ps,
    /// An evaluator; outside the rank space.
    Evaluator,
    /// The process that starts the others over SSH; outside the rank space.
    Launcher,
}

/// Passwordless SSH between the instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Ssh {
    /// Whether SSH is set up.
    Switch(bool),
    /// A block with a port and a user.
    Rules(SshRules),
}

/// Port and user of SSH.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SshRules {
    /// Port of sshd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::port", extend("default" = 22, "examples" = [2222]))]
    pub port: Option<u16>,
    /// User that logs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "root", "examples" = ["mpi"]))]
    pub user: Option<String>,
}
