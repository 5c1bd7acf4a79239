//! A container's life: created, running, stopped, deleted.
//!
//! [`make`] makes one from a bundle; [`wait`] stays with it until its end; what stands here is done to one that is
//! there. A container's folder outlives everything else of it, so that whatever a killed command leaves can be found.

mod end;
pub mod hold;
pub mod make;
pub mod wait;

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use oci_spec::runtime::Spec;

use crate::cgroup::Cgroup;
use crate::config::Config;
use crate::error::{Error, Kind, Result};
use crate::hooks::{self, Given, Stage};
use crate::signals::Signal;
use crate::state::process::Process;
use crate::state::store::{Entry, Store};
use crate::state::{Id, Record, Status};

/// How a container is started, beside what its bundle says.
///
/// `prepare` reads all of it ahead: descriptors in here are given to the container's first process as they are.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // each is a switch of the command line
pub struct Options {
    /// The container's name; its control group is `/jobc/<id>` where config.json names none.
    pub id: String,
    /// Go on where a limit cannot be enforced, and record it.
    pub allow_unenforced: bool,
    /// Make no control group at all; then every limit of config.json is one that cannot be enforced.
    pub without_cgroup: bool,
    /// The first process reads one byte here before it executes the program; the end of the file means: end.
    ///
    /// `spawn` does not wait for it.
    pub hold: Option<OwnedFd>,
    /// Where the first process writes why the program could not be executed: the writing end, closed by a successful
    /// exec. Without it `spawn` makes a pipe of its own and waits for the outcome.
    pub report: Option<OwnedFd>,
    /// A connected Unix socket that gets the master of the container's pseudo-terminal (`SCM_RIGHTS`).
    ///
    /// Needed where config.json asks for a terminal; the name sent with it is `/dev/ptmx`.
    pub console: Option<OwnedFd>,
    /// How many descriptors from 3 on stay open in the container.
    pub preserve_fds: u32,
    /// Kill the container when the thread that started it ends (`PR_SET_PDEATHSIG`).
    pub end_with_parent: bool,
    /// Stay in the caller's session keyring (keyrings(7)).
    pub keep_keyring: bool,
}

/// A container that is there, locked: nobody else changes it meanwhile.
#[derive(Debug)]
pub struct Container {
    entry: Entry,
    /// What is kept of it.
    pub record: Record,
}

/// The status of a container: from its process, its control group and the fifo that it waits at.
pub fn status(folder: &Path, record: &Record) -> Status {
    let Some(process) = record.process else { return Status::Creating };
    match () {
        () if !process.is_alive() => Status::Stopped,
        () if hold::is_waiting(folder) => Status::Created,
        () if groups(record).is_frozen().unwrap_or(false) => Status::Paused,
        () => Status::Running,
    }
}

/// The control groups of a container.
pub(crate) fn groups(record: &Record) -> Cgroup {
    Cgroup::open(record.cgroup.clone().unwrap_or_default())
}

/// config.json as it was when the container was made.
pub fn config(folder: &Path) -> Result<Spec> {
    let path = folder.join("config.json");
    let text = std::fs::read(&path).map_err(|error| {
        let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
        Error::machine(format!("read `{}`", path.display()), errno)
    })?;
    Ok(Config::read(&text)?.spec)
}

/// Sends a signal to a container's first process, or to all of its processes.
///
/// A container that shares its pid namespace with others is killed as a whole: its other processes would live on.
pub fn kill(store: &Store, id: &Id, signal: Signal, all: bool) -> Result<()> {
    let record = store.read(id)?;
    let groups = groups(&record);
    if signal == Signal::KILL && (all || !record.pid_namespace) && !groups.is_empty() {
        groups.kill()?;
    } else if all {
        for pid in groups.processes()? {
            if let Some(pidfd) = Process::of(pid).and_then(|process| process.open().transpose()) {
                signal.send(pidfd?)?;
            }
        }
    }
    let sent = match record.process.map(Process::open).transpose()?.flatten() {
        Some(pidfd) if !all || groups.is_empty() => signal.send(pidfd)?,
        Some(_) => true,
        None => false,
    };
    // Its first process may have ended by the group's kill just now.
    if sent || all || signal == Signal::KILL && !groups.is_empty() && !record.pid_namespace {
        return Ok(());
    }
    Err(Error::new(Kind::State, format!("container `{id}` is not running")))
}

