//! A job that is about to start, and what is told of it meanwhile.

use std::path::PathBuf;

use jobc_schema::plan::JobPlan;

use crate::folder::Folder;
use crate::secrets::Secrets;
use crate::submission::Submission;

/// A job that is about to start.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Its folders; the build lies in the state folder.
    pub folder: &'a Folder,
    /// Its plan.
    pub plan: &'a JobPlan,
    /// What was asked for beside it.
    pub submission: &'a Submission,
    /// The values of its secrets.
    pub secrets: &'a Secrets,
}

/// What happens while a job is provided for, in the order it happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A volume is being fetched: told at the beginning, then once a second.
    Fetching {
        /// The volume's name.
        volume: String,
        /// Where from; never with a secret.
        from: String,
        /// Bytes that are here.
        bytes: u64,
    },
    /// A volume is there: data found, an output's folder made, a source fetched.
    DataReady {
        /// The volume's name.
        volume: String,
        /// Where it is on this machine.
        path: PathBuf,
    },
    /// The root of a role's tasks is there.
    ImageReady {
        /// The role.
        role: String,
        /// What stands in the plan: an image's reference, or `host`.
        image: String,
        /// What the tasks get for it: `host`, or a path.
        root: String,
    },
}
