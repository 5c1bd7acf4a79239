//! A task that runs in a container of this host.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use jobc_schema::Bytes;

use super::task_process::TaskProcess;
use crate::discarded::WrittenLayers;
use crate::lifecycle::EndSignal;
use crate::program::ProgramProcesses;
use jobc_container::cgroup::Cgroup;
use jobc_container::container::Container;
use jobc_container::container::create::CreatedContainer;
use jobc_container::process::{Exit, Process};
use jobc_sys::error::{Error, Kind, Result, describe_io};
use jobc_sys::pid_namespace::{self, Member};
use jobc_sys::signals::{Disposition, Signal};
use jobc_sys::syscall::ended::{self, EndedUsage};

/// A container and its first process.
#[derive(Debug)]
pub(super) struct ContainerProcess {
    container: Box<Container>,
    process: Process,
    /// A byte here lets it go; nothing once it is.
    start_pipe: Option<OwnedFd>,
    /// The writable layers of its root, if what is in them is to be named.
    layers: Option<WrittenLayers>,
    /// The signal that asks it to end.
    stop_signal: Signal,
    /// Whether its first process is an init of this runtime, whose child is the program.
    init: bool,
    /// Whether it was sent SIGINT as the first signal of its end.
    interrupted: bool,
}

impl ContainerProcess {
    /// A created container, which a byte in `start_pipe` lets go.
    pub(super) fn new(
        made: CreatedContainer,
        start_pipe: OwnedFd,
        layers: Option<WrittenLayers>,
        stop_signal: Signal,
        init: bool,
    ) -> Self {
        Self {
            container: Box::new(made.container),
            process: made.process,
            start_pipe: Some(start_pipe),
            layers,
            stop_signal,
            init,
            interrupted: false,
        }
    }

    /// The processes that a signal of a user is for.
    fn program(&self) -> Result<ProgramProcesses> {
        let first = self.process.pid;
        let others = match pid_namespace::others(first) {
            Ok(others) => others,
            // It exited without a signal from here.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                let message = format!("cannot list the processes of a task: {}", describe_io(&error));
                return Err(Error::new(Kind::System, message));
            }
        };
        // The init's first child is the second process of the namespace.
        let is_program =
            |other: &&Member| other.parent == first && pid_namespace::number(other.pid) == Some(2);
        let below = others.iter().filter(|_| self.init).find(is_program);
        Ok(ProgramProcesses { pid: below.map_or(first, |program| program.pid), others })
    }
}

impl TaskProcess for ContainerProcess {
    fn pidfd(&self) -> BorrowedFd<'_> {
        self.process.pidfd.as_fd()
    }

    fn pid(&self) -> u32 {
        self.process.pid
    }

    fn container(&self) -> Option<&str> {
        Some(&self.container.record.id)
    }

    fn cgroup(&self) -> Cgroup {
        Cgroup::open(self.container.record.cgroup.clone().unwrap_or_default())
    }

    fn release(&mut self) {
        if let Some(hold) = self.start_pipe.take() {
            // The reader may have been killed meanwhile, which its end shows.
            let _ = rustix::io::write(&hold, b"1");
        }
    }

    fn wait_started(&mut self) -> Result<()> {
        self.process.wait_until_started()
    }

    /// Has it end by a signal of its job's end.
    ///
    /// Of SIGINT and the stop signal a program often handles one: Python has a handler for SIGINT alone. So where no
    /// process handles the one that is due and some handle the other, they get that, once.
    fn end(&mut self, signal: EndSignal) -> Result<()> {
        let stop = self.stop_signal;
        match signal {
            EndSignal::Kill => self.signal(Signal::KILL),
            _ if self.start_pipe.is_some() => self.signal(Signal::KILL),
            EndSignal::Interrupt => {
                let program = self.program()?;
                let other = !program.handles(Signal::INT)
                    && (program.handles(stop)
                        || program.disposition(Signal::INT) == Some(Disposition::Ignored));
                self.interrupted = !other;
                self.signal(if other { stop } else { Signal::INT })
            }
            EndSignal::Stop => {
                let program = self.program()?;
                let handled = program.handles(stop);
                match self.interrupted {
                    // What handles SIGINT alone is at work on that, and would be ended by another signal.
                    true if !handled && program.handles(Signal::INT) => Ok(()),
                    false if !handled && stop != Signal::KILL && program.handles(Signal::INT) => {
                        self.signal(Signal::INT)
                    }
                    _ => self.signal(stop),
                }
            }
        }
    }

    /// Sends a signal as a user at a terminal means it.
    ///
    /// A shell that waits for a program has no handler of its own: alone it would end, and as the first process of its
    /// PID namespace the kernel keeps the signal from it. The signal then goes to the [`recipients`] among the other
    /// processes of the namespace. A first process that is alone there is ended by it. Who is there is read from
    /// /proc: a task need not have a cgroup.
    fn signal(&mut self, signal: Signal) -> Result<()> {
        if self.start_pipe.is_some() {
            return Signal::KILL.send(&self.process.pidfd).map(drop);
        }
        if signal == Signal::KILL {
            let cgroup = self.cgroup();
            Signal::KILL.send(&self.process.pidfd)?;
            // Under version 1 what is frozen does not even die.
            return if cgroup.is_frozen().unwrap_or(false) { cgroup.thaw() } else { Ok(()) };
        }
        let program = self.program()?;
        if !program.decides(signal) && program.pid == self.process.pid && program.others.is_empty() {
            return Signal::KILL.send(&self.process.pidfd).map(drop);
        }
        program.send(signal)
    }

    fn ended_usage(&self) -> Option<EndedUsage> {
        ended::usage(self.process.pidfd.as_fd()).ok().flatten()
    }

    fn take_layers(&mut self) -> Option<WrittenLayers> {
        self.layers.take()
    }

    fn reap(self: Box<Self>) -> Result<(Exit, Option<Box<Container>>)> {
        // The init exits with the code of a shell; only its name says whether a signal ended the program.
        let signal = self.init.then(|| init_report(self.process.pid)).flatten();
        let exit = self.process.wait()?;
        let exit = signal.map(Exit::Signal).filter(|signal| signal.code() == exit.code()).unwrap_or(exit);
        Ok((exit, Some(self.container)))
    }

    fn into_container(self: Box<Self>) -> Option<Box<Container>> {
        Some(self.container)
    }
}

/// The host's information on the end of a container that had these cgroups, if there is any.
pub(super) fn exit_note(groups: &Cgroup, exit: Exit, memory_limit: Option<u64>) -> Option<String> {
    let usage = groups.usage();
    // A program may exit itself after the kernel has killed another one of the container.
    let killed = exit != Exit::Code(0) && usage.oom_kills.is_some_and(|kills| kills > 0);
    let used = usage.memory_peak.map(|bytes| Bytes(bytes).amount());
    let limit = memory_limit.map(|bytes| Bytes(bytes).amount());
    killed.then(|| match (used, limit) {
        (Some(used), Some(limit)) => format!("out of memory: used {used} of {limit}"),
        (None, Some(limit)) => format!("out of memory: the limit is {limit}"),
        (Some(used), None) => format!("out of memory: the host had none left, used {used}"),
        (None, None) => "out of memory: the host had none left".to_owned(),
    })
}

/// The signal that ended the program below an init that has ended and was not waited for.
fn init_report(pid: u32) -> Option<i32> {
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    jobc_container::trampoline::init::signal_of(&name)
}
