//! This host as a place: the jobs of this user, by their records and the sockets of their supervisors.

mod changes;
mod detail;
pub(crate) mod events;
mod exec;
mod logs;
mod tasks;
mod usage;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::os::fd::AsFd as _;
use std::sync::Mutex;
use std::time::Duration;

use jobc_place::Place;
use jobc_place::capacity::Capacity;
use jobc_place::change::Change;
use jobc_place::event::{Event, EventOutput};
use jobc_place::exec::{ExecRequest, ExecStreams};
use jobc_place::job::{JobDetail, JobProgress, JobSummary};
use jobc_place::logs::{LogOutput, LogRequest};
use jobc_place::members::Members;
use jobc_place::stop::{KillRequest, StopRequest};
use jobc_place::transfer::{Copied, CopyRequest, ForwardRequest};
use jobc_place::usage::TaskUsage;
use jobc_sys::error::{AtPath as _, Error, Kind, Result};
use jobc_sys::id::JobId;
use jobc_sys::parallel::lock;
use jobc_sys::process::Process;
use jobc_sys::readable;
use jobc_sys::signals::Signal;
use serde_json::{Map, Value};

use crate::admission::capacity::Capacity as HostCapacity;
use crate::admission::estimate;
use crate::admission::ledger::Ledger;
use crate::control::{Connection, Request};
use crate::directory::{Directory, JobDirectories};
use crate::event;
use crate::metrics::LiveUsage;
use crate::record::Record;
use crate::recover::{self, LostJob};
use crate::sweep::{self, Sweep};
use jobc_gpu::{Host, Inventory};
use jobc_place::state::JobState;
use jobc_place::time::Time;

pub use detail::{detail, summary};
pub use tasks::named as named_tasks;
pub use usage::measured;

/// Timeout for a killed supervisor to end, in milliseconds.
const KILL_TIMEOUT_MS: u32 = 10_000;

/// Gets what a user should know of a job besides the answer.
pub type Notice = fn(&str);

/// The jobs of this user on this host.
#[derive(Debug)]
pub struct LocalPlace {
    directories: JobDirectories,
    notice: Notice,
    /// The groups of the jobs whose usage was measured.
    live: Mutex<BTreeMap<String, LiveUsage>>,
}

impl LocalPlace {
    /// Opens the directories of this user. Jobs whose supervisor was killed are first recovered, and a notice names them.
    ///
    /// # Errors
    ///
    /// The directories of the jobs are unknown or cannot be read.
    pub fn open(notice: Notice) -> Result<Self> {
        let place = Self { directories: JobDirectories::standard()?, notice, live: Mutex::default() };
        place.recover_lost()?;
        Ok(place)
    }

    /// The directories of the jobs.
    pub fn directories(&self) -> &JobDirectories {
        &self.directories
    }

    fn recover_lost(&self) -> Result<()> {
        for LostJob { id, not_removed } in recover::recover_lost_jobs(&self.directories)? {
            (self.notice)(&format!(
                "job `{id}` is lost: its supervisor was killed, and all of its tasks with it"
            ));
            for line in not_removed {
                (self.notice)(&format!("job `{id}`: {line}"));
            }
        }
        Ok(())
    }

    /// The record of a job whose supervisor has ended; none if the supervisor never wrote one.
    ///
    /// # Errors
    ///
    /// The record cannot be read.
    pub fn final_record(&self, directory: &Directory) -> Result<Option<Record>> {
        match Record::read(directory)? {
            Some(record) if record.state.is_final() => Ok(Some(record)),
            _ => {
                self.recover_lost()?;
                Record::read(directory)
            }
        }
    }

    /// Every job with its record, by name and run. A notice names a record that cannot be read, which is left out.
    ///
    /// # Errors
    ///
    /// The directories of the jobs cannot be read.
    pub fn records(&self) -> Result<Vec<(Directory, Record)>> {
        let directories = self.directories.list()?.into_iter().map(|id| self.directories.job(&id));
        Ok(directories
            .filter_map(|directory| match Record::read(&directory) {
                Ok(record) => {
                    let record = record?;
                    if record.is_damaged {
                        (self.notice)(&format!(
                            "the record of job `{0}` is damaged; its supervisor writes it anew, `jobc stop {0}` stops the job",
                            directory.id
                        ));
                    }
                    Some((directory, record))
                }
                Err(error) => {
                    (self.notice)(&error.to_string());
                    None
                }
            })
            .collect())
    }

