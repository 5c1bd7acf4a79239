//! Making a container: from its directory to its first process.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::groups::{self, CgroupSetup, Mode};
use super::{Container, stages, start_fifo};
use crate::bundle::Bundle;
use crate::cgroup::UnenforcedLimit;
use crate::child::report::Gate;
use crate::classes::{self, ClassRecord};
use crate::hooks::Stage;
use crate::listener::{self, Agent};
use crate::namespaces::Namespace;
use crate::oci_state::Status;
use crate::options::Options;
use crate::prepare::listing::{Line, listing};
use crate::prepare::prepare;
use crate::process::Process;
use crate::root::Root;
use crate::state::store::Store;
use crate::state::{Id, Record};
use crate::terminal::socket;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::host::{self, Host};
use jobc_sys::signals::Signals;
use jobc_sys::write_atomic::{Durability, write_atomic};

/// Options for a bundle, in addition to its config.json.
#[derive(Debug, Default)]
pub struct CreateRequest {
    /// How it is started.
    pub options: Options,
    /// The root; by default that of the bundle.
    pub root: Option<Root>,
    /// A Unix socket that gets the terminal's other side.
    pub console_socket: Option<PathBuf>,
    /// A file that gets the first process's number.
    pub pid_file: Option<PathBuf>,
}

/// The process that stays with the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartMode {
    /// No one: another command starts it.
    Hold,
    /// No one: it runs.
    Detach,
    /// We do, until its end, which is also the container's where we are killed.
    Attach,
    /// We do, and let it go ourselves: it waits at [`Options::hold`] until then.
    AttachHeld,
}

impl StartMode {
    fn is_attached(self) -> bool {
        matches!(self, Self::Attach | Self::AttachHeld)
    }
}

/// A container's directory, and nothing else of it yet. Dropping it removes the directory.
#[derive(Debug)]
pub struct PendingContainer {
    container: Option<Container>,
}

/// A container with its first process.
#[derive(Debug)]
pub struct CreatedContainer {
    /// The container, locked.
    pub container: Container,
    /// Its first process, which runs its program or waits to be started.
    pub process: Process,
    /// The controlling side of its terminal, if it has one and it was not sent elsewhere.
    pub terminal: Option<OwnedFd>,
}

impl CreatedContainer {
    /// Leaves the container to itself.
    pub fn detach(self) {
        self.container.unlock();
        self.process.detach();
    }
}

/// Takes a container's name: makes its directory.
pub fn reserve(store: &Store, id: &Id) -> Result<PendingContainer> {
    let entry = store.create(id)?;
    let record = Record {
        version: 1,
        id: id.to_string(),
        bundle: PathBuf::new(),
        created: SystemTime::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_secs()),
        owner: host::ProcessStatus::of_this_process()?.uid,
        process: None,
        cgroup: None,
        unit: None,
        class: None,
        unenforced: Vec::new(),
        pid_namespace: false,
        removed_by_creator: false,
        poststop: false,
        hooks_inherit_environment: false,
    };
    Ok(PendingContainer { container: Some(Container::from_record(entry, record)) })
}

/// Takes a container's name, also from a container whose creator was killed before it removed it.
pub fn reserve_again(store: &Store, id: &Id) -> Result<PendingContainer> {
    let is_left = || {
        store.read(id).is_ok_and(|record| {
            record.removed_by_creator && super::status(&store.directory(id), &record) == Status::Stopped
        })
    };
    match reserve(store, id) {
        Err(error) if error.kind == Kind::State && is_left() => {
            super::delete(store, id, true)?;
            reserve(store, id)
        }
        result => result,
    }
}

impl PendingContainer {
    /// The container's directory.
    pub fn directory(&self) -> &Path {
        self.container.as_ref().map_or(Path::new(""), |container| container.entry.path())
    }

    /// Lists what would be done to make a container of a bundle and run it, in order.
    pub fn plan(&self, bundle: &Bundle, request: CreateRequest) -> Result<Vec<Line>> {
        bundle.config.refuse()?;
        let CreateRequest { mut options, root, console_socket, .. } = request;
        let _receiver = open_terminal(bundle, &mut options, console_socket.as_deref(), StartMode::Attach)?;
        options.end_with_parent = true;
        if let Some(container) = &self.container {
            options.id.clone_from(&container.record.id);
        }
        let root = match root {
            Some(root) => root,
            None => Root::of(bundle, None, self.directory())?,
        };
        let machine = Host::read()?;
        let decided = CgroupSetup::of(&bundle.config.spec, &options, &machine, Mode::DryRun)?;
        let prepared = prepare(bundle, &root, &mut options, &machine, Some(&decided.view()))?;
        Ok(listing(decided.describe(), &prepared, &bundle.config.spec))
    }

    /// Creates the container from a bundle, up to the stage `then`. After a failure nothing of it remains.
    ///
    /// A signal of `given_up` ends a hook that runs meanwhile, and with it the making.
    pub fn create(
        mut self,
        bundle: &Bundle,
        request: CreateRequest,
        then: StartMode,
        given_up: Option<&Signals>,
    ) -> Result<CreatedContainer> {
        let container =
            self.container.as_mut().ok_or_else(|| Error::new(Kind::State, "the container is made"))?;
        let (process, terminal) = container.create(bundle, request, then, given_up)?;
        let container =
            self.container.take().ok_or_else(|| Error::new(Kind::State, "the container is made"))?;
        Ok(CreatedContainer { container, process, terminal })
    }
}

