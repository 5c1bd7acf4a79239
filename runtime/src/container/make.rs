//! Making a container: from its folder to its first process.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use oci_spec::runtime::{LinuxNamespaceType, Spec};

use super::{Container, Options, hold};
use crate::bundle::Bundle;
use crate::cgroup::{self, Layout, Plan};
use crate::error::{Error, Kind, Result};
use crate::hooks::{self, Given, Stage};
use crate::id_map::IdMaps;
use crate::machine::Machine;
use crate::prepare::{ControlGroups, Prepared, prepare};
use crate::process::Process;
use crate::root::Root;
use crate::signals::Signals;
use crate::start::Groups;
use crate::state::store::Store;
use crate::state::{Id, Record, Status, process};
use crate::terminal::socket;

/// What to make of a bundle, beside what its config.json says.
#[derive(Debug, Default)]
pub struct Request {
    /// How it is started.
    pub options: Options,
    /// The root; what the bundle says unless given.
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
}

/// A container's folder, and nothing else of it yet. Dropping it removes the folder.
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
    /// The other side of its terminal, where it has one and nobody else got it.
    pub terminal: Option<OwnedFd>,
    /// What a person should know of it, a line each: nothing is refused, and something is not as it was written.
    pub said: Vec<String>,
}

impl Made {
    /// Leaves the container to itself.
    pub fn leave(self) {
        self.container.unlock();
        self.process.leave();
    }
}

/// Takes a container's name: makes its folder.
pub fn begin(store: &Store, id: &Id) -> Result<Begun> {
    let entry = store.create(id)?;
    let record = Record {
        version: 1,
        id: id.to_string(),
        bundle: PathBuf::new(),
        created: SystemTime::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_secs()),
        owner: rustix::process::getuid().as_raw(),
        process: None,
        cgroup: None,
        unenforced: Vec::new(),
        pid_namespace: false,
        poststop: false,
    };
    Ok(Begun { container: Some(Container { entry, record }) })
}

impl Begun {
    /// The container's folder.
    pub fn folder(&self) -> &Path {
        self.container.as_ref().map_or(Path::new(""), |container| container.entry.path())
    }

    /// Lists what would be done to make a container of a bundle and run it.
    pub fn plan(&self, bundle: &Bundle, request: Request) -> Result<(Prepared, Plan)> {
        bundle.config.refuse()?;
        let Request { mut options, root, console_socket, .. } = request;
        let _receiver = open_terminal(bundle, &mut options, console_socket.as_deref(), Then::Attend)?;
        options.id = self.container.as_ref().map(|container| container.record.id.clone()).unwrap_or_default();
        options.end_with_parent = true;
        let root = match root {
            Some(root) => root,
            None => Root::of(bundle, None, self.folder())?,
        };
        let layout = layout(&options)?;
        let owner = owner(&bundle.config.spec)?;
        let id = options.id.clone();
        let plan =
            Plan::of(&layout, &group_request(&bundle.config.spec, &id, options.allow_unenforced, owner))?;
        let groups = ControlGroups { layout: &layout, plan: &plan };
        prepare(bundle, &root, &mut options, &Machine::look()?, Some(&groups))
            .map(|prepared| (prepared, plan))
    }

