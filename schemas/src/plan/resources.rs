//! The resources of an instance.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gpu::{DriverCapability, Enforcement, Isolation, Vendor};
use crate::image::is_false;

/// Resources of an instance. A missing value is the default of the target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourcesPlan {
    /// Thousandths of a logical CPU, both request and limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u64>,
    /// Bytes of memory, both request and limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Bytes of /dev/shm. They count against the memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shm_bytes: Option<u64>,
    /// Bytes for files outside mounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// Processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// Bytes in huge pages, by page size as in `2MiB`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub hugepages_bytes: IndexMap<String, u64>,
    /// Limits of disk traffic, by path or number of the device.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub io: IndexMap<String, IoPlan>,
    /// RDMA devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdma: Option<u32>,
    /// Device nodes of the host, and directories of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// Limits of setrlimit(2), by lower-case name. null means unlimited.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub ulimits: IndexMap<String, Option<u64>>,
    /// Whether a host that cannot enforce these limits refuses the job.
    #[serde(default, skip_serializing_if = "is_false")]
    pub enforce: bool,
    /// GPUs. Missing if the role does not mention GPUs. With count 0 all GPUs are hidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuPlan>,
}

/// Limits of the disk traffic of an instance with one device, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IoPlan {
    /// Bytes read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_bytes: Option<u64>,
    /// Read operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ops: Option<u32>,
    /// Write operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_ops: Option<u32>,
}

impl IoPlan {
    /// The limits that exist, by the keys of `io.max` of cgroup v2.
    pub fn rates(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let rates = [
            ("rbps", self.read_bytes),
            ("wbps", self.write_bytes),
            ("riops", self.read_ops.map(u64::from)),
            ("wiops", self.write_ops.map(u64::from)),
        ];
        rates.into_iter().filter_map(|(key, rate)| Some((key, rate?)))
    }
}

/// GPUs of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GpuPlan {
    /// Number of GPUs, or number of slices with `share`. With `all`, as many as were found; 0 if the host is not known.
    pub count: u32,
    /// Whether the job requests all GPUs of the host, `gpu: all`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Logical index of the first GPU of the first instance. Instance `i` has `count` GPUs from `first + i * count`.
    pub first: u32,
    /// Vendor of the GPUs.
    pub vendor: Vendor,
    /// Accepted models. Empty means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Minimum bytes of memory on each GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Minimum compute capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<String>,
    /// CUDA version that the program needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// Minimum driver version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Parts of the driver that are used. Empty if `count` is 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<DriverCapability>,
    /// Slices instead of whole GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<SharePlan>,
    /// The most whole GPUs of an instance, above `count` those that no other job leases or waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grow: Option<u32>,
}

/// How many GPUs an instance asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuAmount {
    /// None: all GPUs are hidden from it.
    Hidden,
    /// This many.
    Count(u32),
    /// All of a host that is not known.
    All,
    /// All of a host that has this many.
    AllOf(u32),
}

impl GpuPlan {
    /// How many GPUs an instance asks for.
    pub fn amount(&self) -> GpuAmount {
        match (self.all, self.count) {
            (false, 0) => GpuAmount::Hidden,
            (false, count) => GpuAmount::Count(count),
            (true, 0) => GpuAmount::All,
            (true, count) => GpuAmount::AllOf(count),
        }
    }
}

/// A slice of a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharePlan {
    /// Bytes of GPU memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Percentage of the cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores_percent: Option<u32>,
    /// A MIG profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Minimum isolation.
    pub isolation: Isolation,
    /// Whether all slices must be on one card.
    pub same_card: bool,
    /// Whether jobs take turns on whole GPUs, each of which keeps `memory_bytes`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub time: bool,
    /// What enforces the slice, if the target decides. Missing if the host that runs the job decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforced_by: Option<Enforcement>,
}
