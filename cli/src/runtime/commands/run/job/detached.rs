//! The start of jobs in the background: `jobc run --detach` reports a job that cannot start, as in the foreground.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use jobc_job::event::{self, Event, Kind};
use jobc_job::record::Record;
use jobc_place::exit_code::NOT_STARTED;
use jobc_sys::error::{Error, Result};
use jobc_sys::readable;
use jobc_sys::signals::Signals;

use super::attach::RunningJob;
use crate::runtime::commands::follow::job_end::JobEnd;
use crate::runtime::commands::jobs::Jobs;

/// How often to check for events.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Maximum time to wait for all jobs together: unpacking an image can take long.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Waits until each job starts its tasks, is queued or fetches data. Reports those that cannot start on stderr; returns
/// whether there is another one. A signal ends the wait, but not the jobs.
pub(super) fn wait_for_start(all: &Jobs, jobs: &mut [RunningJob], signals: &Signals) -> Result<bool> {
    let deadline = Instant::now() + START_TIMEOUT;
    let mut has_started = false;
    for job in jobs {
        match refusal(all, job, signals, deadline)? {
            None => has_started = true,
            Some(record) => {
                if let Some(end) = JobEnd::of_record(&job.directory, &record) {
                    end.print(true);
                }
            }
        }
    }
    Ok(has_started)
}

/// The record of a job that could not start; none if it starts, or if that is not known yet.
fn refusal(all: &Jobs, job: &mut RunningJob, signals: &Signals, deadline: Instant) -> Result<Option<Record>> {
    let mut events = event::Reader::new(&job.directory);
    loop {
        let ready = readable::wait(&[signals.as_fd(), job.pidfd()], Some(POLL_INTERVAL))
            .map_err(|errno| Error::system("wait for the start of a job", errno))?;
        if ready[1] {
            let record = job.handle_exit(all)?;
            let is_refused =
                |record: &Record| record.end.as_ref().is_some_and(|end| end.exit_code == NOT_STARTED);
            return Ok(record.filter(is_refused));
        }
        let is_accepted = events.read().unwrap_or_default().iter().any(is_acceptance);
        if ready[0] || is_accepted || Instant::now() >= deadline {
            return Ok(None);
        }
    }
}

/// The network is the last thing that is prepared.
fn is_acceptance(event: &Event) -> bool {
    matches!(event.event, Kind::Queued | Kind::Fetching | Kind::NetworkReady)
}
