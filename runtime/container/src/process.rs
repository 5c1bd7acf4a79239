//! Creates the container's first process and executes the operations in it.
//!
//! The new process shares its parent's memory until its `execve` (`CLONE_VM`), so that its creation costs the same
//! regardless of the parent's size, and so that it can read everything that was prepared. Three rules follow: it
//! allocates nothing, it takes no lock, and what it reads stays valid until the kernel reports that the process has
//! left the memory. The kernel reports it by `CLONE_CHILD_CLEARTID`: it writes 0 to [`Report::state`] and wakes the
//! waiter (clone(2)).
//!
//! If the parent has nothing to do in between, it sleeps until then (`CLONE_VFORK`). If it has (id maps by newuidmap,
//! hooks in its own namespaces, a later start), the child waits at [`Gate`]s.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::os::fd::{AsFd as _, AsRawFd, FromRawFd as _, IntoRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::Ordering;

use linux_raw_sys::general::{self, clone_args};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions};

use crate::child::Child;
use crate::child::report::{AT_CGROUP, AT_ID_MAPS, AT_NETWORK_DEVICES, CREATED, GONE, Gate, Report, wait};
use crate::listener::{self, Agent};
use crate::namespaces::{JoinNamespace, Namespace};
use crate::operation::{Operation, Step};
use crate::trampoline::report::TrampolineReport;
use crate::trampoline::{Failure, LISTENER_TAKEN, report};
use jobc_sys::c_list::CList;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::syscall::linux::Linux;
use jobc_sys::syscall::outside::Outside;
use jobc_sys::syscall::raw::exit;
use jobc_sys::syscall::stack::{SignalBlocker, Stack};
use jobc_sys::syscall::{Kernel as _, Prctl, of_fd, raw};

/// The program that the process becomes.
#[derive(Debug)]
pub struct Program {
    /// The sealed image of [`crate::trampoline`].
    pub image: OwnedFd,
    /// The pipe for the error of the program's execve: read to its end, empty on success. `None` where another process
    /// reads it.
    pub failure: Option<OwnedFd>,
    /// The other side of `failure`. The child has its own, so the parent closes this one once the child has left the
    /// shared memory, and then the end of `failure` is the program's start.
    pub failure_writer: Option<OwnedFd>,
    /// Where the new process learns that the filter's listener was taken, if its trampoline has one to hand over.
    pub reply: Option<RawFd>,
    /// The other side of `reply`, where this process takes the listener.
    pub reply_writer: Option<OwnedFd>,
    /// Whether the trampoline makes another process, which becomes the program.
    pub makes_last: bool,
    /// The file descriptor of the directory with the new process's attributes, for the trampoline ([`crate::labels`]).
    pub attributes: Option<OwnedFd>,
    /// The arguments, with the program's name first.
    pub arguments: CList,
    /// The environment, `NAME=value`.
    pub environment: CList,
}

/// Everything needed to create a process.
#[derive(Debug)]
pub struct Launch {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The new namespaces that clone3(2) makes, as `CLONE_NEW*` bits.
    pub namespaces: u32,
    /// Existing user or pid namespaces, which must be joined before the process is created.
    pub join_before_clone: Vec<JoinNamespace>,
    /// Whether this process becomes not dumpable before it makes the new one.
    pub set_not_dumpable: bool,
    /// A cgroup v2 group to be created in.
    pub cgroup: Option<OwnedFd>,
    /// Whether the parent has anything to do between the process's making and its `execve`.
    pub has_parent_work: bool,
    /// Whether the process is in a user namespace that is not the host's.
    pub in_user_namespace: bool,
    /// The receiver of the filter's listener, if it has one and this process takes it.
    pub agent: Option<Agent>,
    /// The program that it becomes.
    pub program: Program,
    /// File descriptors that steps name, kept open until the process has its own.
    pub descriptors: Vec<OwnedFd>,
}

