//! The interface of every place that runs jobs, and the types of its reports.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use jobc_container::secret::Secret;
use jobc_schema::plan::JobPlan;
use jobc_sys::error::Result;
use serde::Serialize;

use crate::built::BuiltDirectory;
use crate::host::ImageLayout;
use crate::identity::Identity;

/// A place that runs jobs.
pub trait Place: Send + Sync {
    /// The identity of a job: its plan, and the files sent with it from the directory of the job file.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    fn identity(&self, plan: &JobPlan, directory: &Path) -> Result<Identity> {
        let _ = directory;
        Ok(Identity::of(plan))
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

    /// The jobs, the newest first.
    fn list(&self) -> Result<Vec<JobSummary>>;

    /// The run that a name stands for: the run itself, or the newest run of the job with that name.
    fn find(&self, name: &str) -> Result<JobSummary>;

    /// A job with its tasks, and why it waits.
    fn inspect(&self, name: &str) -> Result<JobDetail>;

    /// The events of a job, the oldest first.
    fn events(&self, name: &str) -> Result<Vec<Event>>;

    /// Passes the output of tasks to `output` until all of it was shown, or the job has ended.
    fn logs(
        &self,
        name: &str,
        request: &LogRequest,
        output: &mut dyn FnMut(LogItem<'_>) -> ControlFlow<()>,
    ) -> Result<()>;

    /// Waits for the end of a job. `progress` gets each state that differs from the one before, and can end the wait.
    fn wait(
        &self,
        name: &str,
        progress: &mut dyn FnMut(&JobSummary) -> ControlFlow<()>,
    ) -> Result<Option<JobSummary>>;

    /// Ends a job, and returns when none of its tasks runs any more; unless `wait`, when the place was told to. Its record
    /// stays, unless the place has nothing between running and gone.
    fn stop(&self, name: &str, wait: bool) -> Result<()>;

    /// Whether the output of a stopped job stays until the job is deleted.
    fn keeps_output(&self) -> bool {
        true
    }

    /// Holds a job back, so that none of its tasks runs, or lets it go on.
    ///
    /// # Errors
    ///
    /// The place cannot hold back jobs of its kind, or this user may not.
    fn hold(&self, name: &str, hold: bool) -> Result<()>;

    /// Ends a job, removes it, and returns when none of its tasks runs any more.
    fn delete(&self, name: &str) -> Result<()>;

    /// The permissions that this user lacks to use the place.
    fn check_access(&self) -> Result<Vec<AccessCheck>>;

    /// Passes each new event of a job to `output`, the existing ones first, until the job has ended.
    fn follow_events(&self, name: &str, output: &mut dyn FnMut(&Event) -> ControlFlow<()>) -> Result<()>;

    /// Runs a command in a task until it ends; returns its exit code.
    fn exec(&self, name: &str, request: &ExecRequest, streams: ExecStreams<'_>) -> Result<u8>;

    /// Makes ports of tasks available on loopback until `stop` is readable.
    fn port_forward(
        &self,
        name: &str,
        forwards: &[PortForward],
        stop: BorrowedFd<'_>,
        report: &(dyn Fn(PortForwardReport) + Sync),
    ) -> Result<()>;

    /// Copies files into a task or out of it.
    fn copy(&self, name: &str, request: &CopyRequest) -> Result<Copied>;

    /// The current resource usage of a job's running tasks.
    fn usage(&self, name: &str) -> Result<Vec<TaskUsage>>;

    /// What is free now: groups of equal nodes, queues and quotas.
    fn capacity(&self) -> Result<Vec<Capacity>>;
}

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

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// It is held back: by its submission, its queue or a user.
    Suspended,
    /// No task runs yet.
    Pending,
    /// Tasks run.
    Running,
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// It exceeded its time limit.
    TimedOut,
    /// It was deleted.
    Stopped,
}

impl JobState {
    /// The word in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Suspended => "suspended",
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
            Self::Stopped => "stopped",
        }
    }

    /// Whether it has ended.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Suspended | Self::Pending | Self::Running)
    }

    /// The exit code of `jobc wait`, as for jobs on this host.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::TimedOut => 124,
            Self::Stopped => 130,
            _ => 0,
        }
    }
}

/// Numbers of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TaskCounts {
    /// How many the job has.
    pub wanted: u64,
    /// How many have pods that have not ended.
    pub active: u64,
    /// How many have succeeded.
    pub succeeded: u64,
    /// How many pods have failed.
    pub failed: u64,
}

