//! A running attempt of a task: its container, its first process, its output.

use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, OwnedFd};

use jobc_schema::Bytes;
use rustix::io::Errno;

use super::message::PendingContainer;
use super::poll::{EventSource, Poll};
use super::recipients::recipients;
use crate::discarded::WrittenLayers;
use crate::lifecycle::{EndSignal, TaskNumber};
use jobc_container::cgroup::Cgroup;
use jobc_container::container::Container;
use jobc_container::process::{Exit, Process};
use jobc_sys::error::{Error, Kind, Result, describe_io};
use jobc_sys::pid_namespace::{self, Member};
use jobc_sys::signals::{Disposition, Signal};
use jobc_sys::syscall::ended::{self, EndedUsage};

/// Whether there is more to read of a stream now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadState {
    /// There may be.
    MayHaveMore,
    /// There is not.
    Drained,
}

/// An attempt of a task while it runs.
#[derive(Debug)]
pub(super) struct Attempt {
    /// The attempt, from 1.
    pub(super) number: u32,
    container: Box<Container>,
    process: Process,
    /// A byte here lets it go; nothing once it is.
    start_pipe: Option<OwnedFd>,
    /// Its standard output and error, until they end.
    output: [Option<OwnedFd>; 2],
    /// The writable layers of its root, if what is in them is to be named.
    layers: Option<WrittenLayers>,
    /// The signal that asks it to end.
    stop_signal: Signal,
    /// Whether its first process is an init of this runtime.
    init: bool,
    /// Whether it was sent SIGINT as the first signal of its end.
    interrupted: bool,
}

/// The program of a task and the other processes of its PID namespace.
struct ProgramProcesses {
    /// The program itself: the first process, or the child of an init of this runtime.
    pid: u32,
    /// All but the first process; below an init the program is one of them.
    others: Vec<Member>,
}

impl ProgramProcesses {
    /// How the program handles a signal.
    fn disposition(&self, signal: Signal) -> Option<Disposition> {
        Disposition::of(self.pid, signal)
    }

    /// All but an init.
    fn pids(&self) -> impl Iterator<Item = u32> {
        std::iter::once(self.pid).chain(self.others.iter().map(|other| other.pid))
    }

    /// Whether a process handles a signal.
    fn handles(&self, signal: Signal) -> bool {
        self.pids().any(|pid| handles(pid, signal) || signal == Signal::INT && traps_interrupt(pid))
    }
}

impl Attempt {
    /// Takes a made container in, and waits for its end and its output from now on.
    pub(super) fn new(task: TaskNumber, number: u32, held: PendingContainer, poll: &Poll) -> Result<Self> {
        let PendingContainer { made, start_pipe: hold, output, layers, stop_signal, init, .. } = held;
        poll.add(&made.process.pidfd, EventSource::Process(task))?;
        let output = output.map_or([None, None], |[out, error]| [Some(out), Some(error)]);
        for (stream, fd) in output.iter().enumerate() {
            if let Some(fd) = fd {
                poll.add(fd, EventSource::Output(task, stream))?;
            }
        }
        let container = Box::new(made.container);
        Ok(Self {
            number,
            container,
            process: made.process,
            start_pipe: Some(hold),
            output,
            layers,
            stop_signal,
            init,
            interrupted: false,
        })
    }

    /// Its first process's number.
    pub(super) fn pid(&self) -> u32 {
        self.process.pid
    }

    /// Its container's name.
    pub(super) fn name(&self) -> &str {
        &self.container.record.id
    }

    /// Its cgroups.
    pub(super) fn cgroup(&self) -> Cgroup {
        Cgroup::open(self.container.record.cgroup.clone().unwrap_or_default())
    }

    /// Lets it go; [`wait_started`](Self::wait_started) waits until its program runs.
    pub(super) fn release(&mut self) {
        if let Some(hold) = self.start_pipe.take() {
            // The reader may have been killed meanwhile, which its end shows.
            let _ = rustix::io::write(&hold, b"1");
        }
    }

    /// Waits until its program runs.
    ///
    /// # Errors
    ///
    /// Why it could not be executed; the process has exited.
    pub(super) fn wait_started(&mut self) -> Result<()> {
        self.process.wait_until_started()
    }