/// A process that was made.
#[derive(Debug)]
pub struct Process {
    /// Its id in this process's pid namespace.
    pub pid: u32,
    /// A file descriptor that refers to it, even if the PID is reused.
    pub pidfd: OwnedFd,
    shared: Option<Box<SharedState>>,
    outside: Option<Outside>,
}

/// The error if the process that joins namespaces first ends without a report.
const KILLED_BEFORE_CLONE: Errno = Errno::CANCELED;

/// Data that the child reads while it shares the parent's memory. It stays in place until the child has left.
#[derive(Debug)]
struct SharedState {
    launch: Launch,
    report: Report,
    clone: clone_args,
    stack: Stack,
    /// The stack of the process in between, which joins namespaces and makes the real one.
    intermediate_stack: Option<Stack>,
    pidfd: Box<i32>,
}

impl Process {
    /// Makes the process and waits until it has become its program, waits to be started, or has failed.
    ///
    /// `parent` is called for each gate, with the process's id; its error ends the process.
    ///
    /// # Errors
    ///
    /// The error of the failed step, at its place in config.json.
    pub fn spawn(launch: Launch, parent: &mut dyn FnMut(Gate, u32) -> Result<()>) -> Result<Self> {
        if launch.set_not_dumpable {
            Linux
                .prctl(Prctl::NotDumpable)
                .map_err(|errno| Error::system("hide this process's memory", errno))?;
        }
        let mut outside = None;
        for join in launch.join_before_clone.iter().filter(|join| join.kind == Namespace::Time) {
            // The kernel asks for a process that shares its memory with none; the new one would.
            outside = Outside::fork()
                .and_then(|outside| Linux.setns(join.fd, join.kind.flag()).map(|()| Some(outside)))
                .map_err(|errno| Error::system("join the time namespace", errno))?;
        }
        let mut shared = SharedState::new(launch)?;
        let masked = SignalBlocker::new();
        let made = shared.clone_child();
        drop(masked);
        let (pid, pidfd) = made.map_err(|errno| explain_clone(&shared.launch, errno))?;
        let mut process = Self { pid, pidfd, shared: Some(shared), outside };
        process.handle_gates(parent)?;
        Ok(process)
    }

    /// Its number and start, as processes see it that do not share a time namespace that was joined.
    pub fn identify(&mut self) -> Option<jobc_sys::process::Process> {
        match self.outside.take() {
            Some(outside) => outside.identify(self.pid),
            None => jobc_sys::process::Process::of_child(self.pid),
        }
    }

    /// Whether the process waits to be started.
    pub fn is_held(&self) -> bool {
        self.shared.is_some()
    }

    /// Waits until a process that was held, and has been given its byte, has become its program.
    pub fn wait_until_started(&mut self) -> Result<()> {
        if let Some(shared) = &self.shared {
            // It may not have read the byte yet: HELD is not a change here.
            while shared.report.state.load(Ordering::Acquire) == CREATED {
                wait(&shared.report.state, CREATED);
            }
        }
        self.handle_gates(&mut |_, _| Ok(()))
    }

