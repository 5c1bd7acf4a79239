//! The steps of an additional process in a running container.
//!
//! It enters every namespace of the container's first process that is not this one's already, and gets the rights that
//! its own `process` names: ids, capabilities, limits, and the container's filter.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;

use oci_spec::runtime::{Process, Spec};
use rustix::fs::{Mode, OFlags};

use super::identity::Identity;
use super::program;
use super::rights::{self, Rights};
use super::steps::Steps;
use crate::child::report::Gate;
use crate::labels::{Field, Label};
use crate::namespaces::{JoinNamespace, Namespace};
use crate::operation::Operation;
use crate::options::Options;
use crate::rootfs::EnterRoot;
use crate::start::PreparedProcess;
use crate::terminal::console::Console;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::host::Host;
use jobc_sys::id_map::IdMaps;

/// Lists the steps from this process to a further one in the container whose first process is `pid`.
///
/// `spec` is the container's; `process` what is to run.
///
/// # Errors
///
/// [`Kind::State`] where the container's first process has gone.
pub fn prepare_exec(
    spec: &Spec,
    process: &Process,
    pid: u32,
    options: &mut Options,
    machine: &Host,
) -> Result<PreparedProcess> {
    let label = Label::of(process, Field::is_module_enabled)?;
    let mut steps = Steps::default();
    steps.push(Operation::SetParentDeathSignal(true));
    steps.push(Operation::SetUmask(0));
    if options.systemd_cgroup {
        steps.push_at("/linux/cgroupsPath", Operation::Wait(Gate::Cgroup));
    }
    if let Some(score) = process.oom_score_adj() {
        // Inside, /proc is the container's. This process sets its own score, and the new one inherits it.
        std::fs::write("/proc/self/oom_score_adj", score.to_string()).map_err(|error| {
            let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
            Error::system(format!("set the out-of-memory score to {score}"), errno).at("/process/oomScoreAdj")
        })?;
    }
    let mut joins = Vec::new();
    let mut descriptors = Vec::new();
    for kind in Namespace::ALL {
        if let Some(fd) = other_namespace(kind, pid)? {
            joins.push(JoinNamespace { kind, fd: fd.as_raw_fd(), path: format!("of process {pid}") });
            descriptors.push(fd);
        }
    }
    let maps = if joins.iter().any(|join| join.kind == Namespace::User) {
        spec.linux().as_ref().map(IdMaps::read).transpose()?.flatten()
    } else {
        None
    };
    if let Some(maps) = &maps {
        let (uid, gid) = maps.first();
        steps.push_at("/linux/uidMappings", Operation::SetIds { uid, gid });
    }
    if !options.without_cgroup {
        steps.push_at("/linux/cgroupsPath", Operation::JoinCgroups(Vec::new()));
    }
    // By the host's /proc; who becomes root of a user namespace has only rights over the container's.
    let (place, attributes) = label.as_ref().map(Label::attributes).unzip();
    let attributes = place.zip(attributes);
    let (outside, within) = if maps.is_none() { (attributes, None) } else { (None, attributes) };
    if let Some((place, attributes)) = outside {
        steps.push_at(place, Operation::OpenAttributes(attributes));
    }
    let (before, inside): (Vec<JoinNamespace>, Vec<JoinNamespace>) = joins
        .into_iter()
        .partition(|join| matches!(join.kind, Namespace::User | Namespace::Pid | Namespace::Time));
    for join in inside {
        steps.push_at("/linux/namespaces", Operation::JoinNamespace(join));
    }
    if let Some((place, attributes)) = within {
        steps.push_at(place, Operation::OpenAttributes(attributes));
    }
    steps.push(Operation::NewSession);
    if let Some(streams) = &options.streams {
        let streams = streams.each_ref().map(std::os::fd::AsRawFd::as_raw_fd);
        steps.push(Operation::SetStreams { streams, owner: process.user().uid() });
    }
    if process.terminal().unwrap_or(false) {
        steps.push_at("/process/terminal", Operation::EnterRoot(EnterRoot::Current));
        steps.push_at("/process/terminal", Operation::OpenConsole(console(process, options)?));
    }
    let identity = Identity {
        new_namespaces: 0,
        own_namespaces: vec![],
        joined_before: vec![],
        id_maps: None,
        groups_denied: maps.as_ref().is_some_and(IdMaps::groups_denied),
        in_user_namespace: maps.is_some(),
        own_user_namespace: before.iter().any(|join| join.kind == Namespace::User),
        descriptors: vec![],
    };
    let Rights { filter, .. } = rights::list(&mut steps, spec, process, &identity, machine)?;
    let program = program::prepare_program(
        process,
        filter,
        label,
        &[PathBuf::from(format!("/proc/{pid}/root"))],
        std::mem::take(&mut options.secret_environment),
    )?;
    steps.push(Operation::SetParentDeathSignal(options.end_with_parent));
    let first = 3 + i32::try_from(options.preserve_fds).unwrap_or(i32::MAX - 3);
    steps.push(Operation::CloseFrom { first, except: Vec::new() });
    steps.push(Operation::ResetSignals(machine.ignored_signals));
    descriptors.extend(options.console.take());
    descriptors.extend(options.streams.take().into_iter().flatten());
    Ok(PreparedProcess {
        steps: steps.list,
        namespaces: 0,
        join_before_clone: before,
        id_maps: None,
        hooks: false,
        // Before it is among them: no process of the container may look into this one (CVE-2016-9962).
        set_not_dumpable: true,
        in_user_namespace: maps.is_some(),
        agent: None,
        program,
        descriptors,
        report: options.report.take(),
        warnings: steps.warnings,
    })
}

/// The namespace of a process, where it is another than this process's.
fn other_namespace(kind: Namespace, pid: u32) -> Result<Option<OwnedFd>> {
    let open = |process: &str| {
        let path = PathBuf::from(format!("/proc/{process}/ns/{}", kind.file()));
        rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
    };
    let ours = match open("self") {
        Ok(ours) => ours,
        // A kernel that has no namespaces of this kind.
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(Error::system(format!("open this {kind} namespace"), errno)),
    };
    let theirs = open(&pid.to_string()).map_err(|errno| {
        let error = Error::system(format!("enter the container's {kind} namespace"), errno);
        if errno == rustix::io::Errno::NOENT { Error { kind: Kind::State, ..error } } else { error }
    })?;
    let inode = |fd: &OwnedFd| rustix::fs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino));
    Ok(if inode(&theirs) == inode(&ours) { None } else { Some(theirs) })
}

fn console(process: &Process, options: &Options) -> Result<Console> {
    let socket = options.console.as_ref().ok_or_else(|| {
        Error::new(Kind::Config, "`terminal` is true, but no console socket is given")
            .at("/process/terminal")
            .help("give `--console-socket`, or set `terminal` to false")
    })?;
    let size = |value: u64| u16::try_from(value).unwrap_or(u16::MAX);
    Ok(Console {
        socket: socket.as_raw_fd(),
        size: options
            .window_size
            .or(process.console_size().as_ref().map(|window| (size(window.height()), size(window.width())))),
        uid: process.user().uid(),
        console: None,
    })
}
