//! How a job is ended.

use std::time::Duration;

use jobc_sys::error::{Error, Kind, Result};

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
