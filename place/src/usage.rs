//! The resource usage of tasks.

use serde::Serialize;

/// The resource usage of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskUsage {
    /// The task.
    pub task: String,
    /// Its pod.
    pub pod: String,
    /// CPU time per time, in thousandths of a processor.
    pub cpu_millis: u64,
    /// Memory in use that cannot be reclaimed at once (working set), in bytes.
    pub memory_bytes: u64,
    /// The limit of each, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_limit_millis: Option<u64>,
    /// See `cpu_limit_millis`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// Its GPUs; empty if it has none, or their use is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuUsage>,
    /// When it was measured (RFC 3339).
    pub time: String,
}

/// The use of a GPU of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GpuUsage {
    /// Percent of the time in which it was busy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilization: Option<u8>,
    /// Bytes of its memory in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}
