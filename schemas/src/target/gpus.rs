//! The GPUs of a target's hosts: `gpus` of a target, or the inventory of this host.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gpu::Vendor;
use crate::quantity::Bytes;

/// GPUs of the hosts of a target.
///
/// For a cluster they are written in `targets.yaml`. For a job that runs on this host, the client fills them in from
/// the inventory of the host, so that the same checks apply to both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetGpus {
    /// NVIDIA driver version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+(\.[0-9]+){0,2}$"), extend("examples" = ["550.54.15"]))]
    pub driver: Option<String>,
    /// Newest CUDA version that the driver supports without compatibility libraries, as `nvidia-smi` prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+\.[0-9]+$"), extend("examples" = ["12.4"]))]
    pub cuda: Option<String>,
    /// Kinds of cards. An empty list means no GPUs. If it is missing, nothing is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [[{"model": "A100-80GB", "count": 8}]]))]
    pub cards: Option<Vec<TargetCard>>,
    /// Whether this was detected on the host instead of read from a file, so that no line can be shown.
    #[serde(skip)]
    #[schemars(skip)]
    pub found: bool,
}

/// Cards of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetCard {
    /// Model: a family (`A100`), a variant (`A100-80GB`) or the name that the driver reports.
    #[schemars(length(min = 1), extend("examples" = ["A100-80GB"]))]
    pub model: String,
    /// Vendor.
    #[serde(default)]
    #[schemars(extend("default" = "nvidia", "examples" = ["amd"]))]
    pub vendor: Vendor,
    /// Number of cards per host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("examples" = [8]))]
    pub count: Option<u32>,
    /// Memory of the card. Default: from the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["80GiB"]))]
    pub memory: Option<Bytes>,
    /// CUDA compute capability of the card. Default: from the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+\.[0-9]+$"), extend("examples" = ["8.0"]))]
    pub compute_capability: Option<String>,
    /// MIG instances per host: profile and number. If it is set, jobs can request only these instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"1g.10gb": 7}]))]
    pub mig: Option<IndexMap<String, u32>>,
}
