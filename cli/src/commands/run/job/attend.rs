//! Staying with running jobs in the foreground: what they write is shown, and signals are passed on.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use jobc_runtime::error::{Error, Kind, Result};
use jobc_runtime::job::Folder;
use jobc_runtime::job::control::Request;
use jobc_runtime::job::record::Record;
use jobc_runtime::signals::{Signal, Signals};
use jobc_runtime::supervisor::start::Started;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};

use crate::commands::follow::printer::Look;
use crate::commands::follow::{Follower, Shown};
use crate::commands::jobs::Jobs;
use crate::terminal;

/// A job with its supervisor, which is a child of ours.
pub(super) struct Running {
    /// The job.
    pub folder: Folder,
    started: Started,
    pidfd: OwnedFd,
    over: bool,
}

impl Running {
    /// Watches a supervisor that was just started.
    pub(super) fn new(folder: Folder, started: Started) -> Result<Self> {
        let pid = i32::try_from(started.child.id()).ok().and_then(Pid::from_raw);
        let pidfd = pid.map_or(Err(Errno::SRCH), |pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()));
        let pidfd = pidfd.map_err(|errno| Error::machine("watch the job's supervisor", errno))?;
        Ok(Self { folder, started, pidfd, over: false })
    }

    /// Takes note of the supervisor's end, where it has ended; returns what became of the job.
    fn ended(&mut self, jobs: &Jobs) -> Result<Option<Record>> {
        let _ = self.started.child.wait();
        self.over = true;
        jobs.settled(&self.folder)
    }
}

/// What a user who stays with jobs sees.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// What tasks print.
    pub logs: bool,
    /// What happens to the jobs.
    pub story: bool,
}

/// Stays with jobs until all of them have ended; returns their records.
pub(super) fn attend(all: &Jobs, jobs: &mut [Running], signals: &Signals, seen: Seen) -> Result<Vec<Record>> {
    let mut asked = Asked::default();
    let mut records = Vec::new();
    let mut follower = follower(jobs, seen)?;
    while jobs.iter().any(|job| !job.over) {
        let others: Vec<BorrowedFd<'_>> = std::iter::once(signals.as_fd())
            .chain(jobs.iter().filter(|job| !job.over).map(|job| job.pidfd.as_fd()))
            .collect();
        let ready = follower.wait(&others, Duration::MAX).map_err(unshown)?;
        if ready[0] {
            while let Some(signal) = signals.next() {
                asked.pass_on(signal, jobs);
            }
        }
        for (job, _) in jobs.iter_mut().filter(|job| !job.over).zip(&ready[1..]).filter(|(_, ready)| **ready)
        {
            let record = job.ended(all)?;
            follower.finish().map_err(unshown)?;
            if let Some(end) = record.as_ref().and_then(|record| record.end.as_ref())
                && (seen.story || end.exit_code != 0)
            {
                follower.end(&job.folder, &end.explanation);
            }
            records.extend(record);
        }
    }
    Ok(records)
}

fn follower(jobs: &[Running], seen: Seen) -> Result<Follower> {
    let mut followed = Vec::new();
    for job in jobs {
        // One that has ended and was removed in this moment has nothing to show.
        followed.extend(Record::read(&job.folder)?.map(|record| (job.folder.clone(), record)));
    }
    let tasks = (!seen.logs).then(Vec::new);
    let shown = Shown { tasks, story: seen.story, goes_on: true, ..Shown::default() };
    Ok(Follower::new(&followed, &shown, Look::default()))
}

fn unshown(error: std::io::Error) -> Error {
    Error::new(Kind::Machine, format!("cannot show what the tasks print: {error}"))
        .help("the job goes on without this command; `jobc logs` shows it")
}

/// What the user has asked for already.
#[derive(Default)]
pub(super) struct Asked {
    to_end: bool,
}

impl Asked {
    /// Does what a signal means for jobs in the foreground: the first that asks for the end is a graceful one, the
    /// second is not.
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
        if signal == Signal::INT && !self.to_end {
            terminal::eprint("jobc: ending; once more kills\n");
        }
        self.to_end = true;
        for job in jobs.iter_mut().filter(|job| !job.over) {
            // One that does not answer has just ended by itself, or never will: the second time it is killed, and all of
            // its job with it.
            if job.started.connection.ask(&job.folder, &request).is_err() && now {
                let _ = job.started.child.kill();
            }
        }
    }
}
