//! The GPUs of a target's machines: `gpus` of a target, or what this machine was found to have.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gpu::Vendor;
use crate::quantity::Bytes;

/// The GPUs of a target's machines.
///
/// Written in `targets.yaml` for a cluster; for a job that runs here the client fills it in from what the machine has,
/// so that one check speaks for both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetGpus {
    /// The driver version of NVIDIA's cards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+(\.[0-9]+){0,2}$"), extend("examples" = ["550.54.15"]))]
    pub driver: Option<String>,
    /// The newest CUDA that the driver runs by itself, as `nvidia-smi` prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+\.[0-9]+$"), extend("examples" = ["12.4"]))]
    pub cuda: Option<String>,
    /// The kinds of cards; an empty list says that there is none, and nothing is checked where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [[{"model": "A100-80GB", "count": 8}]]))]
    pub cards: Option<Vec<TargetCard>>,
    /// Whether this was found on the machine rather than written by a person: no line of a file can be shown then.
    #[serde(skip)]
    #[schemars(skip)]
    pub found: bool,
}

/// Cards of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetCard {
    /// The model: a family (`A100`), a variant (`A100-80GB`) or the name that the driver gives it.
    #[schemars(length(min = 1), extend("examples" = ["A100-80GB"]))]
    pub model: String,
    /// Who makes it.
    #[serde(default)]
    #[schemars(extend("default" = "nvidia", "examples" = ["amd"]))]
    pub vendor: Vendor,
    /// How many one machine has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("examples" = [8]))]
    pub count: Option<u32>,
    /// Its memory; that of the model unless written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["80GiB"]))]
    pub memory: Option<Bytes>,
    /// Its CUDA compute capability; that of the model unless written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+\.[0-9]+$"), extend("examples" = ["8.0"]))]
    pub compute_capability: Option<String>,
    /// The MIG instances that its cards are cut into, by profile, and how many of each one machine has; where it is
    /// written these alone can be asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"1g.10gb": 7}]))]
    pub mig: Option<IndexMap<String, u32>>,
}
