//! Attaches to running jobs in the foreground: shows their output and forwards signals.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, SystemTime};

use jobc_job::control::Request;
use jobc_job::directory::Directory;
use jobc_job::record::Record;
use jobc_job::supervisor::start::Started;
use jobc_sys::error::{Error, Result};
use jobc_sys::signals::{Signal, Signals};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};

use crate::commands::follow::Follower;
use crate::commands::follow::output::or_end;
use crate::commands::jobs::Jobs;
use crate::table::visible;
use crate::terminal;

/// How often to check for new notes; signals, lines and ends wake us anyway.
const LOOK: Duration = Duration::from_millis(500);

/// A job with its supervisor, which is our child process.
pub(super) struct Running {
    /// The job.
    pub directory: Directory,
    started: Started,
    pidfd: OwnedFd,
    over: bool,
    /// The last modification time of the record, and the number of its notes that were printed.
    told: (Option<SystemTime>, usize),
}

impl Running {
    /// Watches a supervisor that was just started.
    pub(super) fn new(directory: Directory, started: Started) -> Result<Self> {
        let pid = i32::try_from(started.child.id()).ok().and_then(Pid::from_raw);
        let pidfd = pid.map_or(Err(Errno::SRCH), |pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()));
        let pidfd = pidfd.map_err(|errno| Error::machine("watch the job's supervisor", errno))?;
        Ok(Self { directory, started, pidfd, over: false, told: (None, 0) })
    }

    /// Readable when the supervisor has ended.
    pub(super) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Prints new notes of the job: unenforced limits, published ports.
    fn tell_notes(&mut self, follower: &mut Follower) {
        let changed = std::fs::metadata(self.directory.record_file()).and_then(|data| data.modified()).ok();
        if changed == self.told.0 {
            return;
        }
        let record = Record::read(&self.directory).ok().flatten();
        let notes = record.map(|record| record.notes).unwrap_or_default();
        for note in notes.iter().skip(self.told.1) {
            follower.note(&self.directory, note);
        }
        self.told = (changed, notes.len());
    }

    /// Handles the end of the supervisor; returns the final record of the job.
    fn ended(&mut self, jobs: &Jobs) -> Result<Option<Record>> {
        let _ = self.started.child.wait();
        self.over = true;
        jobs.settled(&self.directory)
    }
}

/// Attaches to jobs until all of them have ended, and shows their output if requested; returns their records, in order.
pub(super) fn attend(
    all: &Jobs,
    jobs: &mut [Running],
    signals: &Signals,
    asked: &mut Asked,
    mut shown: Option<Follower>,
) -> Result<Vec<Record>> {
    let mut records: Vec<Option<Record>> = jobs.iter().map(|_| None).collect();
    while jobs.iter().any(|job| !job.over) {
        let ready = {
            let running = jobs.iter().filter(|job| !job.over).map(Running::pidfd);
            let others: Vec<BorrowedFd<'_>> = std::iter::once(signals.as_fd()).chain(running).collect();
            match &mut shown {
                Some(follower) => or_end(follower.wait(&others, LOOK)),
                None => sleep(&others)?,
            }
        };
        if let Some(follower) = &mut shown {
            for job in jobs.iter_mut() {
                job.tell_notes(follower);
            }
        }
        if ready[0] {
            while let Some(signal) = signals.next() {
                asked.pass_on(signal, jobs);
            }
        }
        let running = jobs.iter_mut().zip(&mut records).filter(|(job, _)| !job.over);
        for ((job, record), _) in running.zip(&ready[1..]).filter(|(_, ready)| **ready) {
            *record = job.ended(all)?;
            let Some(end) = record.as_ref().and_then(|record| record.end.as_ref()) else { continue };
            match &mut shown {
                Some(follower) => {
                    job.tell_notes(follower);
                    or_end(follower.finish());
                    follower.end(&job.directory, &end.explanation);
                }
                None if end.exit_code == 0 => {}
                None => {
                    terminal::eprint(&format!("jobc: {}: {}\n", job.directory.id, visible(&end.explanation)));
                }
            }
        }
    }
    Ok(records.into_iter().flatten().collect())
}

/// Sleeps until one of these file descriptors is readable; returns which are.
fn sleep(others: &[BorrowedFd<'_>]) -> Result<Vec<bool>> {
    let mut polled: Vec<PollFd<'_>> =
        others.iter().map(|other| PollFd::from_borrowed_fd(*other, PollFlags::IN)).collect();
    match poll(&mut polled, None) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(Error::machine("wait for a job", errno)),
    }
    Ok(polled.iter().map(|polled| !polled.revents().is_empty()).collect())
}

/// What the user has requested so far.
#[derive(Default)]
pub(super) struct Asked {
    to_end: bool,
}

impl Asked {
    /// Handles a signal for jobs in the foreground: the first one stops them gracefully, the second one kills them.
    pub(super) fn pass_on(&mut self, signal: Signal, jobs: &mut [Running]) {
        let now = match signal {
            Signal::INT | Signal::TERM | Signal::HUP => self.to_end,
            Signal::QUIT => true,
            _ => return,
        };
        let request = if now {
            Request::Kill { signal: Signal::KILL.number(), tasks: Vec::new() }
        } else {
            Request::Stop { grace_seconds: None }
        };
        if signal == Signal::INT && !now {
            terminal::eprint("jobc: stopping the job; press Ctrl-C again to kill it\n");
        }
        self.to_end = true;
        for job in jobs.iter_mut().filter(|job| !job.over) {
            // A supervisor that does not respond has just ended, or is stuck. The second signal kills it, and all of
            // its job with it.
            if job.started.connection.ask(&job.directory, &request).is_err() && now {
                let _ = job.started.child.kill();
            }
        }
    }
}