    fn handle_gates(&mut self, parent: &mut dyn FnMut(Gate, u32) -> Result<()>) -> Result<()> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let mut refused = None;
        let pidfd = &self.pidfd;
        let kill = || {
            let _ = rustix::process::pidfd_send_signal(pidfd, rustix::process::Signal::KILL);
        };
        loop {
            let gate = match shared.report.futex_wait(&kill) {
                GONE => break,
                CREATED => return Ok(()),
                AT_CGROUP => Gate::Cgroup,
                AT_ID_MAPS => Gate::IdMaps,
                AT_NETWORK_DEVICES => Gate::NetworkDevices,
                _ => Gate::Hooks,
            };
            match parent(gate, self.pid) {
                Ok(()) => shared.report.open_gate(true),
                Err(error) => {
                    refused = Some(error);
                    shared.report.open_gate(false);
                }
            }
        }
        let Some(mut shared) = self.shared.take() else { return Ok(()) };
        close_together(std::mem::take(&mut shared.launch.descriptors));
        let failed = refused.or_else(|| shared.failure());
        if let Some(error) = failed.or_else(|| shared.program_failure(self).err()) {
            let _ = self.wait();
            return Err(error);
        }
        Ok(())
    }

    /// Continues with the process that the trampoline has created, and reaps the one that created it.
    ///
    /// The PID comes from a pipe that the new process has too, so it is only accepted if it is a child of this process.
    fn replace_by(&mut self, pid: u32) -> Result<()> {
        let machine = |errno| Error::system("open the process in the container", errno);
        let number = rustix::process::Pid::from_raw(pid.cast_signed()).ok_or_else(|| machine(Errno::SRCH))?;
        let pidfd =
            rustix::process::pidfd_open(number, rustix::process::PidfdFlags::empty()).map_err(machine)?;
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        rustix::process::waitid(WaitId::PidFd(pidfd.as_fd()), look).map_err(machine)?;
        let first = std::mem::replace(&mut self.pidfd, pidfd);
        self.pid = pid;
        rustix::io::retry_on_intr(|| {
            rustix::process::waitid(WaitId::PidFd(first.as_fd()), WaitIdOptions::EXITED)
        })
        .map(drop)
        .map_err(machine)
    }

    /// Waits for the process's end.
    pub fn wait(&self) -> Result<Exit> {
        let options = WaitIdOptions::EXITED;
        let status =
            rustix::io::retry_on_intr(|| rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), options))
                .map_err(|errno| Error::system(format!("wait for process {}", self.pid), errno))?;
        Ok(status.map_or(Exit::Code(125), |status| {
            match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => Exit::Code(u8::try_from(code & 0xff).unwrap_or_default()),
                (None, signal) => Exit::Signal(signal.unwrap_or_default()),
            }
        }))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A child that still reads our memory must be gone before the memory is.
        if let Some(shared) = &self.shared {
            let _ = rustix::process::pidfd_send_signal(&self.pidfd, rustix::process::Signal::KILL);
            while shared.report.state.load(Ordering::Acquire) != GONE {
                let state = shared.report.state.load(Ordering::Acquire);
                if state != GONE {
                    wait(&shared.report.state, state);
                }
            }
            let _ = self.wait();
        }
    }
}

impl Process {
    /// Leaves a process that waits to be started to itself: this program ends, and the memory lives on in the child.
    pub fn detach(mut self) -> (u32, Option<OwnedFd>) {
        let pidfd = self.pidfd.try_clone().ok();
        std::mem::forget(self.shared.take());
        (self.pid, pidfd)
    }
}

/// Closes file descriptors, with one syscall for numbers that follow each other.
fn close_together(mut descriptors: Vec<OwnedFd>) {
    descriptors.sort_by_key(AsRawFd::as_raw_fd);
    let follows = |one: &OwnedFd, next: &OwnedFd| one.as_raw_fd() + 1 == next.as_raw_fd();
    let mut runs = Vec::new();
    for run in descriptors.chunk_by(follows).filter(|run| run.len() > 1) {
        runs.push((run[0].as_raw_fd(), run[run.len() - 1].as_raw_fd()));
    }
    for descriptor in descriptors {
        let number = descriptor.as_raw_fd();
        if runs.iter().any(|(first, last)| (*first..=*last).contains(&number)) {
            let _ = descriptor.into_raw_fd();
        }
    }
    for (first, last) in runs {
        let _ = Linux.close_range(first, last);
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with a code.
    Code(u8),
    /// By a signal.
    Signal(i32),
}

impl Exit {
    /// The code that a shell would show: 128 and the signal's number for a signal.
    pub fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => u8::try_from(128 + signal).unwrap_or(255),
        }
    }

    /// The number of the signal that ended it.
    pub fn signal(self) -> Option<i32> {
        match self {
            Self::Code(_) => None,
            Self::Signal(number) => Some(number),
        }
    }
}

