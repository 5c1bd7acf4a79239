//! A container's life: created, running, stopped, deleted.
//!
//! [`create`] creates one from a bundle; [`wait`] waits for its end; the functions here work on an existing one. A
//! container's directory is removed last, so that everything that a killed command leaves behind can be found.

pub mod create;
pub mod groups;
mod stages;
pub mod start_fifo;
pub mod update;
pub mod wait;

use std::path::Path;

use oci_spec::runtime::Spec;

use crate::cgroup::{Cgroup, UnenforcedLimit};
use crate::config::Config;
use crate::hooks::Stage;
use crate::listener::{self, Agent};
use crate::oci_state::Status;
use crate::state::store::{Entry, Store};
use crate::state::{Id, Record};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::signals::Signal;

/// How long a killed process may take to be gone, in milliseconds. One that waits for a device takes longer.
const KILL_TIMEOUT_MS: u32 = 10_000;

/// An existing container, locked: no other process changes it meanwhile.
#[derive(Debug)]
pub struct Container {
    entry: Entry,
    /// Its record.
    pub record: Record,
    /// Warnings from its creation, one per line.
    pub warnings: Vec<String>,
    /// The limits that nothing enforces, where this made it.
    pub unenforced: Vec<UnenforcedLimit>,
    /// The scope that was made around this process for it: its unit's name.
    pub scope: Option<String>,
    /// Whether this process, as the parent, has seen its first process's end: then its number may be another's already.
    reaped: bool,
}

/// The status of a container: from its process, its cgroup and the fifo that it waits at.
pub fn status(directory: &Path, record: &Record) -> Status {
    let Some(process) = record.process else { return Status::Creating };
    match () {
        () if !process.is_alive() => Status::Stopped,
        () if start_fifo::is_waiting(directory) => Status::Created,
        () if cgroup(record).is_frozen().unwrap_or(false) => Status::Paused,
        () => Status::Running,
    }
}

/// config.json as it was when the container was made, with the limits that it has now.
pub fn config(directory: &Path) -> Result<Spec> {
    let path = directory.join("config.json");
    let text = std::fs::read(&path).map_err(|error| {
        let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
        Error::system(format!("read `{}`", path.display()), errno)
    })?;
    Ok(Config::read(&text)?.spec)
}

/// The record of a container, with its first process if there is one.
///
/// Its program may run before the command that creates it has recorded the process; until then that command holds the
/// lock.
pub(crate) fn read_record(store: &Store, id: &Id) -> Result<Record> {
    let record = store.read(id)?;
    if record.process.is_some() {
        return Ok(record);
    }
    store.open(id)?.read()?.ok_or_else(|| incomplete(id))
}

/// Sends a signal to a container's first process, or to all of its processes.
pub fn kill(store: &Store, id: &Id, signal: Signal, all: bool) -> Result<()> {
    let record = read_record(store, id)?;
    // Without its own pid namespace, the other processes would outlive the first.
    if all || signal == Signal::KILL && !record.pid_namespace {
        let cgroup = cgroup(&record);
        if signal == Signal::KILL {
            cgroup.kill()?;
        } else {
            for pid in cgroup.processes()? {
                signal.send_to(pid)?;
            }
        }
        if !cgroup.is_none() {
            return Ok(());
        }
    }
    let sent = match record.process {
        Some(process) => process.open()?.map_or(Ok(false), |pidfd| signal.send(&pidfd))?,
        None => false,
    };
    if sent || all {
        return Ok(());
    }
    Err(Error::new(Kind::State, format!("container not running: `{id}`")))
}

/// The processes of a container, by their PIDs here: those of its cgroup, or only the first if it has no cgroup.
pub fn processes(store: &Store, id: &Id) -> Result<Vec<u32>> {
    let record = read_record(store, id)?;
    let cgroup = cgroup(&record);
    if !cgroup.is_none() {
        return cgroup.processes();
    }
    Ok(record.process.filter(|process| process.is_alive()).map(|process| process.pid).into_iter().collect())
}

/// The cgroups that a record names.
fn cgroup(record: &Record) -> Cgroup {
    Cgroup::open(record.cgroup.clone().unwrap_or_default())
}

/// Removes what remains of a container.
///
/// With `force` a running container is killed first, and a missing one is not an error.
///
/// Returns what went wrong with its last hooks, which keeps nothing from being removed.
pub fn delete(store: &Store, id: &Id, force: bool) -> Result<Vec<Error>> {
    let entry = match store.open(id) {
        Err(error) if force && error.kind == Kind::State && !store.directory(id).exists() => {
            return Ok(vec![]);
        }
        other => other?,
    };
    match entry.read() {
        Ok(Some(record)) => Container::from_record(entry, record).delete(force),
        // The command that created the directory was killed before it had a process. Its cgroups are empty.
        Ok(None) => {
            if let Ok(spec) = config(entry.path()) {
                let _ = groups::remove_unrecorded(id.as_ref(), &spec);
            }
            entry.remove().map(|()| vec![])
        }
        Err(_) if force => entry.remove().map(|()| vec![]),
        Err(error) => Err(error),
    }
}

impl Container {
    /// Finds a container and locks it.
    pub fn open(store: &Store, id: &Id) -> Result<Self> {
        let entry = store.open(id)?;
        let record = entry.read()?.ok_or_else(|| incomplete(id))?;
        Ok(Self::from_record(entry, record))
    }