impl Drop for PendingContainer {
    fn drop(&mut self) {
        if let Some(container) = self.container.take() {
            // The error reports why it was not made; `delete` removes what cannot be removed here.
            let _ = container.delete(true);
        }
    }
}

impl Container {
    fn create(
        &mut self,
        bundle: &Bundle,
        request: CreateRequest,
        then: StartMode,
        given_up: Option<&Signals>,
    ) -> Result<(Process, Option<OwnedFd>)> {
        bundle.config.refuse()?;
        let CreateRequest { mut options, root, console_socket, pid_file } = request;
        options.id.clone_from(&self.record.id);
        options.end_with_parent = then.is_attached();
        let terminal = open_terminal(bundle, &mut options, console_socket.as_deref(), then)?;
        if then == StartMode::Hold {
            let (start, outcome) = start_fifo::create(self.entry.directory())?;
            options.hold = Some(start);
            options.report = Some(outcome);
        }
        let root = match root {
            Some(root) => root,
            None => Root::of(bundle, None, self.entry.path())?,
        };
        self.record.bundle.clone_from(&bundle.dir);
        self.write_config(bundle)?;
        let machine = Host::read()?;
        let spec = &bundle.config.spec;
        let mut decided = CgroupSetup::of(spec, &options, &machine, Mode::Apply)?;
        self.scope = decided.scope().map(str::to_owned);
        let mut prepared = prepare(bundle, &root, &mut options, &machine, Some(&decided.view()))?;
        if prepared.notifies()
            && let Some(path) = listener::agent_socket(spec)?
        {
            if then == StartMode::Hold {
                // The command that starts it connects to the agent.
                listener::check_socket(path)?;
            } else {
                let state = self.record.state(spec, Status::Creating);
                prepared.agent = Some(Agent::connect(path, spec, &state)?);
            }
        }
        self.warnings.clone_from(&prepared.warnings);
        let (mut cgroup, unenforced) = decided.create(spec, &options, &machine)?;
        self.record.cgroup = Some(cgroup.record().clone());
        self.record_unenforced(unenforced);
        self.record.pid_namespace = prepared.namespaces & Namespace::Pid.flag() != 0;
        let hooks = spec.hooks().as_ref();
        self.record.removed_by_creator = options.removed_by_creator;
        self.record.hooks_inherit_environment = options.hooks_inherit_environment;
        self.record.poststop = hooks.is_some_and(|hooks| !Stage::Poststop.hooks_of(hooks).is_empty());
        if let Some(linux) = spec.linux().as_ref().filter(|linux| classes::are_wanted(linux)) {
            self.record.class =
                linux.intel_rdt().as_ref().map(|it| classes::create(it, &self.record.id)).transpose()?;
        }
        prepared.classes = self.record.class.as_ref().map_or(Ok(vec![]), ClassRecord::tasks)?;
        // Written before there is a process, so that leftovers of a killed command in a cgroup can be found.
        self.entry.write(&self.record)?;
        let mut process = prepared.spawn(groups::take_entry_fds(&mut cgroup), &mut |gate, pid| {
            if gate == Gate::Cgroup {
                let made = decided.create_around_process(pid, spec, &options, &machine, &mut self.record);
                self.entry.write(&self.record)?;
                self.record_unenforced(made?);
                return Ok(());
            }
            // Authors of prestart hooks expect the state from the time when `start` ran them.
            stages::run(Stage::Prestart, spec, &self.record, (Status::Created, pid), given_up)?;
            stages::run(Stage::CreateRuntime, spec, &self.record, (Status::Creating, pid), given_up)
        })?;
        self.record.process = process.identify();
        self.entry.write(&self.record)?;
        let terminal = terminal.map(|socket| socket::receive(&socket)).transpose()?;
        if let Some(path) = &pid_file {
            write_pid(path, process.pid)?;
        }
        if matches!(then, StartMode::Detach | StartMode::Attach) {
            stages::run(Stage::Poststart, spec, &self.record, (Status::Running, process.pid), given_up)?;
        }
        Ok((process, terminal))
    }

    /// Stores the configuration; that of a bundle in the container's own directory is already there.
    fn write_config(&self, bundle: &Bundle) -> Result<()> {
        let written = bundle.dir.strip_prefix(self.entry.path()).map(|below| below.join("config.json"));
        // Some file systems have no links.
        match written.map(|path| self.entry.link_file(&path, "config.json")) {
            Ok(Ok(())) => Ok(()),
            _ => self.entry.write_file("config.json", &bundle.text),
        }
    }

    fn record_unenforced(&mut self, unenforced: Vec<UnenforcedLimit>) {
        self.record.unenforced = unenforced.iter().map(ToString::to_string).collect();
        self.unenforced = unenforced;
    }
}

/// Sees who gets the other side of the terminal, where the bundle wants one.
fn open_terminal(
    bundle: &Bundle,
    options: &mut Options,
    console_socket: Option<&Path>,
    then: StartMode,
) -> Result<Option<OwnedFd>> {
    let process = bundle.config.spec.process().as_ref();
    let wanted = process.is_some_and(|process| process.terminal().unwrap_or(false));
    if then == StartMode::AttachHeld && options.console.is_some() {
        return Ok(None);
    }
    socket::connect_terminal(wanted, console_socket, then.is_attached(), options)
}

/// Writes a PID to a file, which appears with its content: a process that waits for it never reads an empty file.
pub(crate) fn write_pid(path: &Path, pid: u32) -> Result<()> {
    write_atomic(path, pid.to_string().as_bytes(), 0o666, Durability::Rename).map_err(|error| {
        let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
        Error::system(format!("write the file `{}`", path.display()), errno)
    })
}