    /// The sweep that a word names: an ID, or a name, which means its newest run.
    ///
    /// # Errors
    ///
    /// Its file cannot be read.
    pub fn sweep(&self, word: &str) -> Result<Option<Sweep>> {
        match word.parse::<JobId>() {
            Ok(id) => Sweep::read(&self.directories, &id),
            Err(_) => Sweep::newest(&self.directories, word),
        }
    }

    /// Waits until a job has ended; returns its record.
    ///
    /// # Errors
    ///
    /// The record cannot be read.
    pub fn wait_for_end(&self, directory: &Directory) -> Result<Record> {
        loop {
            let record = Record::require(directory)?;
            if record.state.is_final() {
                return Ok(record);
            }
            let supervisor = record.supervisor.map(Process::open).transpose()?.flatten();
            if let Some(pidfd) = supervisor {
                // After an interruption, check again.
                let _ = readable::wait(&[pidfd.as_fd()], None);
            } else {
                // It is just starting, or its record is about to be written, or it was killed.
                std::thread::sleep(Duration::from_millis(20));
                self.recover_lost()?;
            }
        }
    }

    /// Whether a job has ended, or was removed. One whose supervisor was killed is recovered.
    fn has_ended(&self, directory: &Directory) -> Result<bool> {
        let Some(record) = Record::read(directory)? else { return Ok(true) };
        if !record.state.is_final() && record.supervisor.is_some_and(|supervisor| !supervisor.is_alive()) {
            // Its last record may not be written yet.
            self.recover_lost()?;
        }
        Ok(record.state.is_final())
    }

    /// Kills the supervisor of a job: all processes of the job die with it, and the rest is cleaned up like any lost job.
    ///
    /// # Errors
    ///
    /// It cannot be killed, or still exists after that.
    pub fn kill_supervisor(&self, directory: &Directory) -> Result<Record> {
        if let Some(process) = Record::require(directory)?.supervisor
            && let Some(pidfd) = process.open()?
        {
            Signal::KILL.send(&pidfd)?;
            if !process.wait(KILL_TIMEOUT_MS)? {
                let message = format!("the supervisor of job `{}` was killed and still exists", directory.id);
                return Err(
                    Error::new(Kind::System, message).help("it is blocked in the kernel; try again later")
                );
            }
        }
        self.wait_for_end(directory)
    }

    /// Kills a job, through its supervisor or with it.
    fn end(&self, directory: &Directory) -> Result<()> {
        match send(directory, &Request::Kill { signal: Signal::KILL.number(), tasks: Vec::new() }) {
            Ok(()) => self.wait_for_end(directory).map(drop),
            Err(_) => self.kill_supervisor(directory).map(drop),
        }
    }
}

/// Sends a request to a job's supervisor.
///
/// # Errors
///
/// The job has ended, with its end as the advice; or the supervisor refuses or does not respond.
pub fn send(directory: &Directory, request: &Request) -> Result<()> {
    if let Some(mut connection) = Connection::open(directory)? {
        return connection.request(directory, request);
    }
    let record = Record::require(directory)?;
    if !record.state.is_final() {
        let message = format!("the supervisor of job `{}` does not respond", directory.id);
        return Err(Error::new(Kind::State, message)
            .help(format!("it may be starting; `jobc kill --force {}` kills it", directory.id)));
    }
    let message = format!("job `{}` {}", directory.id, record.state.clause());
    let error = Error::new(Kind::State, message);
    Err(match &record.end {
        Some(end) => error.help(end.explanation.clone()),
        None => error,
    })
}

