//! Attaches to running jobs in the foreground: shows their output and forwards signals.

use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, SystemTime};

use jobc_container::cgroup::UnenforcedLimit;
use jobc_container::rootless;
use jobc_job::control::Request;
use jobc_job::directory::Directory;
use jobc_job::record::Record;
use jobc_job::supervisor::start::StartedSupervisor;
use jobc_job::unmet;
use jobc_place::state::JobState;
use jobc_sys::error::{Error, Result};
use jobc_sys::readable;
use jobc_sys::signals::{Signal, Signals};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};

use crate::runtime::commands::follow::Follower;
use crate::runtime::commands::follow::job_end::JobEnd;
use crate::runtime::commands::follow::output::or_exit;
use crate::runtime::commands::jobs::Jobs;
use crate::terminal;

use super::live::LiveTable;

/// How often to check for new notes; signals, lines and ends wake us anyway.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How long nothing happens before a run names what its roles wait for.
const IDLE_TIME: Duration = Duration::from_secs(10);

/// A job with its supervisor, which is our child process.
pub(super) struct RunningJob {
    /// The job.
    pub directory: Directory,
    started: StartedSupervisor,
    pidfd: OwnedFd,
    finished: bool,
    /// The last modification time of the record, and the number of its notes that were printed.
    notes_seen: (Option<SystemTime>, usize),
    /// The last modification time of the record whose unmet needs were printed.
    needs_seen: Option<SystemTime>,
}

impl RunningJob {
    /// Watches a supervisor that was just started.
    pub(super) fn new(directory: Directory, started: StartedSupervisor) -> Result<Self> {
        let pid = i32::try_from(started.child.id()).ok().and_then(Pid::from_raw);
        let pidfd = pid.map_or(Err(Errno::SRCH), |pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()));
        let pidfd = pidfd.map_err(|errno| Error::system("watch the job's supervisor", errno))?;
        Ok(Self { directory, started, pidfd, finished: false, notes_seen: (None, 0), needs_seen: None })
    }

    /// Readable when the supervisor has ended.
    pub(super) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Prints new notes of the job, such as published ports, that no job before has had. Limits were reported for all, and
    /// what every job of an unprivileged user has is printed with `--verbose` only.
    fn print_new_notes(&mut self, follower: &mut Follower, printed: &mut BTreeSet<String>, verbose: bool) {
        let changed = self.last_change();
        if changed == self.notes_seen.0 {
            return;
        }
        let record = Record::read(&self.directory).ok().flatten();
        let notes = record.map(|record| record.notes).unwrap_or_default();
        for note in notes.iter().skip(self.notes_seen.1) {
            let is_known = UnenforcedLimit::is_in_words(note) || (!verbose && rootless::is_summary(note));
            if !is_known && printed.insert(note.clone()) {
                follower.note(&self.directory, note);
            }
        }
        self.notes_seen = (changed, notes.len());
    }

    /// Prints what the waiting roles of the job wait for.
    fn print_unmet_needs(&mut self, follower: &mut Follower, printed: &mut BTreeSet<String>) {
        let changed = self.last_change();
        if std::mem::replace(&mut self.needs_seen, changed) == changed {
            return;
        }
        let record = Record::read(&self.directory).ok().flatten();
        let needs = record.and_then(|record| unmet::of_job(&self.directory, &record).ok());
        for need in needs.unwrap_or_default() {
            if printed.insert(need.clone()) {
                follower.note(&self.directory, &need);
            }
        }
    }

    fn last_change(&self) -> Option<SystemTime> {
        std::fs::metadata(self.directory.record_file()).and_then(|data| data.modified()).ok()
    }

    /// Handles the end of the supervisor; returns the final record of the job.
    pub(super) fn handle_exit(&mut self, jobs: &Jobs) -> Result<Option<Record>> {
        let _ = self.started.child.wait();
        self.finished = true;
        jobs.place.final_record(&self.directory)
    }
}