    /// Makes the container from a bundle, as far as `then` says. Nothing is left of it where that fails.
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
        let (process, terminal, said) = container.make(bundle, request, then, given_up)?;
        let container =
            self.container.take().ok_or_else(|| Error::new(Kind::State, "the container is made"))?;
        Ok(Made { container, process, terminal, said })
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if let Some(container) = self.container.take() {
            // Why it was not made is what the user is told; what cannot be removed, `delete` will find.
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
    ) -> Result<(Process, Option<OwnedFd>, Vec<String>)> {
        bundle.config.refuse()?;
        let spec = &bundle.config.spec;
        let Request { mut options, root, console_socket, pid_file } = request;
        let id = self.record.id.clone();
        options.id.clone_from(&id);
        options.end_with_parent = then == Then::Attend;
        let terminal = open_terminal(bundle, &mut options, console_socket.as_deref(), then)?;
        if then == Then::Hold {
            let (start, outcome) = hold::make(self.entry.folder())?;
            options.hold = Some(start);
            options.report = Some(outcome);
        }
        let root = match root {
            Some(root) => root,
            None => Root::of(bundle, None, self.entry.path())?,
        };
        let layout = layout(&options)?;
        let owner = owner(spec)?;
        let wanted = group_request(spec, &id, options.allow_unenforced, owner);
        let plan = Plan::of(&layout, &wanted)?;
        let groups = ControlGroups { layout: &layout, plan: &plan };
        let mut prepared = prepare(bundle, &root, &mut options, &Machine::look()?, Some(&groups))?;

        self.entry.write_file("config.json", &bundle.text)?;
        let (mut cgroup, unenforced) = plan.carry_out(&wanted)?;
        self.record.bundle.clone_from(&bundle.dir);
        self.record.cgroup = Some(cgroup.saved().clone());
        self.record.pid_namespace = has_new(spec, LinuxNamespaceType::Pid);
        self.record.poststop =
            spec.hooks().as_ref().is_some_and(|hooks| !Stage::Poststop.of(hooks).is_empty());
        let mut said = std::mem::take(&mut prepared.said);
        said.extend(
            unenforced.iter().map(|unenforced| format!("nothing enforces config.json: {unenforced}")),
        );
        self.record.unenforced = unenforced;
        self.entry.write(&self.record)?;

        let (born_in, joined) = cgroup.take_entrances();
        let process = prepared.spawn(Groups { born_in, joined }, &mut |pid| {
            self.record.process = process::Process::of_child(pid);
            self.run_early_hooks(bundle, given_up)
        })?;
        self.record.process = process::Process::of_child(process.pid);
        self.entry.write(&self.record)?;
        let terminal = terminal.map(|socket| socket::receive(&socket)).transpose()?;
        if let Some(path) = &pid_file {
            write_pid(path, process.pid)?;
        }
        if then != Then::Hold {
            self.run_poststart(spec, given_up.map(AsFd::as_fd))?;
        }
        Ok((process, terminal, said))
    }

    /// Runs the hooks that belong between the mounts and the entering of the root.
    fn run_early_hooks(&self, bundle: &Bundle, given_up: Option<&Signals>) -> Result<()> {
        let spec = &bundle.config.spec;
        let state = self.state(spec, Status::Creating)?;
        for stage in [Stage::Prestart, Stage::CreateRuntime] {
            let given = Given { state: &state, bundle: &bundle.dir, given_up: given_up.map(AsFd::as_fd) };
            hooks::run(stage, spec.hooks().as_ref(), given)?;
        }
        Ok(())
    }
}

/// The machine's control groups; none where the caller wants none, so that a limit is one that nothing enforces.
fn layout(options: &Options) -> Result<Layout> {
    if options.without_cgroup { Ok(Layout::default()) } else { Layout::detect() }
}

/// What a container wants of its control group.
fn group_request<'a>(
    spec: &'a Spec,
    id: &'a str,
    allow_unenforced: bool,
    owner: Option<(u32, u32)>,
) -> cgroup::Request<'a> {
    let linux = spec.linux().as_ref();
    cgroup::Request {
        id,
        path: linux.and_then(|linux| linux.cgroups_path().as_ref()).and_then(|path| path.to_str()),
        resources: linux.and_then(|linux| linux.resources().as_ref()),
        allow_unenforced,
        owner,
        user_namespace: has_new(spec, LinuxNamespaceType::User),
    }
}

/// Who the container's root is on the machine, where it has a user namespace and may write to its control groups.
fn owner(spec: &Spec) -> Result<Option<(u32, u32)>> {
    let writable = spec.mounts().iter().flatten().any(|mount| {
        let mut options = mount.options().iter().flatten();
        mount.typ().as_deref() == Some("cgroup") && !options.any(|option| option == "ro" || option == "rro")
    });
    if !writable || !has_new(spec, LinuxNamespaceType::User) {
        return Ok(None);
    }
    let maps = spec.linux().as_ref().map(IdMaps::read).transpose()?.flatten();
    Ok(maps.and_then(|maps| Some((maps.users.outside(0)?, maps.groups.outside(0)?))))
}

fn has_new(spec: &Spec, kind: LinuxNamespaceType) -> bool {
    let namespaces = spec.linux().as_ref().and_then(|linux| linux.namespaces().as_ref());
    namespaces.into_iter().flatten().any(|namespace| {
        namespace.typ() == kind && namespace.path().as_ref().is_none_or(|path| path.as_os_str().is_empty())
    })
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
    socket::for_terminal(wanted, console_socket, then == Then::Attend, options)
}

/// Writes a process's number to a file, which appears with its content: who waits for it reads no empty one.
pub(crate) fn write_pid(path: &Path, pid: u32) -> Result<()> {
    let name = path.file_name().unwrap_or_default();
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    let new = path.with_file_name(hidden);
    std::fs::write(&new, pid.to_string()).and_then(|()| std::fs::rename(&new, path)).map_err(|error| {
        let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
        Error::machine(format!("write the file `{}`", path.display()), errno)
    })
}
