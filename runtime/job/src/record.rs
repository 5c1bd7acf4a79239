//! The record of a job: the content of `job.json`, which its supervisor replaces after each change.

mod damaged;

use std::collections::BTreeMap;
use std::path::PathBuf;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::directory::{Directory, replace};
use crate::exit_text;
use crate::user_metrics::MetricValue;
use jobc_container::state::process::Process;
use jobc_gpu::lease::GpuLease;
pub use jobc_place::job::End;
pub use jobc_place::state::JobState;
use jobc_place::time::Time;
use jobc_schema::Scalar;
use jobc_sys::error::{Error, Kind, Result, file_error};
use jobc_sys::id::{JobId, TaskId};
use jobc_sys::write_atomic::Durability;

/// The record of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The format; 1.
    pub version: u32,
    /// The run and its job.
    pub id: JobId,
    /// One line of description, from the job file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The job file, absolute; the plan's directory if it was run from a built plan.
    pub source: PathBuf,
    /// The base directory of relative paths in the job file.
    #[serde(default, skip_serializing_if = "empty")]
    pub directory: PathBuf,
    /// The target whose settings hold.
    pub target: String,
    /// The user who runs it, by uid.
    pub owner: u32,
    /// Where it is in its life.
    pub state: JobState,
    /// Its supervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<Process>,
    /// The scope of this user's systemd that it runs in, by its unit's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// When it was submitted.
    pub submitted: Time,
    /// When its first task was let go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Time>,
    /// Which attempt of the whole job this is, from 1.
    pub attempt: u32,
    /// `host`, `job` or `none`.
    pub network: String,
    /// Its claim on the host.
    pub claim: Claim,
    /// Notes for the user: limits that nothing enforces, what an unprivileged user has otherwise, roles scaled down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The sweep that it is a combination of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<JobId>,
    /// The roles that are combinations of a role's matrix, by role.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub combinations: IndexMap<String, RoleCombination>,
    /// The last values of its metrics, by role and metric, in the order in which they came first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricValue>,
    /// Its tasks, in the order of the plan.
    pub tasks: Vec<TaskRecord>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// Whether the file could not be read and this record replaces it.
    #[serde(skip)]
    pub is_damaged: bool,
}

fn empty(path: &std::path::Path) -> bool {
    path.as_os_str().is_empty()
}

/// A role that is a combination of a role's matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleCombination {
    /// The role in the job file.
    pub role: String,
    /// The values of the axes.
    pub values: IndexMap<String, Scalar>,
}

/// A job's peak use of the host's resources, which admission counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Thousandths of a logical CPU.
    pub cpu_millis: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Whole GPUs.
    pub gpus: u64,
    /// Bytes on disk, outside of volumes.
    pub disk_bytes: u64,
    /// Ports on the host's own network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// Its GPUs, once it is admitted.
    #[serde(default, skip_serializing_if = "GpuLease::is_empty")]
    pub leased: GpuLease,
}

/// The record of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// Which task.
    pub task: TaskId,
    /// Where it is in its life.
    pub state: TaskState,
    /// The attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// The container's name, in the job's own [store](Directory::containers).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Its first process, while it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// Where others reach it: an address of the job's network, or 127.0.0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Its ports by label: the first number of each.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub ports: IndexMap<String, u16>,
    /// Its GPUs, as the host names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<String>,
    /// Its limits, for display: `cpu_millis`, `memory_bytes`, `shm_bytes`, `disk_bytes`, `pids`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, u64>,
    /// Those that are not enforced on this host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unenforced: Vec<String>,
    /// When this attempt was let go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    /// When this attempt was ready first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Time>,
    /// When this attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Time>,
    /// How this attempt ended: 0 to 255, 128 and the signal's number for a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// The signal that ended its first process, such as `SIGSEGV`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The reason, if there is more to report than code and signal: `out of memory: used 2 GiB of 2 GiB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Processes of this attempt that the kernel killed for lack of memory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub oom_kills: u64,
    /// Attempts that ended before this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Attempt>,
}