    /// Has it end by a signal of its job's end.
    ///
    /// Of SIGINT and the stop signal a program often handles one: Python has a handler for SIGINT alone. So where no
    /// process handles the one that is due and some handle the other, they get that, once.
    pub(super) fn end(&mut self, signal: EndSignal) -> Result<()> {
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
    pub(super) fn signal(&mut self, signal: Signal) -> Result<()> {
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
        let is_its_own =
            program.disposition(signal) == Some(Disposition::Ignored) || handles(program.pid, signal);
        if is_its_own || !signal.ends_by_default() {
            return signal.send_to(program.pid);
        }
        if program.pid == self.process.pid && program.others.is_empty() {
            return Signal::KILL.send(&self.process.pidfd).map(drop);
        }
        let mut all = BTreeSet::from_iter(recipients(&program.others, |pid| handles(pid, signal)));
        if signal == Signal::INT {
            all.extend(program.pids().filter(|&pid| traps_interrupt(pid)));
        }
        all.into_iter().try_for_each(|pid| signal.send_to(pid))
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

    /// Reads its output, a bounded amount at a time so that other tasks are served.
    pub(super) fn read(
        &mut self,
        stream: usize,
        poll: &Poll,
        buffer: &mut [u8],
        seen: &mut dyn FnMut(&[u8]),
    ) -> ReadState {
        const MAX_READS: usize = 4;
        for _ in 0..MAX_READS {
            let Some(fd) = &self.output[stream] else { return ReadState::Drained };
            match rustix::io::read(fd, &mut *buffer) {
                Ok(count) if count > 0 => seen(&buffer[..count]),
                Err(Errno::AGAIN) => return ReadState::Drained,
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => {
                    poll.remove(fd);
                    self.output[stream] = None;
                    return ReadState::Drained;
                }
            }
        }
        ReadState::MayHaveMore
    }

    /// The resource usage of its processes, once its first process has ended.
    pub(super) fn ended_usage(&self) -> Option<EndedUsage> {
        ended::usage(self.process.pidfd.as_fd()).ok().flatten()
    }

    /// Takes the writable layers of its root, once.
    pub(super) fn take_layers(&mut self) -> Option<WrittenLayers> {
        self.layers.take()
    }

    /// Takes the end of its first process in; with it ended everything else in its pid namespace.
    pub(super) fn reap(self, poll: &Poll) -> Result<(Exit, Box<Container>)> {
        poll.remove(&self.process.pidfd);
        for fd in self.output.iter().flatten() {
            poll.remove(fd);
        }
        // The init exits with the code of a shell; only its name says whether a signal ended the program.
        let signal = self.init.then(|| init_report(self.process.pid)).flatten();
        let exit = self.process.wait()?;
        let exit = signal.map(Exit::Signal).filter(|signal| signal.code() == exit.code()).unwrap_or(exit);
        Ok((exit, self.container))
    }

    /// Takes in that its program could not be executed: its process is gone.
    pub(super) fn into_container(self, poll: &Poll) -> Box<Container> {
        poll.remove(&self.process.pidfd);
        for fd in self.output.iter().flatten() {
            poll.remove(fd);
        }
        self.container
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

/// The end of a task whose start failed before its program ran.
pub(super) fn code_of(error: &Error) -> u8 {
    error.exit_code()
}

/// Whether a process has a handler for a signal, or waits for it. The handler of a shell for SIGINT only waits for its
/// program, which a terminal sends the signal, too.
fn handles(pid: u32, signal: Signal) -> bool {
    catches(pid, signal) && !(signal == Signal::INT && is_shell(pid))
}

/// Whether a shell has a `trap` for SIGINT. By its handlers it cannot be told; but its script may be in its arguments, and
/// of a script in a file is known that it has other traps.
fn traps_interrupt(pid: u32) -> bool {
    if !is_shell(pid) || !catches(pid, Signal::INT) {
        return false;
    }
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&arguments);
    if text.contains("trap ") { text.contains("INT") } else { catches(pid, Signal::TERM) }
}

fn catches(pid: u32, signal: Signal) -> bool {
    Disposition::of(pid, signal) == Some(Disposition::Caught)
}

/// The signal that ended the program below an init that has ended and was not waited for.
fn init_report(pid: u32) -> Option<i32> {
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    jobc_container::trampoline::init::signal_of(&name)
}

/// Whether a process is a shell, by its name in proc_pid_comm(5).
fn is_shell(pid: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    matches!(name.trim_end(), "bash" | "sh" | "dash" | "ash" | "busybox" | "zsh" | "ksh" | "mksh")
}
