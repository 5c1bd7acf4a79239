//! What a job may use at most: `budget` of a job.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::decimal::Decimal;
use crate::quantity::Energy;

/// What a job may use over all of its attempts. At the first limit its tasks are asked to leave as by `preemption`, and
/// the job ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Hours that it holds GPUs, times the GPUs. A part of a GPU counts as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0, "examples" = [96, 0.5]))]
    pub gpu_hours: Option<Decimal>,
    /// Energy of its GPUs, by NVML's counters, and of the processors, by RAPL's. What has no counter is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["10kWh"]))]
    pub energy: Option<Energy>,
    /// Cost by the `prices` of the target, in their currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0, "examples" = [50]))]
    pub cost: Option<Decimal>,
}