/// An attempt that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its number, from 1.
    pub attempt: u32,
    /// When it was let go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Time>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// The signal that ended it, as in a [`TaskRecord`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Why, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Where a task is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    /// Its needs are not met yet, or its gang is not complete.
    #[default]
    Waiting,
    /// Its container is being made.
    Creating,
    /// Its container is created and waits to be started.
    Created,
    /// Its program runs.
    Running,
    /// Its program runs, and has once been ready.
    Ready,
    /// An attempt failed; the next one comes after a while.
    Retrying,
    /// It is being stopped.
    Stopping,
    /// It succeeded.
    Succeeded,
    /// It ended badly, for the last time.
    Failed,
    /// It was ended, or never began, because the job was over.
    Stopped,
}

impl TaskState {
    /// Whether this state is final.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Stopped)
    }

    /// Whether it has a process.
    pub fn is_alive(self) -> bool {
        matches!(self, Self::Created | Self::Running | Self::Ready | Self::Stopping)
    }

    /// The word records and tables use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Creating => "creating",
            Self::Created => "created",
            Self::Running => "running",
            Self::Ready => "ready",
            Self::Retrying => "retrying",
            Self::Stopping => "stopping",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}

impl TaskRecord {
    /// How this attempt ended, as text; `None` if it has not ended.
    pub fn end_text(&self) -> Option<String> {
        exit_text::describe(self.exit_code, self.signal.as_deref(), self.reason.as_deref())
    }

    /// Whether the kernel killed processes of this attempt for lack of memory, and the attempt's own end does not say so.
    pub fn has_unseen_oom_kills(&self) -> bool {
        self.oom_kills > 0 && !self.reason.as_ref().is_some_and(|reason| reason.contains("out of memory"))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Attempt {
    /// How it ended, as text.
    pub fn end_text(&self) -> Option<String> {
        exit_text::describe(self.exit_code, self.signal.as_deref(), self.reason.as_deref())
    }
}

impl Record {
    /// Reads a job's record; `None` if the command that created the directory was killed before it wrote one.
    ///
    /// For a truncated file, returns what is known without it ([`Record::is_damaged`]).
    pub fn read(directory: &Directory) -> Result<Option<Self>> {
        let path = directory.record_file();
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(file_error("read", &path, &error)),
        };
        match serde_json::from_slice(&text) {
            Ok(record) => Ok(Some(record)),
            Err(error) if damaged::is_damaged(&error) => Ok(Some(damaged::stand_in(directory))),
            Err(error) => {
                Err(Error::new(Kind::State, format!("`{}` is not a job's record: {error}", path.display()))
                    .help(format!("`jobc rm --force {}` removes what is left of the job", directory.id)))
            }
        }
    }

    /// The state of a task as shown: a task of a paused job is paused, whatever it did before.
    pub fn state_of(&self, task: &TaskRecord) -> &'static str {
        let is_frozen = self.state == JobState::Paused && task.state.is_alive();
        if is_frozen { JobState::Paused.as_str() } else { task.state.as_str() }
    }

    /// Replaces a job's record in one step.
    pub fn write(&self, directory: &Directory, durability: Durability) -> Result<()> {
        let text = serde_json::to_vec(self).map_err(|error| Error::new(Kind::State, error.to_string()))?;
        replace(&directory.record_file(), &text, durability)
    }

    /// Keeps the last value of a metric of a role.
    pub fn set_metric(&mut self, value: MetricValue) {
        let same = |known: &MetricValue| known.name == value.name && known.task.role == value.task.role;
        match self.metrics.iter_mut().find(|known| same(known)) {
            Some(known) => *known = value,
            None => self.metrics.push(value),
        }
    }

    /// The last value of a metric, of any role.
    pub fn metric(&self, name: &str) -> Option<&MetricValue> {
        self.metrics.iter().filter(|metric| metric.name == name).max_by_key(|metric| metric.time)
    }

    /// The record of a task.
    pub fn task(&self, task: &TaskId) -> Option<&TaskRecord> {
        self.tasks.iter().find(|known| known.task == *task)
    }
}
