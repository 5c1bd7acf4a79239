//! The interface of every place elsewhere that is sent jobs, and the types of a submission.

use std::collections::BTreeMap;
use std::path::Path;

use jobc_container::secret::Secret;
use jobc_schema::plan::JobPlan;
use jobc_sys::error::Result;
use serde::Serialize;

use crate::built::BuiltDirectory;
use crate::host::ImageLayout;
use crate::identity::Identity;

pub use jobc_place::Place;
pub use jobc_place::capacity::{Amount, Capacity};
pub use jobc_place::event::{Event, EventOutput};
pub use jobc_place::exec::{ExecRequest, ExecStreams};
pub use jobc_place::job::{JobDetail, JobProgress, JobSummary, TaskCounts};
pub use jobc_place::logs::{LogItem, LogOutput, LogRequest};
pub use jobc_place::members::Members;
pub use jobc_place::state::JobState;
pub use jobc_place::stop::{KillRequest, StopRequest};
pub use jobc_place::task::{TaskState, TaskStatus};
pub use jobc_place::transfer::{Copied, CopyRequest, ForwardRequest, PortForward, PortForwardReport};
pub use jobc_place::usage::{GpuUse, TaskUsage};

/// What a place does differently with what it is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// The files of a job are sent with it, and lie beside what was built.
    pub sends_files: bool,
    /// Whose ports its jobs share.
    pub ports: SharedPorts,
    /// Signatures of images are verified here alone, since the place has no keys.
    pub verifies_here: bool,
}

/// Whose ports the jobs of a place share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharedPorts {
    /// None that matter: the place chooses when a job starts.
    #[default]
    Chosen,
    /// Those of one host.
    OfHost,
    /// Those of its nodes, with `network: host`.
    OfNodes,
}

/// A place elsewhere, which is sent jobs.
pub trait RemotePlace: Place {
    /// The identity of a job: its plan, and the files sent with it from the directory of the job file.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    fn identity(&self, plan: &JobPlan, directory: &Path) -> Result<Identity> {
        let _ = directory;
        Ok(Identity::of(plan))
    }

    /// What it does differently with what it is sent.
    fn delivery(&self) -> Delivery {
        Delivery::default()
    }

    /// Whether only a request tells that it is not there.
    fn is_asked_first(&self) -> bool {
        false
    }

    /// Runs of this very job, the newest first.
    fn runs_of(&self, identity: &Identity) -> Result<Vec<JobSummary>>;

    /// Whether a name is taken.
    fn is_taken(&self, name: &str) -> Result<bool>;

    /// Checks a built job without creating anything.
    fn check(&self, submission: &Submission<'_>) -> Result<Vec<Problem>>;

    /// Creates a job, or completes an earlier attempt to create it. A repeated call changes nothing.
    fn submit(&self, submission: &Submission<'_>) -> std::result::Result<(), SubmitError>;

    /// Whether [`Self::submit_matrix`] does something.
    fn joins_matrix(&self) -> bool {
        false
    }

    /// Creates the jobs of a matrix, or completes an earlier attempt, as one object of the place. Returns whether that
    /// could be; otherwise each is created on its own.
    fn submit_matrix(&self, submissions: &[Submission<'_>]) -> std::result::Result<bool, SubmitError> {
        let _ = submissions;
        Ok(false)
    }

    /// The permissions that this user lacks to use the place.
    fn check_access(&self) -> Result<Vec<AccessCheck>>;
}

/// A submission.
pub struct Submission<'a> {
    /// The output of `jobc build`, under the name of the run.
    pub built: &'a BuiltDirectory,
    /// The job.
    pub identity: &'a Identity,
    /// The user who submits, as [`Place::user`] has it.
    pub user: &'a str,
    /// The base directory of relative paths in the job file, absolute.
    pub directory: &'a Path,
    /// Images that this host has, for a place that gets them from it.
    pub images: &'a [ImageLayout],
    /// Requirements of the job that are not in its files.
    pub secrets: JobSecrets,
}

/// The values of a job's secrets, read from their sources.
#[derive(Default)]
pub struct JobSecrets {
    /// The secrets that tasks use, by name in the job file.
    pub values: BTreeMap<String, Secret>,
    /// Passwords of registries, by host.
    pub passwords: BTreeMap<String, Secret>,
    /// Files with the SSH keys of the tasks, by name; none if the place makes them or the tasks have no ssh.
    pub ssh_keys: BTreeMap<String, Secret>,
}

/// Why a submission failed.
#[derive(Debug)]
pub enum SubmitError {
    /// The place refuses the job.
    Refused(Vec<Problem>),
    /// Something else went wrong.
    Failed(jobc_sys::error::Error),
}

impl From<jobc_sys::error::Error> for SubmitError {
    fn from(error: jobc_sys::error::Error) -> Self {
        Self::Failed(error)
    }
}

/// Something that keeps a job from running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Whether the job can be submitted anyway.
    pub is_warning: bool,
    /// The error.
    pub message: String,
    /// Where it comes from: `job.yaml:11:3`, or a setting of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Problem {
    /// What keeps the job from running.
    pub fn error(message: impl Into<String>) -> Self {
        Self::new(false, message)
    }

    /// What the user should know; the job can be submitted.
    pub fn warning(message: impl Into<String>) -> Self {
        Self::new(true, message)
    }

    /// One or the other.
    pub fn new(is_warning: bool, message: impl Into<String>) -> Self {
        Self { is_warning, message: message.into(), place: None, help: None }
    }

    /// Says where it comes from, if that is known.
    #[must_use]
    pub fn at(self, place: Option<String>) -> Self {
        Self { place, ..self }
    }

    /// Says what to do.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

/// A right, or something that the place must have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AccessCheck {
    /// The checked permission: `create jobs.batch`.
    pub what: String,
    /// Whether it is there.
    pub is_allowed: bool,
    /// The features that do not work without it.
    pub needed_for: &'static str,
    /// Whether jobs can be submitted without it.
    pub is_optional: bool,
}