impl Drop for SharedState {
    fn drop(&mut self) {
        // The child may have been killed while a hook that it had just made was in this memory too.
        for step in &self.launch.steps {
            if let Operation::Hook(hook) = &step.operation {
                hook.program.wait_until_left();
            }
        }
    }
}

impl SharedState {
    fn new(launch: Launch) -> Result<Box<Self>> {
        let stack = Stack::new()?;
        let between = launch.join_before_clone.iter().any(|join| join.kind != Namespace::Time);
        let first_stack = between.then(Stack::new).transpose()?;
        Ok(Box::new(Self {
            report: Report::new(),
            // SAFETY: a structure of integers; all zero means that nothing is requested.
            clone: unsafe { std::mem::zeroed() },
            stack,
            intermediate_stack: first_stack,
            pidfd: Box::new(-1),
            launch,
        }))
    }

    /// Makes the process; returns its id and pidfd.
    fn clone_child(&mut self) -> std::result::Result<(u32, OwnedFd), Errno> {
        let shares = general::CLONE_VM | general::CLONE_PIDFD | general::CLONE_CHILD_CLEARTID;
        let mut flags = u64::from(shares) | general::CLONE_CLEAR_SIGHAND | u64::from(self.launch.namespaces);
        if !self.launch.has_parent_work {
            flags |= u64::from(general::CLONE_VFORK);
        }
        if self.launch.cgroup.is_some() {
            flags |= general::CLONE_INTO_CGROUP;
        }
        self.clone = clone_args {
            flags,
            pidfd: std::ptr::from_mut(&mut *self.pidfd) as u64,
            child_tid: std::ptr::from_ref(&self.report.state) as u64,
            parent_tid: 0,
            exit_signal: general::SIGCHLD.into(),
            stack: self.stack.base as u64,
            stack_size: self.stack.size as u64,
            tls: 0,
            set_tid: 0,
            set_tid_size: 0,
            cgroup: self
                .launch
                .cgroup
                .as_ref()
                .map_or(0, |fd| u64::try_from(fd.as_raw_fd()).unwrap_or_default()),
        };
        let data = std::ptr::from_mut(self).cast::<c_void>();
        let (pid, pidfd) = if let Some(first) = &self.intermediate_stack {
            // A process in between joins the namespaces; the real one becomes this process's child, not its.
            let flags = general::CLONE_VM | general::CLONE_VFORK | general::CLONE_FILES;
            let between = clone_args {
                flags: u64::from(flags) | general::CLONE_CLEAR_SIGHAND,
                parent_tid: 0,
                stack: first.base as u64,
                stack_size: first.size as u64,
                pidfd: 0,
                child_tid: 0,
                exit_signal: general::SIGCHLD.into(),
                cgroup: 0,
                ..self.clone
            };
            // The kernel writes the PID before the new process runs: the intermediate process may be killed at any
            // moment, and its child is still found.
            self.clone.flags |= u64::from(general::CLONE_PARENT | general::CLONE_PARENT_SETTID);
            self.clone.parent_tid = std::ptr::from_ref(&self.report.pid) as u64;
            self.clone.exit_signal = 0;
            // SAFETY: both stacks are this box's own, and it stays until both processes have left the memory.
            let between = unsafe { raw::clone3(&raw const between, join_and_clone, data) }?;
            let status = rustix::process::waitpid(
                rustix::process::Pid::from_raw(between.cast_signed()),
                rustix::process::WaitOptions::empty(),
            );
            debug_assert!(status.is_ok());
            // If there is a process, an error is from its own steps, which it may have started already.
            match (self.report.pid.load(Ordering::Acquire), self.report.errno.load(Ordering::Acquire)) {
                (0, 0) => return Err(KILLED_BEFORE_CLONE),
                (0, errno) => return Err(Errno::from_raw_os_error(errno)),
                // SAFETY: a valid reference to this box's own; another process has had the kernel write it.
                (pid, _) => (pid, unsafe { std::ptr::from_ref(&*self.pidfd).read_volatile() }),
            }
        } else {
            // SAFETY: the stack is this box's own, and it stays until the process has left the memory.
            let pid = unsafe { raw::clone3(&raw const self.clone, child_main, data) }?;
            (pid, *self.pidfd)
        };
        if pidfd < 0 {
            return Err(Errno::BADF);
        }
        // SAFETY: the kernel has just made this file descriptor for us (clone(2), CLONE_PIDFD).
        Ok((pid, unsafe { OwnedFd::from_raw_fd(pidfd) }))
    }