/// A job in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobSummary {
    /// The name of the run.
    pub name: String,
    /// The name in the job file.
    pub job: String,
    /// The kind of its object.
    pub kind: String,
    /// Its state.
    pub state: JobState,
    /// The reason of the state, in the cluster's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The cluster's explanation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Its tasks.
    pub tasks: TaskCounts,
    /// The user who submitted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// When it was created (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted: Option<String>,
    /// When its first task started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Whether its submission is complete; otherwise the same `jobc submit` completes it.
    pub is_complete: bool,
    /// The digest of its plan, as in the label.
    #[serde(skip)]
    pub plan: Option<String>,
    /// Whether it runs, but not all of its tasks do that should: [`Place::inspect`] may say why.
    #[serde(skip)]
    pub is_short: bool,
}

/// A task of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskStatus {
    /// `train-0`.
    pub task: String,
    /// Which try of the task it is, from 1.
    pub attempt: u32,
    /// `pending`, `starting`, `running`, `succeeded`, `failed`.
    pub state: &'static str,
    /// The pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Its node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The exit code of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// When the program started (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// When the program ended (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Why it is in that state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A job in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobDetail {
    /// The job.
    #[serde(flatten)]
    pub summary: JobSummary,
    /// Its namespace, on Kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Why it does not run, or ended: one sentence each.
    pub reasons: Vec<String>,
    /// Its tasks by name and attempt.
    #[serde(rename = "task_list")]
    pub task_list: Vec<TaskStatus>,
}

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

/// Which output is shown.
#[derive(Clone, Debug, Default)]
pub struct LogRequest {
    /// Whether to go on until the job has ended.
    pub follow: bool,
    /// Lines from the end of each task's output; all by default.
    pub tail: Option<u64>,
    /// Only lines newer than this time (RFC 3339).
    pub since: Option<String>,
    /// Only this attempt of each task.
    pub attempt: Option<u32>,
    /// Tasks or roles; all by default.
    pub tasks: Vec<String>,
}

/// Output of a task, or a remark about it.
#[derive(Debug)]
pub enum LogItem<'a> {
    /// A line.
    Line {
        /// The task.
        task: &'a str,
        /// The attempt, from 1.
        attempt: u32,
        /// When it was written (RFC 3339).
        time: &'a str,
        /// The line without its end.
        text: &'a [u8],
    },
    /// Something about the output, such as lines that the server no longer has.
    Remark {
        /// The task.
        task: &'a str,
        /// Its type.
        text: &'a str,
    },
    /// Nothing happened for a while.
    Idle,
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

/// A command to run in a task.
#[derive(Clone, Debug, Default)]
pub struct ExecRequest {
    /// The task, or a role for its first task; the only one that runs by default.
    pub task: Option<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Whether it gets a terminal.
    pub terminal: bool,
    /// Whether it must be able to read to the end of its input; otherwise it may wait there for ever on old clusters.
    pub needs_end_of_input: bool,
}

/// The streams of a command.
pub struct ExecStreams<'a> {
    /// Its input; `None` for no input.
    pub stdin: Option<OwnedFd>,
    /// Where its stdout goes; with a terminal, all of its output.
    pub stdout: OwnedFd,
    /// Where its stderr goes.
    pub stderr: OwnedFd,
    /// Callbacks on this side meanwhile.
    pub events: Option<ExecEvents<'a>>,
}

/// Events at the user's side of a command.
pub struct ExecEvents<'a> {
    /// Readable when there is an event.
    pub ready: BorrowedFd<'a>,
    /// Takes the next one.
    pub next: &'a mut dyn FnMut() -> Option<ExecEvent>,
}

/// Callbacks on the user's side of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecEvent {
    /// The terminal has this size now.
    Resized {
        /// Characters in a line.
        columns: u16,
        /// Lines.
        rows: u16,
    },
    /// The connection is to end, with this exit code.
    Interrupted(u8),
}

/// A port of a task that is made available on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortForward {
    /// The port on loopback; the same number by default, or any if that is taken.
    pub local: Option<u16>,
    /// The task, or a role for its first task.
    pub task: String,
    /// The label of a port of the job, or a number.
    pub port: String,
}

/// The events of forwarded ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortForwardReport {
    /// Connections are accepted now.
    Listening {
        /// The port on loopback.
        local: u16,
        /// The task.
        task: String,
        /// The number of the port there.
        port: u16,
    },
    /// A connection, or the way to the task, failed; others go on.
    Failed(String),
}

/// Files to copy into or out of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyRequest {
    /// The task, or a role for its first task.
    pub task: String,
    /// The path in the task.
    pub remote: String,
    /// The path on this host.
    pub local: PathBuf,
    /// Whether files go into the task.
    pub into_task: bool,
}

/// The copied files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Copied {
    /// Files, directories and links.
    pub entries: u64,
    /// Bytes of files.
    pub bytes: u64,
    /// The files that were skipped, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
}

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
