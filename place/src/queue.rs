//! The queue of a host, as `jobc ps --queue` prints it.

use schemars::JsonSchema;
use serde::Serialize;

/// A job of the queue, or one that has its resources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QueueRow {
    /// Its place among those that wait, from 1; null if it has its resources.
    pub place: Option<usize>,
    /// The job's ID.
    pub job: String,
    /// The UID of its owner.
    pub user: u32,
    /// What it holds, or needs, as text.
    pub resources: String,
    /// Its priority; higher is sooner.
    pub priority: i8,
    /// Seconds of the whole host that its user had, of which the older count less; null without fair share.
    pub used_seconds: Option<u64>,
    /// The jobs that have what it lacks, those that hold most first; those before it in the queue included.
    pub waits_for: Vec<String>,
    /// Seconds until it starts or, of one that has its resources, until it ends; at the latest, by the time limits. Null
    /// without a limit.
    pub seconds: Option<u64>,
}
