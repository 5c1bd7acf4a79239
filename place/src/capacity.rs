//! What a place has, and how much of it is free.

use serde::Serialize;

/// What a part of a place has, and how much of it is free.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Capacity {
    /// What it is: `nodes NVIDIA-A100-SXM4-80GB`, `queue gpu`.
    pub name: String,
    /// Nodes on which no job has a GPU, or, without GPUs, a processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Amount>,
    /// GPUs, slices of them included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Amount>,
    /// Processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Amount>,
    /// Jobs that wait there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u64>,
    /// Anything else that matters, such as that a queue is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// An amount of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// How much is free; none if that is not known.
    pub free: Option<u64>,
    /// How much there is.
    pub total: u64,
}
