//! The events of a job.

use serde::Serialize;

/// An event of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// When it happened last (RFC 3339).
    pub time: String,
    /// The object that it is about, such as `pod/train-0-abcde`.
    pub object: String,
    /// Whether it is a warning.
    pub is_warning: bool,
    /// The cluster's word for it.
    pub reason: String,
    /// The event.
    pub message: String,
    /// How often.
    pub count: u64,
}
