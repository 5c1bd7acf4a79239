//! How a job is ended, or gets a signal.

use std::time::Duration;

use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::signals::Signal;

use crate::logs::LogItem;

/// How a job is ended.
#[derive(Default)]
pub struct StopRequest<'a> {
    /// The time between the signal that asks and the one that kills, instead of the job's own.
    pub grace: Option<Duration>,
    /// Whether to return when the place was told to, not when none of the tasks runs any more.
    pub no_wait: bool,
    /// Takes the output up to now where the place deletes it with the tasks.
    pub keep: Option<&'a mut dyn FnMut(LogItem<'_>)>,
}

impl StopRequest<'_> {
    /// Refuses a grace period of its own.
    ///
    /// # Errors
    ///
    /// The request has one.
    pub fn without_grace(&self) -> Result<()> {
        match self.grace {
            None => Ok(()),
            Some(_) => Err(Error::new(Kind::Unsupported, "`--grace` does not apply to jobs on clusters")
                .help("set `grace_period` in the job file")),
        }
    }
}

/// A signal for tasks.
pub struct KillRequest<'a> {
    /// The signal.
    pub signal: Signal,
    /// Tasks or roles; all by default.
    pub tasks: &'a [String],
    /// Whether the supervisor of a job of this host is killed instead, with all processes of the job.
    pub force: bool,
    /// Takes the output up to now where the place deletes it with the tasks.
    pub keep: Option<&'a mut dyn FnMut(LogItem<'_>)>,
}

impl KillRequest<'_> {
    /// Whether the job ends by it.
    pub fn ends_job(&self) -> bool {
        self.force || self.signal == Signal::KILL && self.tasks.is_empty()
    }

    /// Refuses what only jobs of a host can get.
    ///
    /// # Errors
    ///
    /// The request is for a supervisor, or names tasks.
    pub fn of_cluster(&self) -> Result<()> {
        let refused = |what: &str, help: String| {
            Err(Error::new(Kind::Unsupported, format!("{what} does not apply to jobs on clusters"))
                .help(help))
        };
        if self.force {
            return refused("`--force`", "`jobc kill` without it ends the job".to_owned());
        }
        match self.tasks {
            [] => Ok(()),
            [task, ..] => refused(
                "`jobc kill` of single tasks",
                format!("`jobc exec JOB {task} -- kill -{} 1` sends a signal to one", self.signal),
            ),
        }
    }
}