/// The processes of a container, by their numbers here.
pub fn processes(store: &Store, id: &Id) -> Result<Vec<u32>> {
    let record = store.read(id)?;
    let groups = groups(&record);
    if !groups.is_empty() {
        return groups.processes();
    }
    Ok(record.process.filter(|process| process.is_alive()).map(|process| process.pid).into_iter().collect())
}

/// Removes a container, whatever is left of it; returns what of that went wrong and keeps nothing from being removed.
///
/// With `force` a container that runs is killed first, and one that is not there is no error.
pub fn delete(store: &Store, id: &Id, force: bool) -> Result<Vec<Error>> {
    let entry = match store.open(id) {
        Err(error) if force && error.kind == Kind::State && !store.folder(id).exists() => {
            return Ok(Vec::new());
        }
        other => other?,
    };
    match entry.read() {
        Ok(Some(record)) => Container { entry, record }.delete(force),
        // The command that made the folder was killed before it had made anything else.
        Ok(None) => entry.remove().map(|()| Vec::new()),
        Err(_) if force => entry.remove().map(|()| Vec::new()),
        Err(error) => Err(error),
    }
}

impl Container {
    /// Finds a container and locks it.
    pub fn open(store: &Store, id: &Id) -> Result<Self> {
        let entry = store.open(id)?;
        let record = entry.read()?.ok_or_else(|| incomplete(id))?;
        Ok(Self { entry, record })
    }

    /// Where it is in its life.
    pub fn status(&self) -> Status {
        status(self.entry.path(), &self.record)
    }

    /// Starts the program of a container that waits for it.
    pub fn start(&mut self) -> Result<()> {
        let status = self.status();
        let (Status::Created, Some(process)) = (status, self.record.process) else {
            return Err(self.is_not("created", status));
        };
        let config = config(self.entry.path())?;
        let arguments = config.process().as_ref().and_then(|process| process.args().as_deref());
        let program = arguments.and_then(|arguments| arguments.first()).map_or("", String::as_str);
        hold::release(self.entry.path(), program, process.pid)?;
        self.run_poststart(&config, None)
    }

    /// Runs the hooks that belong after the program's start. Where one fails, the container ends.
    pub(crate) fn run_poststart(&self, config: &Spec, given_up: Option<BorrowedFd<'_>>) -> Result<()> {
        if config.hooks().as_ref().is_none_or(|hooks| Stage::Poststart.of(hooks).is_empty()) {
            return Ok(());
        }
        let state = self.state(config, Status::Running)?;
        let given = Given { state: &state, bundle: &self.record.bundle, given_up };
        hooks::run(Stage::Poststart, config.hooks().as_ref(), given).inspect_err(|_| {
            // The hook's failure is what is told.
            let _ = self.end();
        })
    }

    /// The state as hooks read it.
    fn state(&self, config: &Spec, status: Status) -> Result<Vec<u8>> {
        serde_json::to_vec(&self.record.state(config, status))
            .map_err(|error| Error::new(Kind::State, error.to_string()))
    }

    /// Freezes every process of it.
    pub fn pause(&self) -> Result<()> {
        match self.status() {
            Status::Running => groups(&self.record).freeze(),
            status => Err(self.is_not("running", status)),
        }
    }

    /// Lets it go on.
    pub fn resume(&self) -> Result<()> {
        match self.status() {
            Status::Paused => groups(&self.record).thaw(),
            status => Err(self.is_not("paused", status)),
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

    fn is_not(&self, wanted: &str, status: Status) -> Error {
        Error::new(Kind::State, format!("container `{}` is {status}, not {wanted}", self.record.id))
    }
}

fn incomplete(id: &Id) -> Error {
    Error::new(Kind::State, format!("the container `{id}` was never made completely"))
        .help(format!("remove what is left with `jobc oci delete --force {id}`"))
}
