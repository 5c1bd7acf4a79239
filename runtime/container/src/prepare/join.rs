//! The steps of an additional process in a running container.
//!
//! It enters every namespace of the container's first process that differs from this process's, and gets the rights of
//! its own `process`: ids, capabilities, limits, and the container's filter.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;

use oci_spec::runtime::{LinuxSchedulerFlag, LinuxSchedulerPolicy, Process, Spec};
use rustix::fs::{Mode, OFlags};

use super::identity::Identity;
use super::program;
use super::rights::{self, Rights};
use super::steps::Steps;
use crate::child::report::Gate;
use crate::classes;
use crate::config::scheduling;
use crate::labels::{Field, Label};
use crate::namespaces::{JoinNamespace, Namespace};
use crate::operation::Operation;
use crate::options::Options;
use crate::rootfs::EnterRoot;
use crate::start::PreparedProcess;
use crate::terminal::console::Console;
use crate::trampoline::birth::{Birth, ProgramProcess};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::host::Host;
use jobc_sys::id_map::IdMaps;
use jobc_sys::syscall::Kernel as _;

/// Lists the steps to an additional process in the container whose first process is `pid`.
///
/// `spec` is the container's; `process` is the new process.
///
/// # Errors
///
/// [`Kind::State`] if the container's first process has ended.
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
    let [initial, last] =
        process.exec_cpu_affinity().as_ref().map(scheduling::affinity).transpose()?.unwrap_or_default();
    if !initial.is_empty() {
        // So that the new process begins there, and is moved to the container's cgroup from there.
        jobc_sys::syscall::linux::Linux.sched_setaffinity(&initial).map_err(|errno| {
            Error::system("run on the CPUs of `execCPUAffinity`", errno)
                .at("/process/execCPUAffinity/initial")
                .help("name CPUs that the host has")
        })?;
    }
    let mut joins: Vec<JoinNamespace> = Vec::new();
    let mut descriptors = Vec::new();
    for kind in Namespace::ALL {
        if let Some(fd) = other_namespace(kind, pid)? {
            joins.push(JoinNamespace { kind, fd: fd.as_raw_fd(), path: format!("of process {pid}") });
            descriptors.push(fd);
        }
    }
    let in_user_namespace = joins.iter().any(|join| join.kind == Namespace::User);
    let maps =
        if in_user_namespace { spec.linux().as_ref().map(IdMaps::read).transpose()?.flatten() } else { None };
    let is_late = joins.iter().any(|join| join.kind == Namespace::Pid) && may_be_born_late(process);
    let (place, attributes) = label.as_ref().map(Label::attributes).unzip();
    let attributes = place.zip(attributes);
    if is_late {
        // No process in the container sees this process, and the trampoline closes the directory before it creates
        // another.
        if let Some((place, attributes)) = attributes {
            steps.push_at(place, Operation::OpenAttributes(attributes.in_place()));
        }
        for join in joins.extract_if(.., |join| matches!(join.kind, Namespace::User | Namespace::Pid)) {
            steps.push_at("/linux/namespaces", Operation::JoinNamespace(join));
        }
    }
    if let Some(maps) = &maps {
        let (uid, gid) = maps.first();
        steps.push_at("/linux/uidMappings", Operation::SetIds { uid, gid });
    }
    if !options.without_cgroup {
        steps.push_at("/linux/cgroupsPath", Operation::JoinCgroups(Vec::new()));
    }
    if !last.is_empty() {
        steps.push_at("/process/execCPUAffinity/final", Operation::SetAffinity(last));
    }
    if spec.linux().as_ref().is_some_and(classes::are_wanted) {
        steps.push_at("/linux/intelRdt", Operation::JoinClasses(Vec::new()));
    }
    // By the host's /proc; who becomes root of a user namespace has only rights over the container's.
    let attributes = attributes.filter(|_| !is_late);
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
    if !is_late {
        steps.push(Operation::NewSession);
    }
    if let Some(streams) = &options.streams {
        let streams = streams.each_ref().map(std::os::fd::AsRawFd::as_raw_fd);
        steps.push(Operation::SetStreams { streams, owner: process.user().uid() });
    } else if process.user().uid() != 0 && !process.terminal().unwrap_or(false) {
        steps.push_at(
            "/process/user/uid",
            Operation::GiveStreams { owner: process.user().uid(), files: options.give_files },
        );
    }
    if process.terminal().unwrap_or(false) {
        steps.push_at("/process/terminal", Operation::EnterRoot(EnterRoot::Current));
        steps.push_at("/process/terminal", Operation::OpenConsole(console(process, options, !is_late)?));
    }
    let identity = Identity {
        new_namespaces: 0,
        own_namespaces: vec![],
        joined_before: vec![],
        id_maps: None,
        groups_denied: maps.as_ref().is_some_and(IdMaps::groups_denied),
        in_user_namespace: maps.is_some(),
        own_user_namespace: in_user_namespace,
        descriptors: vec![],
    };
    let Rights { filter, .. } = rights::list(&mut steps, spec, process, &identity, machine)?;
    let mut program = program::prepare_program(
        process,
        filter,
        label,
        &[PathBuf::from(format!("/proc/{pid}/root"))],
        std::mem::take(&mut options.secret_environment),
    )?;
    if is_late {
        program.process = ProgramProcess::Last(Birth {
            end_with_parent: options.end_with_parent,
            terminal: process.terminal().unwrap_or(false),
        });
    }
    steps.push(Operation::SetParentDeathSignal(is_late || options.end_with_parent));
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
        network_devices: vec![],
        classes: Vec::new(),
        hooks: false,
        // Before it is visible to them: no process of the container may inspect this one (CVE-2016-9962).
        set_not_dumpable: true,
        in_user_namespace: maps.is_some(),
        agent: None,
        program,
        descriptors,
        report: options.report.take(),
        warnings: steps.warnings,
    })
}

/// Whether the process in the container's pid namespace can be made last, by the trampoline: not where it would not
/// inherit its scheduler (sched(7)).
fn may_be_born_late(process: &Process) -> bool {
    process.scheduler().as_ref().is_none_or(|scheduler| {
        *scheduler.policy() != LinuxSchedulerPolicy::SchedDeadline
            && !scheduler.flags().iter().flatten().any(|flag| *flag == LinuxSchedulerFlag::SchedResetOnFork)
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
        // A kernel without namespaces of this kind.
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

fn console(process: &Process, options: &Options, controlling: bool) -> Result<Console> {
    let socket = options.console.as_ref().ok_or_else(|| {
        Error::new(Kind::Config, "`terminal` is true, but no console socket is given")
            .at("/process/terminal")
            .help("give `--console-socket`, or set `terminal` to false")
    })?;
    let size = |value: u64| u16::try_from(value).unwrap_or(u16::MAX);
    Ok(Console {
        controlling,
        socket: socket.as_raw_fd(),
        size: options
            .window_size
            .or(process.console_size().as_ref().map(|window| (size(window.height()), size(window.width())))),
        uid: process.user().uid(),
        console: None,
    })
}
