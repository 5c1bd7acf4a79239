//! What places that run jobs answer: this host, Kubernetes, Slurm, machines behind ssh.
//!
//! A [`Place`] lists, shows, holds and ends its jobs, and reaches into their tasks. A place that runs jobs elsewhere is
//! sent them by the crate `jobc-remote`; this host runs them by `jobc-job`.

pub mod capacity;
pub mod change;
pub mod energy;
pub mod event;
pub mod exec;
pub mod exit_code;
pub mod exit_text;
pub mod job;
pub mod job_ref;
pub mod logs;
pub mod members;
pub mod metric;
pub mod outline;
pub mod output;
pub mod progress;
pub mod queue;
pub mod state;
pub mod stop;
pub mod task;
pub mod time;
pub mod transfer;
pub mod usage;
pub mod verdict;

use std::time::Duration;

use jobc_sys::error::{Error, Kind, Result};

use capacity::Capacity;
use change::Change;
use event::{Event, EventOutput};
use exec::{ExecRequest, ExecStreams};
use job::{JobDetail, JobProgress, JobSummary};
use logs::{LogOutput, LogRequest};
use members::Members;
use serde_json::{Map, Value};
use stop::{KillRequest, StopRequest};
use transfer::{Copied, CopyRequest, ForwardRequest};
use usage::TaskUsage;

/// A place that runs jobs.
pub trait Place: Send + Sync {
    /// The jobs, the newest first.
    fn list(&self) -> Result<Vec<JobSummary>>;

    /// The run that a name stands for: the run itself, or the newest run of the job with that name.
    fn find(&self, name: &str) -> Result<JobSummary>;

    /// The jobs that a name stands for: one, or those of a sweep.
    fn members(&self, name: &str) -> Result<Members> {
        members::by_name(name, || self.find(name), || self.list())
    }

    /// Waits for the end of a job.
    fn wait(&self, name: &str, progress: JobProgress<'_>) -> Result<Option<JobSummary>>;

    /// Why a job waits or ended: one sentence each.
    fn reasons(&self, name: &str) -> Result<Vec<String>> {
        Ok(self.inspect(name)?.reasons)
    }

    /// The changes of the reasons, the oldest first, where the place keeps them.
    fn changes(&self, name: &str) -> Result<Vec<Change>> {
        let _ = name;
        Ok(vec![])
    }

    /// When a job that waits may start: a sentence, where the place can tell.
    fn estimate(&self, name: &str) -> Result<Option<String>> {
        let _ = name;
        Ok(None)
    }

    /// Ends a job. Its record stays, unless the place has nothing between running and gone.
    ///
    /// Returns the job as it ended, if the place knows more than that it was stopped.
    ///
    /// # Errors
    ///
    /// The job does not end, this user may not end it, or the place cannot do what the request says.
    fn stop(&self, name: &str, request: StopRequest<'_>) -> Result<Option<JobSummary>>;

    /// Sends a signal to the tasks of a job. Returns the job as it ended, if it ends by it and the place knows more.
    ///
    /// # Errors
    ///
    /// The place cannot send that signal, or not to those tasks.
    fn kill(&self, name: &str, request: KillRequest<'_>) -> Result<Option<JobSummary>> {
        let _ = (name, request);
        Err(refused("send signals to tasks"))
    }

    /// Holds a job back, so that none of its tasks runs, or lets it go on.
    ///
    /// # Errors
    ///
    /// The place cannot hold back jobs of its kind, or this user may not.
    fn hold(&self, name: &str, hold: bool) -> Result<()> {
        let _ = (name, hold);
        Err(refused("hold jobs back"))
    }

    /// Ends the tasks of a job by the contract of `preemption`, and gives back its resources, until [`hold`](Self::hold)
    /// lets it go on.
    ///
    /// # Errors
    ///
    /// As for [`hold`](Self::hold).
    fn suspend(&self, name: &str) -> Result<()> {
        self.hold(name, true)
    }

    /// Ends a job, removes it, and returns when none of its tasks runs any more.
    fn delete(&self, name: &str) -> Result<()>;

    /// Removes what a place has of a sweep besides its jobs, after them.
    fn delete_sweep(&self, name: &str) -> Result<()> {
        let _ = name;
        Ok(())
    }

    /// A job with its tasks, and why it waits.
    fn inspect(&self, name: &str) -> Result<JobDetail>;

    /// What else the place has of a job, for programs.
    fn more(&self, name: &str) -> Result<Map<String, Value>> {
        let _ = name;
        Ok(Map::new())
    }

    /// The events of a job, the oldest first.
    fn events(&self, name: &str) -> Result<Vec<Event>>;

    /// Passes each new event of a job to `output`, the existing ones first, until the job has ended.
    fn follow_events(&self, name: &str, output: EventOutput<'_>) -> Result<()>;

    /// Passes the output of tasks to `output` until all of it was shown, or the job has ended.
    fn logs(&self, name: &str, request: &LogRequest, output: LogOutput<'_>) -> Result<()>;

    /// Runs a command in a task until it ends; returns its exit code.
    fn exec(&self, name: &str, request: &ExecRequest, streams: ExecStreams<'_>) -> Result<u8> {
        let _ = (name, request, streams);
        Err(refused("run commands in tasks"))
    }

    /// Makes ports of tasks available on loopback until it is told to stop.
    fn port_forward(&self, name: &str, request: ForwardRequest<'_>) -> Result<()> {
        let _ = (name, request);
        Err(refused("forward ports of tasks"))
    }

    /// Copies files into a task or out of it.
    fn copy(&self, name: &str, request: &CopyRequest) -> Result<Copied> {
        let _ = (name, request);
        Err(refused("copy files of tasks"))
    }

    /// The current resource usage of a job's running tasks.
    fn usage(&self, name: &str) -> Result<Vec<TaskUsage>> {
        let _ = name;
        Err(refused("measure tasks"))
    }

    /// How often it changes.
    fn usage_interval(&self) -> Duration {
        Duration::from_secs(15)
    }

    /// What is free now: groups of equal nodes, queues and quotas.
    fn capacity(&self) -> Result<Vec<Capacity>> {
        Err(refused("say what is free"))
    }
}

/// The error of what a place cannot do, where it says nothing better.
fn refused(what: &str) -> Error {
    Error::new(Kind::Unsupported, format!("this place cannot {what}"))
}
