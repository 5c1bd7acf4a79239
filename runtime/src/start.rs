//! From what was prepared to a running process: the last descriptors are opened, and the process is made.

use std::ffi::CStr;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::pipe::{PipeFlags, pipe_with};

use crate::c_list::CList;
use crate::error::{Error, Result};
use crate::labels::Label;
use crate::mounts::id_mapped;
use crate::operation::{Operation, Step};
use crate::prepare::{Loaded, Prepared};
use crate::process::{Gate, Launch, Process, Program};
use crate::trampoline;

/// The control groups that a process begins in.
#[derive(Debug, Default)]
pub struct Groups {
    /// The version 2 group that it is born in.
    pub born_in: Option<OwnedFd>,
    /// The `tasks` files of version 1 groups that it joins, open for writing.
    pub joined: Vec<OwnedFd>,
}

impl Prepared {
    /// Makes the process and waits until it runs its program, or waits to be started.
    ///
    /// `parent` does what belongs to the parent's side, with the process's id: it has systemd make a control group around
    /// a process that waits for that, and runs the hooks once the mounts are made.
    ///
    /// # Errors
    ///
    /// The step that failed, at its place in config.json; nothing of the process is left then.
    pub fn spawn(self, groups: Groups, parent: &mut dyn FnMut(Gate, u32) -> Result<()>) -> Result<Process> {
        let notifies = self.notifies();
        // Who starts a held container later hears of the program's failure then; this process does not wait for it.
        let (failure, failure_writer) = if let Some(report) = self.report {
            (None, report)
        } else {
            let pipe = pipe_with(PipeFlags::CLOEXEC).map_err(|errno| Error::machine("make a pipe", errno))?;
            (Some(pipe.0), pipe.1)
        };
        let mut program = self.program;
        program.environment.extend(program.secret_environment.iter().map(CStr::to_owned));
        let label = program.label.as_ref().map(Label::written);
        let mut steps = self.steps;
        let hold = steps.iter().find_map(|step| match step.operation {
            Operation::Hold(fd) => Some(fd),
            _ => None,
        });
        let mut descriptors = self.descriptors;
        let (mut reply, mut reply_writer) = (None, None);
        if notifies == Some(Loaded::Last) {
            // Who lets a held container go takes the listener, and says so where it said that.
            reply = hold;
            if failure.is_some() {
                let pipe =
                    pipe_with(PipeFlags::CLOEXEC).map_err(|errno| Error::machine("make a pipe", errno))?;
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
        )?;
        let trees = id_mapped::make(&mut steps)?;
        let mut needed = vec![image.as_raw_fd(), failure_writer.as_raw_fd()];
        needed.extend(reply);
        for step in &steps {
            match &step.operation {
                Operation::Hold(fd) => needed.push(*fd),
                Operation::OpenAttributes(attributes) => needed.push(attributes.at()),
                Operation::Hook(hook) => needed.extend([hook.state()].into_iter().chain(hook.image())),
                _ => {}
            }
        }
        needed.sort_unstable();
        needed.dedup();
        for step in &mut steps {
            match &mut step.operation {
                Operation::JoinCgroups(joined) => {
                    *joined = groups.joined.iter().map(std::os::fd::AsRawFd::as_raw_fd).collect();
                }
                Operation::CloseFrom { except, .. } => except.clone_from(&needed),
                _ => {}
            }
        }
        let waits =
            |step: &Step| matches!(step.operation, Operation::Hold(_) | Operation::Wait(Gate::ControlGroup));
        let waits = steps.iter().any(waits);
        descriptors.extend(groups.joined);
        descriptors.extend(trees);
        let launch = Launch {
            steps,
            namespaces: self.namespaces,
            joined_before: self.joined_before,
            hidden: self.hidden,
            cgroup: groups.born_in,
            attended: self.hooks || self.id_maps.is_some() || waits || notifies == Some(Loaded::Early),
            in_user_namespace: self.in_user_namespace,
            agent: self.agent,
            program: Program {
                image,
                failure,
                failure_writer: Some(failure_writer),
                reply,
                reply_writer,
                attributes: program.label.map(|label| label.attributes),
                arguments: CList::new(program.arguments),
                environment: CList::new(program.environment),
            },
            descriptors,
        };
        let maps = self.id_maps;
        Process::spawn(launch, &mut |gate, pid| match gate {
            Gate::IdMaps => maps.as_ref().map_or(Ok(()), |maps| maps.write(pid)),
            Gate::Listener => Ok(()),
            gate => parent(gate, pid),
        })
    }
}