/// A job as every place lists it. One whose record is not there yet, or cannot be read, can still be removed.
fn summary_of(directory: &Directory) -> JobSummary {
    Record::require(directory).map_or_else(
        |error| {
            let state = if directory.is_supervised() { JobState::Preparing } else { JobState::Lost };
            JobSummary {
                message: Some(error.to_string()),
                ..JobSummary::new(directory.id.to_string(), &directory.id.name, state)
            }
        },
        |record| summary(&record),
    )
}

impl Place for LocalPlace {
    fn list(&self) -> Result<Vec<JobSummary>> {
        let mut records = self.records()?;
        records.sort_by_key(|(_, record)| std::cmp::Reverse(record.submitted));
        Ok(records.iter().map(|(_, record)| summary(record)).collect())
    }

    fn find(&self, name: &str) -> Result<JobSummary> {
        Ok(summary_of(&self.directories.find(name)?))
    }

    fn members(&self, name: &str) -> Result<Members> {
        let sweep = self.sweep(name)?;
        let directory = match (self.directories.find(name), &sweep) {
            (Err(error), None) => return Err(error),
            (Err(_), Some(_)) => None,
            // A job file that got a matrix, or lost it.
            (Ok(directory), Some(sweep)) if directory.id.run <= sweep.id.run => None,
            (Ok(directory), _) => Some(directory),
        };
        if let Some(directory) = directory {
            return Ok(Members::Job(Box::new(summary_of(&directory))));
        }
        let combinations = sweep.iter().flat_map(|sweep| &sweep.combinations);
        let directories = combinations.map(|combination| self.directories.job(&combination.job));
        let known = directories.filter(|directory| directory.record.is_dir());
        Ok(Members::Sweep {
            name: sweep.as_ref().map(|sweep| sweep.id.to_string()).unwrap_or_default(),
            jobs: known.map(|directory| summary_of(&directory)).collect(),
        })
    }

    fn wait(&self, name: &str, progress: JobProgress<'_>) -> Result<Option<JobSummary>> {
        let directory = self.directories.find(name)?;
        if progress(&summary(&Record::require(&directory)?)).is_break() {
            return Ok(None);
        }
        Ok(Some(summary(&self.wait_for_end(&directory)?)))
    }

    fn changes(&self, name: &str) -> Result<Vec<Change>> {
        let directory = self.directories.find(name)?;
        let path = directory.events_file();
        let events = event::Reader::new(&directory).read().at_path("read", &path)?;
        Ok(changes::of_events(&events))
    }

    fn estimate(&self, name: &str) -> Result<Option<String>> {
        let directory = self.directories.find(name)?;
        if Record::require(&directory)?.state != JobState::Queued {
            return Ok(None);
        }
        let gpus = Inventory::discover(&Host::here());
        let capacity = HostCapacity::of_host(&directory.state)?.with_gpus(gpus);
        let now = Time::now();
        let ledger = Ledger::standard(&self.directories)?;
        let start = estimate::of_job(&ledger, &directory.id, &capacity, now.millis() / 1000)?;
        Ok(start.map(|start| detail::estimate(&start, now)))
    }

    fn stop(&self, name: &str, request: StopRequest<'_>) -> Result<Option<JobSummary>> {
        let directory = self.directories.find(name)?;
        let asks =
            Request::Stop { grace_seconds: request.grace.map(|grace| grace.as_secs()), interrupt: false };
        // A job may end in between.
        if let Err(error) = send(&directory, &asks)
            && !Record::require(&directory)?.state.is_final()
        {
            return Err(error);
        }
        if request.no_wait {
            return Ok(None);
        }
        Ok(Some(summary(&self.wait_for_end(&directory)?)))
    }

    fn kill(&self, name: &str, request: KillRequest<'_>) -> Result<Option<JobSummary>> {
        let directory = self.directories.find(name)?;
        if request.force {
            return Ok(Some(summary(&self.kill_supervisor(&directory)?)));
        }
        let record = Record::require(&directory)?;
        let tasks = if request.tasks.is_empty() { vec![] } else { named_tasks(&record, request.tasks)? };
        send(&directory, &Request::Kill { signal: request.signal.number(), tasks })?;
        let end = request.ends_job().then(|| self.wait_for_end(&directory)).transpose()?;
        Ok(end.as_ref().map(summary))
    }