    /// A container of which only the record is known.
    fn from_record(entry: Entry, record: Record) -> Self {
        Self { entry, record, warnings: Vec::new(), unenforced: Vec::new(), scope: None, reaped: false }
    }

    /// Where it is in its life.
    pub fn status(&self) -> Status {
        if self.reaped { Status::Stopped } else { status(self.entry.path(), &self.record) }
    }

    /// Takes note that this process has waited for the container's first process, which is gone.
    pub fn mark_reaped(&mut self) {
        self.reaped = true;
    }

    /// Starts the program of a container that waits for it.
    ///
    /// # Errors
    ///
    /// Where a poststart hook fails, the container is deleted (runtime.md, "Lifecycle").
    pub fn start(self) -> Result<Self> {
        let status = self.status();
        if status != Status::Created {
            return Err(self.wrong_status("created", status));
        }
        let config = config(self.entry.path())?;
        let arguments = config.process().as_ref().and_then(|process| process.args().as_deref());
        let program = arguments.and_then(|arguments| arguments.first()).map_or("", String::as_str);
        let pid = self.record.process.map_or(0, |process| process.pid);
        let agent = listener::agent_socket(&config)?
            .map(|path| Agent::connect(path, &config, &self.record.state(&config, status)))
            .transpose()?;
        start_fifo::release(self.entry.path(), program, pid, agent.as_ref())?;
        match stages::run(Stage::Poststart, &config, &self.record, (Status::Running, pid), None) {
            Ok(()) => Ok(self),
            Err(error) => {
                // The hook's failure is reported.
                let _ = self.delete(true);
                Err(error)
            }
        }
    }

    /// Freezes every process of it.
    pub fn pause(&mut self) -> Result<()> {
        match self.status() {
            Status::Running => cgroup(&self.record).freeze(),
            status => Err(self.wrong_status("running", status)),
        }
    }

    /// Lets it go on.
    pub fn resume(&mut self) -> Result<()> {
        match self.status() {
            Status::Paused => cgroup(&self.record).thaw(),
            status => Err(self.wrong_status("paused", status)),
        }
    }

    /// Takes the lock again.
    pub fn lock(&self) -> Result<()> {
        self.entry.lock()
    }

    /// Lets others work on it.
    pub fn unlock(&self) {
        self.entry.unlock();
    }

    /// Kills its remaining processes, and removes everything that it left behind; returns the errors of its last hooks.
    pub fn delete(self, force: bool) -> Result<Vec<Error>> {
        let status = self.status();
        if matches!(status, Status::Running | Status::Paused) && !force {
            let error = self.wrong_status("stopped", status);
            return Err(error.help("end it first, or delete it with `--force`"));
        }
        self.kill_and_remove_cgroups()?;
        let failed = if self.record.poststop {
            match config(self.entry.path()) {
                Ok(config) => stages::run_poststop(&config, &self.record),
                Err(error) => vec![error],
            }
        } else {
            vec![]
        };
        if let Some(class) = &self.record.class {
            class.remove()?;
        }
        self.entry.remove()?;
        Ok(failed)
    }

    /// Kills its remaining processes, waits until they have exited, and removes its cgroups.
    fn kill_and_remove_cgroups(&self) -> Result<()> {
        let cgroup = cgroup(&self.record);
        if let Some(process) = self.record.process.filter(|_| !self.reaped)
            && let Some(pidfd) = process.open()?
        {
            Signal::KILL.send(&pidfd)?;
            // With cgroup v1, frozen processes cannot even be killed.
            if cgroup.is_frozen()? {
                cgroup.thaw()?;
            }
            if !process.wait(KILL_TIMEOUT_MS)? {
                let message = format!("process {} was killed but still exists", process.pid);
                return Err(Error::new(Kind::System, message).help(
                    "it is blocked in the kernel, for example on a file system or a device; try again later",
                ));
            }
        }
        // The end of a pid namespace's first process is that of all others in it. Without one they keep running, and
        // without a process in the record it is unknown which processes exist.
        if !self.record.pid_namespace || self.record.process.is_none() {
            cgroup.kill()?;
        }
        let ended = groups::stop_unit(&self.record);
        // Where systemd is gone meanwhile, with its user's last login for one, the groups' files are left to end it by.
        cgroup.remove().map_err(|error| ended.err().unwrap_or(error))
    }

    fn wrong_status(&self, wanted: &str, status: Status) -> Error {
        wrong_status(&self.record.id, wanted, status)
    }
}

/// A container is in another state than a command needs.
///
/// containerd and others look for runc's words in the messages of `kill`, `pause` and `update`.
pub(crate) fn wrong_status(id: &str, wanted: &str, status: Status) -> Error {
    let message = match (wanted, status) {
        ("running", Status::Stopped) => format!("container not running: `{id}` is {status}"),
        _ => format!("container `{id}` is {status}, not {wanted}"),
    };
    Error::new(Kind::State, message)
}

fn incomplete(id: &Id) -> Error {
    Error::new(Kind::State, format!("the creation of container `{id}` was not completed"))
        .help(format!("remove what is left with `jobc oci delete --force {id}`"))
}