    /// The failure in the child before its `execve`.
    fn failure(&self) -> Option<Error> {
        let errno = self.report.errno.load(Ordering::Acquire);
        let index = self.report.step.load(Ordering::Acquire) as usize;
        let step = self.launch.steps.get(index);
        if errno == 0 {
            // Each step continues with the next one; a child that was killed in between has left no report.
            let step = step?;
            let message = format!("the process was killed while it was to {}", step.operation);
            let help = "a memory limit below what a process needs does this";
            return Some(Error::new(Kind::System, message).help(help));
        }
        let errno = Errno::from_raw_os_error(errno);
        let Some(step) = step else {
            return Some(Failure::Start(errno).error(""));
        };
        let error = step.operation.explain(errno, self.report.detail.load(Ordering::Acquire));
        Some(if let Some(place) = &step.pointer { error.at(place) } else { error })
    }

    /// The trampoline's report: nothing when the user's program runs.
    ///
    /// `process` becomes the one that the trampoline makes, where it does.
    fn program_failure(&mut self, process: &mut Process) -> Result<()> {
        let program = &mut self.launch.program;
        drop(program.failure_writer.take());
        let Some(failure) = &program.failure else { return Ok(()) };
        let machine = |errno| Error::system("read whether the program was started", errno);
        let mut is_last = !program.makes_last;
        // The last process may report before the first one has reported its number.
        let mut early = None;
        loop {
            let received = match early.take() {
                Some(listener) if is_last => TrampolineReport::Listener(listener),
                kept => {
                    early = kept;
                    report::wait(failure, process.pid).map_err(machine)?
                }
            };
            match received {
                TrampolineReport::Started if !is_last => return Err(killed_before_birth()),
                TrampolineReport::Started => return Ok(()),
                TrampolineReport::Born(_) if is_last => return Err(machine(Errno::PROTO)),
                TrampolineReport::Born(pid) => {
                    process.replace_by(pid)?;
                    is_last = true;
                }
                TrampolineReport::Failed(why) => {
                    if !is_last && let Ok(TrampolineReport::Born(pid)) = report::wait(failure, process.pid) {
                        process.replace_by(pid)?;
                    }
                    let name = program.arguments.first().map(|name| name.to_string_lossy());
                    return Err(why.error(&name.unwrap_or_default()));
                }
                TrampolineReport::Listener(listener) if !is_last => early = Some(listener),
                TrampolineReport::Listener(listener) => {
                    // The trampoline ends without a report: this drops the writer.
                    let writer = program.reply_writer.take();
                    let (Some(agent), Some(writer)) = (&self.launch.agent, writer) else {
                        return Err(listener::unexpected_listener());
                    };
                    agent.hand_over(process.pid, process.pidfd.as_fd(), listener)?;
                    rustix::io::write(&writer, &[LISTENER_TAKEN]).map_err(machine)?;
                }
            }
        }
    }
}

