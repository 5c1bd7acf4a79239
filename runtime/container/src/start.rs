//! Starts a prepared process: opens the last file descriptors, and creates the process.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::pipe::{PipeFlags, pipe_with};

use crate::child::report::Gate;
use crate::id_mapped;
use crate::labels::Label;
use crate::listener::Agent;
use crate::namespaces::JoinNamespace;
use crate::network_devices::{self, NetworkDevice};
use crate::operation::{Operation, Step};
use crate::process::{self, Launch, Process};
use crate::seccomp::Program as Filter;
use crate::secret::SecretEnvironment;
use crate::trampoline;
use crate::trampoline::birth::ProgramProcess;
use jobc_sys::c_list::CList;
use jobc_sys::error::{Error, Result};
use jobc_sys::id_map::IdMaps;

/// The cgroups that a process begins in.
#[derive(Debug, Default)]
pub struct CgroupFds {
    /// The cgroup v2 group that it is created in.
    pub clone_into: Option<OwnedFd>,
    /// The `tasks` files of cgroup v1 groups that it joins, open for writing.
    pub tasks_files: Vec<OwnedFd>,
}

/// A container that could be started: its steps, and what its parent has to do.
#[derive(Debug)]
pub struct PreparedProcess {
    /// The new process's steps, in order.
    pub steps: Vec<Step>,
    /// The new namespaces that clone3(2) makes, as `CLONE_NEW*` bits.
    pub namespaces: u32,
    /// Namespaces that must be joined before the process is made.
    pub join_before_clone: Vec<JoinNamespace>,
    /// Id maps that newuidmap and newgidmap, or this process, must write for the new one.
    pub id_maps: Option<IdMaps>,
    /// Devices that the parent moves into the new process's network namespace.
    pub network_devices: Vec<NetworkDevice>,
    /// The `tasks` files of the classes of cache and memory bandwidth that it joins, open for writing; set by the caller.
    pub classes: Vec<OwnedFd>,
    /// Whether the parent runs hooks before the root is entered.
    pub hooks: bool,
    /// Whether this process forbids others to look into it before the new one is made, rather than as a step.
    pub set_not_dumpable: bool,
    /// Whether the container is in its own user namespace.
    pub in_user_namespace: bool,
    /// The receiver of its filter's listener, if it has one ([`PreparedProcess::notifies`]); set by the caller.
    pub agent: Option<Agent>,
    /// The program to execute.
    pub program: Program,
    /// File descriptors that steps name.
    pub descriptors: Vec<OwnedFd>,
    /// Where the program's failure goes; by default to the maker of the process.
    pub report: Option<OwnedFd>,
    /// Warnings, one per line: nothing is refused, but something differs from config.json.
    pub warnings: Vec<String>,
}

/// The user's program, before its trampoline is made.
#[derive(Debug)]
pub struct Program {
    /// The paths that are tried, in order.
    pub candidates: Vec<CString>,
    /// The arguments.
    pub arguments: Vec<CString>,
    /// The environment.
    pub environment: Vec<CString>,
    /// The part of the environment that is never shown.
    pub secret_environment: SecretEnvironment,
    /// The filter that the trampoline loads.
    pub filter: Option<Filter>,
    /// The label of a security module; the trampoline sets it.
    pub label: Option<Label>,
    /// The process that becomes the program.
    pub process: ProgramProcess,
}

impl PreparedProcess {
    /// Whether calls of the program are decided by an agent, who gets the listener as the program starts.
    pub fn notifies(&self) -> bool {
        self.program.filter.as_ref().is_some_and(Filter::notifies)
    }

