//! The events of a job: the lines of `events.jsonl`, appended by its supervisor alone.

mod reader;
mod text;

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use reader::Reader;
pub use text::{describe, next_attempt, oom_kills};

use crate::directory::{Directory, storage_error};
use jobc_place::time::Time;
use jobc_sys::error::Result;
use jobc_sys::id::TaskId;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub time: Time,
    /// What.
    pub event: Kind,
    /// To which task; to the whole job where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// To which attempt of the task, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// More of it, by the kind: see docs/reference/logs-and-metrics.md.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub detail: Value,
}

/// The kinds of events, in the order of a successful job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The job was submitted.
    Submitted,
    /// It waits for resources or in the queue: `waits_for`, `place`.
    Queued,
    /// It has its resources: `claim`.
    Scheduled,
    /// A volume is being fetched: `volume`, `from`, `bytes`.
    Fetching,
    /// A volume is ready: `volume`, `path`.
    DataReady,
    /// A root filesystem is ready: `image`, `root`.
    ImageReady,
    /// The job's network is ready: `network`.
    NetworkReady,
    /// The job's network changed: `uplink` (`lost`, `restored`, `gone`) or `network` (`lost`), `why`, `by`.
    NetworkChanged,
    /// A task's container was created: `container`, `pid`.
    Created,
    /// A task's root and volumes are mounted: `mounts`.
    Mounted,
    /// A task's program runs: `pid`.
    Started,
    /// A task is ready: `after_ms`.
    Ready,
    /// A task was not ready in time, or with `keep` is not any more: `why`.
    NotReady,
    /// The resource usage of a task, periodically and at its end: the fields of a sample.
    Sampled,
    /// The kernel killed processes of a task for lack of memory, and the task goes on or has succeeded: `kills`, since
    /// the attempt began.
    OomKilled,
    /// A task on the files of the host wrote files that are discarded: the fields of
    /// [`Discarded`](crate::discarded::Discarded).
    Discarded,
    /// A task makes no progress: `signs`, `why`, `action`, the tasks that are quiet `too`, the `file` with what was seen.
    Stalled,
    /// A task, role or job is retried: `scope`, `attempt`, `backoff_ms`, `why`.
    Retried,
    /// Everything is frozen: by a user, or it `waits_for` its turn on its GPUs; `first` if none of its tasks ran yet.
    Paused,
    /// All tasks continue; in a `turn` on these GPUs, if the job shares them by time.
    Resumed,
    /// The tasks have left by `preemption`, and the job has given its resources back.
    Suspended,
    /// The job is being ended: `why`, and the `task` whose end decided it.
    Stopping,
    /// A task or the job ended: `exit_code`, `explanation`. Of a task also its `signal`, whether it was `stopped`, and
    /// `ends_job` if its end decides that of the job. The `verdict` has `kind`, `evidence` and `next`.
    Ended,
    /// Something is wrong with a GPU of a task: `gpu`, `what`, and `xid` if the driver reports an error by its number.
    GpuFault,
    /// The clock of the host was set: by how many `seconds`.
    ClockSet,
    /// Its entry in the ledger was gone, so that other jobs could take its resources; it is `restored` or `why` not.
    ClaimLost,
    /// No GPU of the job was used for long: `percent`, `seconds`, and the `action`.
    Idle,
    /// A notice was sent: `on` which event, `to` whom, and the `error` if it failed.
    Notified,
    /// Outputs and logs are complete: `outputs`.
    Saved,
}

/// The file that events are appended to.
#[derive(Debug)]
pub struct EventLog {
    file: File,
}

impl Event {
    /// Something that happens to the job now.
    pub fn of_job(event: Kind, detail: Value) -> Self {
        Self { time: Time::now(), event, task: None, attempt: None, detail }
    }

    /// Something that happens to an attempt of a task now.
    pub fn of_task(event: Kind, task: TaskId, attempt: u32, detail: Value) -> Self {
        Self { time: Time::now(), event, task: Some(task), attempt: Some(attempt), detail }
    }
}

impl EventLog {
    /// Opens a job's file, and creates it if it does not exist.
    pub fn open(directory: &Directory) -> Result<Self> {
        let path = directory.events_file();
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        Ok(Self { file: file.map_err(|error| storage_error("open", &path, &error))? })
    }

    /// Appends an event, in one write so that readers see whole lines.
    pub fn push(&mut self, event: &Event) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        self.file.write_all(&line)
    }
}
