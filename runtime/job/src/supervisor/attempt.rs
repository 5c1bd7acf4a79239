//! A running attempt of a task: its container, its first process, its output.

use std::os::fd::{AsFd as _, OwnedFd};

use jobc_schema::Bytes;
use rustix::io::Errno;

use super::message::PendingContainer;
use super::poll::{EventSource, Poll};
use super::recipients::recipients;
use crate::discarded::WrittenLayers;
use crate::lifecycle::TaskNumber;
use jobc_container::cgroup::Cgroup;
use jobc_container::container::Container;
use jobc_container::process::{Exit, Process};
use jobc_sys::error::{Error, Kind, Result, describe_io};
use jobc_sys::pid_namespace;
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
}

impl Attempt {
    /// Takes a made container in, and waits for its end and its output from now on.
    pub(super) fn new(task: TaskNumber, number: u32, held: PendingContainer, poll: &Poll) -> Result<Self> {
        let PendingContainer { made, start_pipe: hold, output, layers, .. } = held;
        poll.add(&made.process.pidfd, EventSource::Process(task))?;
        let output = output.map_or([None, None], |[out, error]| [Some(out), Some(error)]);
        for (stream, fd) in output.iter().enumerate() {
            if let Some(fd) = fd {
                poll.add(fd, EventSource::Output(task, stream))?;
            }
        }
        let container = Box::new(made.container);
        Ok(Self { number, container, process: made.process, start_pipe: Some(hold), output, layers })
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

    /// Sends a signal as a user at a terminal means it.
    ///
    /// The kernel does not deliver signals without a handler to the first process of a PID namespace. A shell that
    /// waits for a program is such a process: the signal then goes to the [`recipients`] among the other processes of
    /// the namespace. A process that is alone there is ended by it. Who is there is read from /proc: a task need not
    /// have a cgroup.
    ///
    /// Python has a handler for SIGINT alone: where no process handles SIGTERM, those that handle SIGINT get that, but
    /// shells, whose handler only waits for their program.
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
        let spared = Disposition::of(self.process.pid, signal) == Some(Disposition::Exempt);
        if !spared || !signal.ends_by_default() {
            return signal.send(&self.process.pidfd).map(drop);
        }
        let others = match pid_namespace::others(self.process.pid) {
            Ok(others) => others,
            // It exited without a signal from here.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                let message = format!("cannot list the processes of a task: {}", describe_io(&error));
                return Err(Error::new(Kind::System, message));
            }
        };
        let catches = |pid, signal| Disposition::of(pid, signal) == Some(Disposition::Caught);
        let handles_interrupt = |pid: u32| catches(pid, Signal::INT) && !is_shell(pid);
        let is_any = |catches: &dyn Fn(u32) -> bool| others.iter().any(|other| catches(other.pid));
        let (first, below) = (handles_interrupt(self.process.pid), is_any(&handles_interrupt));
        if signal == Signal::TERM && !is_any(&|pid| catches(pid, signal)) && (first || below) {
            if below {
                let all = recipients(&others, handles_interrupt);
                all.into_iter().try_for_each(|pid| Signal::INT.send_to(pid))?;
            }
            return if first { Signal::INT.send(&self.process.pidfd).map(drop) } else { Ok(()) };
        }
        if others.is_empty() {
            return Signal::KILL.send(&self.process.pidfd).map(drop);
        }
        recipients(&others, |pid| catches(pid, signal)).into_iter().try_for_each(|pid| signal.send_to(pid))
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
        Ok((self.process.wait()?, self.container))
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

/// Whether a process is a shell, by its name in proc_pid_comm(5).
fn is_shell(pid: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    matches!(name.trim_end(), "bash" | "sh" | "dash" | "ash" | "busybox" | "zsh" | "ksh" | "mksh")
}
