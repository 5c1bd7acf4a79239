//! Making a container: from its directory to its first process.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::groups::{self, Decided, Mode};
use super::{Container, hold, stages};
use crate::bundle::Bundle;
use crate::cgroup::Unenforced;
use crate::child::report::Gate;
use crate::hooks::Stage;
use crate::listener::{self, Agent};
use crate::namespaces::Namespace;
use crate::oci_state::Status;
use crate::options::Options;
use crate::prepare::listing::{Line, listing};
use crate::prepare::prepare;
use crate::process::Process;
use crate::root::Root;
use crate::start::Loaded;
use crate::state::store::Store;
use crate::state::{Id, Record, process};
use crate::terminal::socket;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::machine::{self, Machine};
use jobc_sys::signals::Signals;
use jobc_sys::write_atomic::{Durability, write_atomic};

/// Options for a bundle, in addition to its config.json.
#[derive(Debug, Default)]
pub struct Request {
    /// How it is started.
    pub options: Options,
    /// The root; by default that of the bundle.
    pub root: Option<Root>,
    /// A Unix socket that gets the terminal's other side.
    pub console_socket: Option<PathBuf>,
    /// A file that gets the first process's number.
    pub pid_file: Option<PathBuf>,
}

/// Who stays with the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Nobody; it waits to be started by another command.
    Hold,
    /// Nobody; it runs.
    Leave,
    /// We do, until its end, which is also the container's where we are killed.
    Attend,
    /// We do, and let it go ourselves: it waits at [`Options::hold`] until then.
    AttendHeld,
}

impl Then {
    fn attends(self) -> bool {
        matches!(self, Self::Attend | Self::AttendHeld)
    }
}

/// A container's directory, and nothing else of it yet. Dropping it removes the directory.
#[derive(Debug)]
pub struct Begun {
    container: Option<Container>,
}

/// A container with its first process.
#[derive(Debug)]
pub struct Made {
    /// The container, locked.
    pub container: Container,
    /// Its first process, which runs its program or waits to be started.
    pub process: Process,
    /// The controlling side of its terminal, if it has one and it was not sent elsewhere.
    pub terminal: Option<OwnedFd>,
}

impl Made {
    /// Leaves the container to itself.
    pub fn leave(self) {
        self.container.unlock();
        self.process.leave();
    }
}

/// Takes a container's name: makes its directory.
pub fn begin(store: &Store, id: &Id) -> Result<Begun> {
    let entry = store.create(id)?;
    let record = Record {
        version: 1,
        id: id.to_string(),
        bundle: PathBuf::new(),
        created: SystemTime::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_secs()),
        owner: machine::Status::of_this_process()?.uid,
        process: None,
        cgroup: None,
        unit: None,
        unenforced: Vec::new(),
        pid_namespace: false,
        poststop: false,
    };
    Ok(Begun { container: Some(Container::found(entry, record)) })
}

impl Begun {
    /// The container's directory.
    pub fn directory(&self) -> &Path {
        self.container.as_ref().map_or(Path::new(""), |container| container.entry.path())
    }

    /// Lists what would be done to make a container of a bundle and run it, in order.
    pub fn plan(&self, bundle: &Bundle, request: Request) -> Result<Vec<Line>> {
        let Request { mut options, root, console_socket, .. } = request;
        let _receiver = open_terminal(bundle, &mut options, console_socket.as_deref(), Then::Attend)?;
        options.end_with_parent = true;
        if let Some(container) = &self.container {
            options.id.clone_from(&container.record.id);
        }
        let root = match root {
            Some(root) => root,
            None => Root::of(bundle, None, self.directory())?,
        };
        let machine = Machine::look()?;
        let decided = Decided::of(&bundle.config.spec, &options, &machine, Mode::Rehearsed)?;
        let prepared = prepare(bundle, &root, &mut options, &machine, Some(&decided.view()))?;
        Ok(listing(decided.describe(), &prepared, &bundle.config.spec))
    }

    /// Makes the container from a bundle, up to the stage `then`. Nothing is left of it after a failure.
    ///
    /// A signal of `given_up` ends a hook that runs meanwhile, and with it the making.
    pub fn make(
        mut self,
        bundle: &Bundle,
        request: Request,
        then: Then,
        given_up: Option<&Signals>,
    ) -> Result<Made> {
        let container =
            self.container.as_mut().ok_or_else(|| Error::new(Kind::State, "the container is made"))?;
        let (process, terminal) = container.make(bundle, request, then, given_up)?;
        let container =
            self.container.take().ok_or_else(|| Error::new(Kind::State, "the container is made"))?;
        Ok(Made { container, process, terminal })
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if let Some(container) = self.container.take() {
            // The error reports why it was not made; `delete` removes what cannot be removed here.
            let _ = container.delete(true);
        }
    }
}

