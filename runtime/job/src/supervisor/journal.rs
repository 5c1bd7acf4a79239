//! The supervisor's journal: the record, replaced at a limited rate, and events, appended immediately.
//!
//! A full disk ends no job: a failed write is retried, and reported once.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, Instant};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use serde_json::Value;

use crate::clean::RESERVE_FILE;
use crate::directory::{Directory, storage_error};
use crate::event::{Event, EventLog, Kind};
use crate::lifecycle::{Lifecycle, TaskNumber};
use crate::notice::Notices;
use crate::record::Record;
use jobc_place::metric::MetricValue;
use jobc_place::task::{Attempt, TaskStatus};
use jobc_place::time::Time;
use jobc_sys::error::Result;
use jobc_sys::id::TaskId;
use jobc_sys::write_atomic::Durability;

/// Minimum time between replacements of the record: for a thousand tasks it has half a megabyte.
const WRITE_INTERVAL: Duration = Duration::from_millis(50);

/// How long a new value of a metric may wait: a task may print one a millisecond.
const METRIC_INTERVAL: Duration = Duration::from_secs(1);

/// How long after a failure the next try comes.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The least that is kept free for the last record and the last events, in bytes.
const MIN_RESERVE_BYTES: u64 = 64 << 10;

/// The record and the events of a job.
#[derive(Debug)]
pub(super) struct Journal {
    directory: Directory,
    /// The job's record.
    pub(super) record: Record,
    events: EventLog,
    notices: Option<Notices>,
    changed: bool,
    next: Instant,
    /// When new values of metrics are to be written, if there are some.
    metrics_due: Option<Instant>,
    /// Whether the last write failed, so that one failure is reported once.
    failing: bool,
    lost: u64,
}

impl Journal {
    /// Begins the journal of a job with its first record.
    pub(super) fn create(directory: &Directory, record: Record) -> Result<Self> {
        record.write(directory, Durability::Rename)?;
        let size = serde_json::to_vec(&record).map_or(0, |text| text.len() as u64);
        reserve(directory, MIN_RESERVE_BYTES.max(8 * size))?;
        let events = EventLog::open(directory)?;
        let next = Instant::now();
        Ok(Self {
            directory: directory.clone(),
            record,
            events,
            notices: None,
            changed: false,
            next,
            metrics_due: None,
            failing: false,
            lost: 0,
        })
    }

    /// From now on events are reasons for notices.
    pub(super) fn set_notices(&mut self, notices: Notices) {
        self.notices = Some(notices);
    }

    /// Something happened to the job.
    pub(super) fn job_event(&mut self, kind: Kind, detail: Value) {
        self.push(&Event::of_job(kind, detail));
    }

    /// Something happened to a task.
    pub(super) fn task_event(&mut self, task: TaskNumber, kind: Kind, detail: Value) {
        let (id, attempt) = self
            .record
            .tasks
            .get(task)
            .map_or_else(|| (TaskId::new("", 0), 0), |task| (task.task.clone(), task.attempt));
        self.push(&Event::of_task(kind, id, attempt, detail));
    }

    fn push(&mut self, event: &Event) {
        self.changed = true;
        match self.events.push(event) {
            Ok(()) if self.lost > 0 => {
                log_line(&format!("{} events of job `{}` were lost", self.lost, self.directory.id));
                self.lost = 0;
            }
            Ok(()) => {}
            Err(_) => self.lost += 1,
        }
        if let Some(notices) = &mut self.notices {
            notices.observe(event);
        }
    }

    /// The mutable record of a task.
    pub(super) fn task_mut(&mut self, task: TaskNumber) -> &mut TaskStatus {
        self.changed = true;
        &mut self.record.tasks[task]
    }

    /// The job's record, to be changed.
    pub(super) fn record_mut(&mut self) -> &mut Record {
        self.changed = true;
        &mut self.record
    }

    /// A task reported a value of a metric.
    pub(super) fn metric(&mut self, value: MetricValue) {
        self.record.set_metric(value);
        self.metrics_due.get_or_insert_with(|| Instant::now() + METRIC_INTERVAL);
    }

    /// Adds a note for the user, once.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.record.notes.contains(&text) {
            self.record.notes.push(text);
            self.changed = true;
        }
    }

    /// A task's next attempt starts: the data of the last one moves to the earlier ones.
    pub(super) fn begin_attempt(&mut self, task: TaskNumber, attempt: u32) {
        let known = self.task_mut(task);
        if known.attempt > 0 {
            known.earlier.push(Attempt {
                attempt: known.attempt,
                started: known.started.take(),
                ended: known.ended.take(),
                exit_code: known.exit_code.take(),
                signal: known.signal.take(),
                reason: known.reason.take(),
                verdict: known.verdict.take(),
                energy: known.energy.take(),
            });
        }
        known.attempt = attempt;
        (known.started, known.ready, known.ended) = (None, None, None);
        known.oom_kills = 0;
    }

    /// Copies the states that the lifecycle has decided.
    pub(super) fn sync_states(&mut self, lifecycle: &Lifecycle) {
        self.record.attempt = lifecycle.attempt();
        for (known, task) in self.record.tasks.iter_mut().zip(lifecycle.tasks()) {
            known.state = task.state;
            if task.reason.is_some() {
                known.reason.clone_from(&task.reason);
            }
        }
    }

    /// When the record wants to be written, if it does.
    pub(super) fn due(&self) -> Option<Instant> {
        [self.changed.then_some(self.next), self.metrics_due.map(|due| due.max(self.next))]
            .into_iter()
            .flatten()
            .min()
    }

    /// Writes the record if it is due.
    pub(super) fn flush(&mut self, lifecycle: &Lifecycle) {
        if self.due().is_some_and(|due| due <= Instant::now()) {
            self.sync_states(lifecycle);
            let _ = self.write(Durability::Rename);
        }
    }

    /// Writes the record now. The event loop does not wait for a disk that its tasks keep busy: only the final state is
    /// synced to the disk at once.
    pub(super) fn write(&mut self, durability: Durability) -> Result<()> {
        let written = self.record.write(&self.directory, durability);
        self.changed = written.is_err();
        self.metrics_due = None;
        self.next = Instant::now() + if written.is_ok() { WRITE_INTERVAL } else { RETRY_INTERVAL };
        if let Err(error) = &written
            && !self.failing
        {
            log_line(&format!("{error}; retrying"));
        }
        self.failing = written.is_err();
        written
    }
}

/// Writes a line to the supervisor's own log, which may be on a full disk itself.
pub(super) fn log_line(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{} jobc: {text}", Time::now());
}

/// Keeps some bytes of the disk for the end of the job.
fn reserve(directory: &Directory, size: u64) -> Result<()> {
    let path = directory.record.join(RESERVE_FILE);
    let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&path);
    let file = file.map_err(|error| storage_error("create", &path, &error))?;
    match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size) {
        // A file system that cannot promise room keeps none.
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
        Err(errno) => Err(storage_error("reserve space for the job record in", &path, &errno.into())),
    }
}
