//! A job that is about to start, and its progress reports.

use std::path::PathBuf;

use jobc_schema::plan::JobPlan;

use crate::directory::Directory;
use crate::host_environment::HostEnvironments;
use crate::secrets::Secrets;
use crate::submission::Submission;

/// A job that is about to start.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Its directories; the build lies in the state directory.
    pub directory: &'a Directory,
    /// Its plan.
    pub plan: &'a JobPlan,
    /// The submission's options.
    pub submission: &'a Submission,
    /// The values of its secrets.
    pub secrets: &'a Secrets,
    /// The part of the caller's environment that its images get.
    pub environments: &'a HostEnvironments,
}

/// The events while a job's resources are prepared, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A volume is being fetched: reported at the beginning, then once a second.
    Fetching {
        /// The volume's name.
        volume: String,
        /// Where from; never with a secret.
        from: String,
        /// Bytes received.
        bytes: u64,
    },
    /// A volume is ready: data found, an output's directory created, a source fetched.
    DataReady {
        /// The volume's name.
        volume: String,
        /// Where it is on this host.
        path: PathBuf,
    },
    /// The root filesystem of a role is ready.
    ImageReady {
        /// The role.
        role: String,
        /// The value in the plan: an image's reference, or `host`.
        image: String,
        /// The root of the tasks for it: `host`, or a path.
        root: String,
    },
}
