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
    /// Training that goes on with fewer instances, for `torchrun`. `instances` of the role is what is started. An
    /// instance that fails is retried alone and joins again; the job fails when fewer than `min` are left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"min": 2, "max": 4}]))]
    pub elastic: Option<Elastic>,
}

/// Training that goes on with fewer instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Elastic {
    /// Minimum number of instances.
    #[schemars(schema_with = "forms::positive", extend("examples" = [2]))]
    pub min: u32,
    /// Maximum number of instances.
    #[schemars(schema_with = "forms::positive", extend("examples" = [4]))]
    pub max: u32,
    /// Number of times that the workers are restarted after a failure, on each instance. The loss of an instance is a
    /// failure of the workers that communicate with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::count", extend("default" = 3, "examples" = [10]))]
    pub max_restarts: Option<u32>,
    /// Store of the rendezvous.
    #[serde(default)]
    #[schemars(extend("default" = "c10d", "examples" = ["c10d"]))]
    pub backend: ElasticBackend,
    /// Address of the etcd server, `HOST:PORT`. With `c10d` the store is on the first instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["etcd.example.com:2379"]))]
    pub endpoint: Option<String>,
}

/// Store of an elastic rendezvous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ElasticBackend {
    /// A store of PyTorch on the first instance.
    #[default]
    C10d,
    /// An etcd server, by its version 2 API.
    EtcdV2,
    /// An etcd server, by the older backend of PyTorch.
    Etcd,
}

impl ElasticBackend {
    /// The name as torchrun reads it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::C10d => "c10d",
            Self::EtcdV2 => "etcd-v2",
            Self::Etcd => "etcd",
        }
    }
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
    /// Hugging Face Accelerate: the flags of `accelerate launch`, which are added to the command.
    Accelerate,
    /// PyTorch Lightning, which starts its processes itself: MASTER_ADDR, MASTER_PORT, NODE_RANK.
    Lightning,
    /// MosaicML Composer: the variables of `composer`.
    Composer,
    /// Ray: a head that starts the cluster and runs the command, and workers that join it.
    Ray,
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
    /// The head of a Ray cluster, which runs the command.
    Head,
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
    /// Port of sshd. Default: 22, or 2222 where the roles have a `user` above 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::port", extend("examples" = [2222]))]
    pub port: Option<u16>,
    /// User that logs in. Default: the `user` of the roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["mpi"]))]
    pub user: Option<String>,
}