impl Container {
    fn make(
        &mut self,
        bundle: &Bundle,
        request: Request,
        then: Then,
        given_up: Option<&Signals>,
    ) -> Result<(Process, Option<OwnedFd>)> {
        bundle.config.refuse()?;
        let Request { mut options, root, console_socket, pid_file } = request;
        options.id.clone_from(&self.record.id);
        options.end_with_parent = then.attends();
        let terminal = open_terminal(bundle, &mut options, console_socket.as_deref(), then)?;
        if then == Then::Hold {
            let (start, outcome) = hold::make(self.entry.directory())?;
            options.hold = Some(start);
            options.report = Some(outcome);
        }
        let root = match root {
            Some(root) => root,
            None => Root::of(bundle, None, self.entry.path())?,
        };
        self.record.bundle.clone_from(&bundle.dir);
        self.entry.write_file("config.json", &bundle.text)?;
        let machine = Machine::look()?;
        let spec = &bundle.config.spec;
        let mut decided = Decided::of(spec, &options, &machine, Mode::Really)?;
        self.scope = decided.scope().map(str::to_owned);
        let mut prepared = prepare(bundle, &root, &mut options, &machine, Some(&decided.view()))?;
        match (prepared.notifies(), listener::path(spec)?) {
            // The command that starts it connects to the agent.
            (Some(Loaded::Last), Some(path)) if then == Then::Hold => listener::look(path)?,
            (Some(_), Some(path)) => {
                let state = self.record.state(spec, Status::Creating);
                prepared.agent = Some(Agent::connect(path, spec, &state)?);
            }
            _ => {}
        }
        self.said.clone_from(&prepared.said);
        let (mut cgroup, unenforced) = decided.make(spec, &options, &machine)?;
        self.record.cgroup = Some(cgroup.saved().clone());
        self.keep_unenforced(unenforced);
        self.record.pid_namespace = prepared.namespaces & Namespace::Pid.flag() != 0;
        let hooks = spec.hooks().as_ref();
        self.record.poststop = hooks.is_some_and(|hooks| !Stage::Poststop.of(hooks).is_empty());
        // Written before there is a process: what a killed command leaves in a cgroup must be found.
        self.entry.write(&self.record)?;
        let process = prepared.spawn(groups::entrances(&mut cgroup), &mut |gate, pid| {
            if gate == Gate::ControlGroup {
                let made = decided.make_around(pid, spec, &options, &machine, &mut self.record);
                self.entry.write(&self.record)?;
                self.keep_unenforced(made?);
                return Ok(());
            }
            let now = (Status::Creating, pid);
            stages::run(Stage::Prestart, spec, &self.record, now, given_up)?;
            stages::run(Stage::CreateRuntime, spec, &self.record, now, given_up)
        })?;
        self.record.process = process::Process::of_child(process.pid);
        self.entry.write(&self.record)?;
        let terminal = terminal.map(|socket| socket::receive(&socket)).transpose()?;
        if let Some(path) = &pid_file {
            write_pid(path, process.pid)?;
        }
        if matches!(then, Then::Leave | Then::Attend) {
            stages::run(Stage::Poststart, spec, &self.record, (Status::Running, process.pid), given_up)?;
        }
        Ok((process, terminal))
    }

    fn keep_unenforced(&mut self, unenforced: Vec<Unenforced>) {
        self.record.unenforced = unenforced.iter().map(ToString::to_string).collect();
        self.unenforced = unenforced;
    }
}

/// Sees who gets the other side of the terminal, where the bundle wants one.
fn open_terminal(
    bundle: &Bundle,
    options: &mut Options,
    console_socket: Option<&Path>,
    then: Then,
) -> Result<Option<OwnedFd>> {
    let process = bundle.config.spec.process().as_ref();
    let wanted = process.is_some_and(|process| process.terminal().unwrap_or(false));
    if then == Then::AttendHeld && options.console.is_some() {
        return Ok(None);
    }
    socket::for_terminal(wanted, console_socket, then.attends(), options)
}

/// Writes a process's number to a file, which appears with its content: who waits for it reads no empty one.
pub(crate) fn write_pid(path: &Path, pid: u32) -> Result<()> {
    write_atomic(path, pid.to_string().as_bytes(), 0o666, Durability::Rename).map_err(|error| {
        let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
        Error::machine(format!("write the file `{}`", path.display()), errno)
    })
}