    /// Makes the process and waits until it runs its program, or waits to be started.
    ///
    /// `parent` does what belongs to the parent's side, with the process's id: it has systemd make a cgroup around
    /// a process that waits for that, and runs the hooks once the mounts are made.
    ///
    /// # Errors
    ///
    /// The step that failed, at its place in config.json; nothing of the process is left then.
    pub fn spawn(
        self,
        groups: CgroupFds,
        parent: &mut dyn FnMut(Gate, u32) -> Result<()>,
    ) -> Result<Process> {
        let notifies = self.notifies();
        // The process that starts a held container later gets the program's failure; this process does not wait for it.
        let (failure, failure_writer) = if let Some(report) = self.report {
            (None, report)
        } else {
            let pipe = pipe_with(PipeFlags::CLOEXEC).map_err(|errno| Error::system("make a pipe", errno))?;
            (Some(pipe.0), pipe.1)
        };
        let mut program = self.program;
        program.environment.extend(program.secret_environment.iter().map(CStr::to_owned));
        let label = program.label.as_ref().map(|label| trampoline::Label {
            attributes: label.attributes.as_raw_fd(),
            file: label.file,
            text: label.text.as_bytes(),
        });
        let mut steps = self.steps;
        let hold = steps.iter().find_map(|step| match step.operation {
            Operation::Hold(fd) => Some(fd),
            _ => None,
        });
        let mut descriptors = self.descriptors;
        let (mut reply, mut reply_writer) = (None, None);
        if notifies {
            // The process that releases a held container takes the listener, and confirms it on the same fifo.
            reply = hold;
            if failure.is_some() {
                let pipe =
                    pipe_with(PipeFlags::CLOEXEC).map_err(|errno| Error::system("make a pipe", errno))?;
                (reply, reply_writer) = (Some(pipe.0.as_raw_fd()), Some(pipe.1));
                descriptors.push(pipe.0);
            }
        }
        let image = trampoline::build(
            &program.candidates,
            program.filter.as_ref(),
            label,
            failure_writer.as_raw_fd(),
            reply,
            program.process,
        )?;
        let trees = id_mapped::create_mounts(&mut steps)?;
        let mut needed = vec![image.as_raw_fd(), failure_writer.as_raw_fd()];
        needed.extend(reply);
        for step in &steps {
            match &step.operation {
                Operation::Hold(fd) => needed.push(*fd),
                Operation::OpenAttributes(attributes) => needed.push(attributes.at()),
                Operation::Hook(hook) => needed.extend(
                    [Some(&hook.program.state), hook.program.image.as_ref()]
                        .into_iter()
                        .flatten()
                        .map(AsRawFd::as_raw_fd),
                ),
                _ => {}
            }
        }
        needed.sort_unstable();
        needed.dedup();
        for step in &mut steps {
            match &mut step.operation {
                Operation::JoinCgroups(joined) => {
                    *joined = groups.tasks_files.iter().map(std::os::fd::AsRawFd::as_raw_fd).collect();
                }
                Operation::JoinClasses(joined) => {
                    *joined = self.classes.iter().map(std::os::fd::AsRawFd::as_raw_fd).collect();
                }
                Operation::CloseFrom { except, .. } => except.clone_from(&needed),
                _ => {}
            }
        }
        let waits = |step: &Step| {
            matches!(
                step.operation,
                Operation::Hold(_) | Operation::Wait(Gate::Cgroup | Gate::NetworkDevices)
            )
        };
        let waits = steps.iter().any(waits);
        descriptors.extend(groups.tasks_files);
        descriptors.extend(self.classes);
        descriptors.extend(trees);
        let launch = Launch {
            steps,
            namespaces: self.namespaces,
            join_before_clone: self.join_before_clone,
            set_not_dumpable: self.set_not_dumpable,
            cgroup: groups.clone_into,
            has_parent_work: self.hooks || self.id_maps.is_some() || waits,
            in_user_namespace: self.in_user_namespace,
            agent: self.agent,
            program: process::Program {
                image,
                failure,
                failure_writer: Some(failure_writer),
                reply,
                reply_writer,
                makes_last: program.process.is_last(),
                attributes: program.label.map(|label| label.attributes),
                arguments: CList::new(program.arguments),
                environment: CList::new(program.environment),
            },
            descriptors,
        };
        let (maps, devices) = (self.id_maps, self.network_devices);
        Process::spawn(launch, &mut |gate, pid| match gate {
            Gate::IdMaps => maps.as_ref().map_or(Ok(()), |maps| maps.write(pid)),
            Gate::NetworkDevices => network_devices::move_to(&devices, pid),
            gate => parent(gate, pid),
        })
    }
}
