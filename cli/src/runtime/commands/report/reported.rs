//! The data of a report about a job on a cluster, instead of the job's files.

use jobc_job::time::Time;

/// An event of a cluster.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "remote"), expect(dead_code, reason = "only clusters have them"))]
pub(crate) struct ReportedEvent {
    pub time: Time,
    /// The object that it is about.
    pub object: String,
    pub reason: String,
    pub message: String,
}

/// The data of a report about a job on a cluster.
#[cfg(feature = "remote")]
pub(crate) struct ClusterReport {
    /// Its handle.
    pub title: String,
    pub record: jobc_job::record::Record,
    /// Where its last output is.
    pub directory: jobc_job::directory::Directory,
    pub events: Vec<ReportedEvent>,
    /// The last lines of tasks, each with its time.
    pub tails: std::collections::BTreeMap<jobc_sys::id::TaskId, Vec<(String, Vec<u8>)>>,
}