/// Attaches to jobs until all of them have ended, and shows their output if requested; returns their records, in order.
pub(super) fn attach(
    all: &Jobs,
    jobs: &mut [RunningJob],
    signals: &Signals,
    stop_request: &mut StopRequest,
    mut shown: Option<Follower>,
    mut table: Option<LiveTable>,
    verbose: bool,
) -> Result<Vec<Record>> {
    let mut records: Vec<Option<Record>> = jobs.iter().map(|_| None).collect();
    let mut notes = BTreeSet::new();
    while jobs.iter().any(|job| !job.finished) {
        let ready = {
            let running = jobs.iter().filter(|job| !job.finished).map(RunningJob::pidfd);
            let others: Vec<BorrowedFd<'_>> = std::iter::once(signals.as_fd()).chain(running).collect();
            match &mut shown {
                Some(follower) => or_exit(follower.wait(&others, POLL_INTERVAL)),
                None => {
                    readable::wait(&others, None).map_err(|errno| Error::system("wait for a job", errno))?
                }
            }
        };
        if let Some(follower) = &mut shown {
            for job in jobs.iter_mut() {
                job.print_new_notes(follower, &mut notes, verbose);
                if follower.idle_time() >= IDLE_TIME {
                    job.print_unmet_needs(follower, &mut notes);
                }
            }
            if let Some(table) = &mut table {
                // The message for a signal, and the `^C` of the terminal, must not follow a footer.
                if ready[0] { table.hide(follower) } else { table.draw(follower) }
            }
        }
        if ready[0] {
            while let Some(signal) = signals.next() {
                stop_request.forward(signal, jobs);
            }
        }
        let running = jobs.iter_mut().zip(&mut records).filter(|(job, _)| !job.finished);
        for ((job, record), _) in running.zip(&ready[1..]).filter(|(_, ready)| **ready) {
            *record = job.handle_exit(all)?;
            if let (Some(follower), Some(table)) = (&mut shown, &mut table) {
                table.hide(follower);
            }
            let Some(record) = record.as_ref().filter(|record| record.end.is_some()) else { continue };
            match &mut shown {
                Some(follower) => {
                    job.print_new_notes(follower, &mut notes, verbose);
                    or_exit(follower.finish());
                    follower.end(&job.directory, record);
                }
                None => {
                    if let Some(end) = JobEnd::of_record(&job.directory, record)
                        && record.state != JobState::Succeeded
                    {
                        end.print(true);
                    }
                }
            }
        }
    }
    if let (Some(follower), Some(table)) = (&mut shown, &mut table) {
        table.hide(follower);
    }
    Ok(records.into_iter().flatten().collect())
}

/// What the user has requested so far.
#[derive(Default)]
pub(super) struct StopRequest {
    requested: bool,
}

impl StopRequest {
    /// Handles a signal for jobs in the foreground: the first one stops them gracefully, the second one kills them.
    pub(super) fn forward(&mut self, signal: Signal, jobs: &mut [RunningJob]) {
        let now = match signal {
            Signal::INT | Signal::TERM | Signal::HUP => self.requested,
            Signal::QUIT => true,
            _ => return,
        };
        let request = if now {
            Request::Kill { signal: Signal::KILL.number(), tasks: Vec::new() }
        } else {
            Request::Stop { grace_seconds: None, interrupt: signal == Signal::INT }
        };
        if signal == Signal::INT && !now {
            terminal::eprint("jobc: stopping the job; press Ctrl-C again to kill it\n");
        }
        self.requested = true;
        for job in jobs.iter_mut().filter(|job| !job.finished) {
            // A supervisor that does not respond has just ended, or is stuck. The second signal kills it, and all of
            // its job with it.
            if job.started.connection.request(&job.directory, &request).is_err() && now {
                let _ = job.started.child.kill();
            }
        }
    }
}