/// In the process in between: joins namespaces, makes the real process, ends.
extern "C" fn join_and_clone(data: *mut c_void) -> ! {
    // SAFETY: `data` is the box that `clone_child` made and keeps; the caller sleeps (CLONE_VFORK).
    let shared = unsafe { &*data.cast::<SharedState>() };
    let made = shared
        .launch
        .join_before_clone
        .iter()
        .filter(|join| join.kind != Namespace::Time)
        .try_for_each(|join| Linux.setns(join.fd, join.kind.flag()))
        // SAFETY: the second stack is the box's own too.
        .and_then(|()| unsafe { raw::clone3(&raw const shared.clone, child_main, data) });
    if let Err(errno) = made {
        shared.report.errno.store(errno.raw_os_error(), Ordering::Release);
    }
    exit(0)
}

/// In the new process: carries the steps out and becomes the program.
extern "C" fn child_main(data: *mut c_void) -> ! {
    // SAFETY: `data` is the box that `clone_child` made; it stays until this process has left the memory.
    let shared = unsafe { &*data.cast::<SharedState>() };
    let report = &shared.report;
    let mut child = Child::new(&Linux, report, shared.launch.in_user_namespace);
    let mut index = 0;
    for step in &shared.launch.steps {
        report.step.store(index, Ordering::Release);
        if let Err(errno) = step.operation.carry_out(&mut child) {
            report.errno.store(errno.raw_os_error(), Ordering::Release);
            // The creator of this process may have ended since, and another process may have started it.
            if let Some(writer) = &shared.launch.program.failure_writer {
                let _ = Linux.write(writer.as_raw_fd(), &Failure::Step(errno).report());
            }
            exit(125)
        }
        index += 1;
    }
    report.step.store(index, Ordering::Release);
    // The trampoline speaks through it; it is closed by the trampoline's own `execve`.
    if let Some(writer) = &shared.launch.program.failure_writer {
        let _ = Linux.keep_on_exec(writer.as_raw_fd());
    }
    // So it does with these; without them it reports an error.
    if let Some(reply) = shared.launch.program.reply {
        let _ = Linux.keep_on_exec(reply);
    }
    if let Some(attributes) = &shared.launch.program.attributes {
        let _ = Linux.keep_on_exec(attributes.as_raw_fd());
    }
    let arguments = [
        of_fd(shared.launch.program.image.as_raw_fd()),
        c"".as_ptr() as usize,
        shared.launch.program.arguments.address(),
        shared.launch.program.environment.address(),
        general::AT_EMPTY_PATH as usize,
        0,
    ];
    // SAFETY: both arrays end with a null pointer and lead into the box.
    if let Err(errno) = unsafe { raw::syscall(general::__NR_execveat, arguments) } {
        report.errno.store(errno.raw_os_error(), Ordering::Release);
        if let Some(writer) = &shared.launch.program.failure_writer {
            let _ = Linux.write(writer.as_raw_fd(), &Failure::Start(errno).report());
        }
    }
    exit(125)
}

/// Explains that the trampoline ended without a report and without creating the process.
fn killed_before_birth() -> Error {
    Error::new(Kind::System, "the process was killed before it entered the container's pid namespace")
        .help("a memory limit below what a process needs does this")
}

fn explain_clone(launch: &Launch, errno: Errno) -> Error {
    let names = crate::namespaces::flag_names(launch.namespaces);
    let error =
        Error::system(format!("make a process with new namespaces ({names})"), errno).at("/linux/namespaces");
    match errno {
        Errno::PERM => error.help(
            "for an unprivileged user the bundle needs a user namespace; `jobc doctor` shows what this host allows",
        ),
        Errno::NOSPC | Errno::USERS => error
            .help("a limit of /proc/sys/user/max_*_namespaces, or the depth of user namespaces, is reached"),
        KILLED_BEFORE_CLONE => error
            .help("the process that joins the namespaces was killed; a memory limit below what it needs does this"),
        Errno::AGAIN => error.help("the limit of processes (ulimit -u, or pids.max) is reached"),
        Errno::BUSY | Errno::OPNOTSUPP => error
            .help("the cgroup cannot hold processes; check whether it has children with controllers"),
        _ => error,
    }
}

#[cfg(test)]
mod tests;