    fn hold(&self, name: &str, hold: bool) -> Result<()> {
        let request = if hold { Request::Pause {} } else { Request::Resume {} };
        send(&self.directories.find(name)?, &request)
    }

    fn suspend(&self, name: &str) -> Result<()> {
        send(&self.directories.find(name)?, &Request::Suspend {})
    }

    fn delete(&self, name: &str) -> Result<()> {
        let directory = self.directories.find(name)?;
        let sweep = Record::read(&directory).ok().flatten().and_then(|record| record.sweep);
        if directory.is_supervised() {
            match Record::read(&directory) {
                // Its supervisor is about to end.
                Ok(Some(Record { state, supervisor: Some(supervisor), .. })) if state.is_final() => {
                    supervisor.wait(KILL_TIMEOUT_MS)?;
                }
                _ => self.end(&directory)?,
            }
        }
        directory.remove()?;
        // Of a sweep that nothing is left of, nothing is listed.
        if sweep.is_some() { sweep::remove_empty(&self.directories) } else { Ok(()) }
    }

    fn delete_sweep(&self, name: &str) -> Result<()> {
        match name.parse() {
            Ok(id) => Sweep::remove(&self.directories, &id),
            Err(_) => Ok(()),
        }
    }

    fn inspect(&self, name: &str) -> Result<JobDetail> {
        let directory = self.directories.find(name)?;
        let record = Record::require(&directory)?;
        detail::with_needs(&directory, record)
    }

    fn more(&self, name: &str) -> Result<Map<String, Value>> {
        let directory = self.directories.find(name)?;
        let record = Record::require(&directory)?;
        Ok(detail::more(&directory, record))
    }

    fn events(&self, name: &str) -> Result<Vec<Event>> {
        let mut events = vec![];
        let directory = self.directories.find(name)?;
        events::read(&directory, None, &mut |event| {
            events.push(event.clone());
            ControlFlow::Continue(())
        })?;
        Ok(events)
    }

    fn follow_events(&self, name: &str, output: EventOutput<'_>) -> Result<()> {
        let directory = self.directories.find(name)?;
        events::read(&directory, Some(&|| self.has_ended(&directory)), output)
    }

    fn logs(&self, name: &str, request: &LogRequest, output: LogOutput<'_>) -> Result<()> {
        let directory = self.directories.find(name)?;
        logs::show(&directory, request, &|| self.has_ended(&directory), output)
    }

    fn exec(&self, name: &str, request: &ExecRequest, streams: ExecStreams<'_>) -> Result<u8> {
        let directory = self.directories.find(name)?;
        exec::exec(&directory, &Record::require(&directory)?, request, streams)
    }

    fn port_forward(&self, name: &str, _: ForwardRequest<'_>) -> Result<()> {
        self.directories.find(name)?;
        Err(Error::new(Kind::Unsupported, "the ports of a job on this host are reached at its addresses")
            .help(format!("`jobc ps {name}` shows them; `publish` in the job file makes them available on a port of the host")))
    }

    fn copy(&self, name: &str, _: &CopyRequest) -> Result<Copied> {
        self.directories.find(name)?;
        Err(Error::new(Kind::Unsupported, "the files of a job on this host lie on this host")
            .help(format!("outputs are where the job file says; `jobc exec {name} -- tar -c PATH` packs other files of a task")))
    }

    fn usage(&self, name: &str) -> Result<Vec<TaskUsage>> {
        let directory = self.directories.find(name)?;
        self.has_ended(&directory)?;
        let record = Record::require(&directory)?;
        let mut live = lock(&self.live);
        let samples = live
            .entry(directory.id.to_string())
            .or_insert_with(|| LiveUsage::new(&directory))
            .sample(&record);
        Ok(measured(&record, samples))
    }

    fn usage_interval(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn capacity(&self) -> Result<Vec<Capacity>> {
        Ok(vec![])
    }
}
