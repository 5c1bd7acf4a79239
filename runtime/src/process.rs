//! Makes the container's first process and carries the operations out in it.
//!
//! The new process shares its maker's memory until its `execve` (`CLONE_VM`), so that its making costs the same however
//! large the maker is, and so that everything prepared is simply there. Three rules follow: it allocates nothing, it
//! takes no lock, and what it reads stays where it is until the kernel says that it has left the memory. The kernel
//! says so by `CLONE_CHILD_CLEARTID`: it writes 0 to [`Report::state`] and wakes who waits there (clone(2)).
//!
//! Where the parent has nothing to do in between, it sleeps until then (`CLONE_VFORK`). Where it has (id maps by
//! newuidmap, hooks in its own namespaces, a start that comes later), the child waits at [`Gate`]s.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_void};
use std::fmt;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use linux_raw_sys::general::{self, clone_args};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions};
use rustix::thread::futex;

use crate::error::{Error, Kind, Result};
use crate::namespaces::Join;
use crate::operation::{Child, Step};
use crate::syscall::linux::Linux;
use crate::syscall::{Fd, Kernel, raw};

/// Where the new process waits for its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The parent writes the id maps, by newuidmap and newgidmap.
    IdMaps,
    /// The parent runs the hooks that belong before the root is entered, in its own namespaces.
    Hooks,
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IdMaps => "map users and groups",
            Self::Hooks => "run the hooks of its side",
        })
    }
}

/// What parent and child tell each other through the memory that they share.
#[derive(Debug)]
pub struct Report {
    /// Where the child is: [`GONE`] once it has left the shared memory, by `execve` or by its end. A futex.
    state: AtomicU32,
    /// How many gates the parent has opened, or [`NEVER`]. A futex.
    opened: AtomicU32,
    /// Which step the child is at.
    step: AtomicU32,
    /// Why that step failed.
    errno: AtomicI32,
    /// The process id, as the parent sees it, where another process made the child for it.
    pid: AtomicU32,
    /// The pidfd that goes with it.
    pidfd: AtomicI32,
}

const GONE: u32 = 0;
const RUNNING: u32 = 1;
const HELD: u32 = 2;
const AT_IDS: u32 = 3;
const AT_HOOKS: u32 = 4;

const NEVER: u32 = u32::MAX;

impl Report {
    /// A report of a process that has not begun.
    pub fn new() -> Self {
        Self {
            state: AtomicU32::new(RUNNING),
            opened: AtomicU32::new(0),
            step: AtomicU32::new(0),
            errno: AtomicI32::new(0),
            pid: AtomicU32::new(0),
            pidfd: AtomicI32::new(-1),
        }
    }

    /// In the child: waits until the parent has opened one more gate.
    pub fn wait_at(&self, gate: Gate) -> std::result::Result<(), Errno> {
        let before = self.opened.load(Ordering::Acquire);
        self.tell(if gate == Gate::IdMaps { AT_IDS } else { AT_HOOKS });
        loop {
            match self.opened.load(Ordering::Acquire) {
                NEVER => return Err(Errno::CANCELED),
                now if now != before => {
                    self.state.store(RUNNING, Ordering::Release);
                    return Ok(());
                }
                now => wait(&self.opened, now),
            }
        }
    }

    /// In the child: waits for a byte on a descriptor; its end without one ends the child.
    pub fn hold<K: Kernel>(&self, kernel: &K, fd: Fd) -> std::result::Result<(), Errno> {
        self.tell(HELD);
        let read = kernel.read(fd, &mut [0])?;
        self.state.store(RUNNING, Ordering::Release);
        if read == 1 { Ok(()) } else { Err(Errno::CANCELED) }
    }

    fn tell(&self, state: u32) {
        self.state.store(state, Ordering::Release);
        let _ = futex::wake(&self.state, futex::Flags::empty(), u32::MAX >> 1);
    }

    /// In the parent: opens the gate, or says that it will never open.
    fn open(&self, gate: bool) {
        // The parent goes on only when the child has left its gate.
        self.state.store(RUNNING, Ordering::Release);
        if gate {
            self.opened.fetch_add(1, Ordering::AcqRel);
        } else {
            self.opened.store(NEVER, Ordering::Release);
        }
        let _ = futex::wake(&self.opened, futex::Flags::empty(), u32::MAX >> 1);
    }

    /// In the parent: waits until the child is somewhere else than running.
    fn wait(&self) -> u32 {
        loop {
            match self.state.load(Ordering::Acquire) {
                RUNNING => wait(&self.state, RUNNING),
                state => return state,
            }
        }
    }
}

impl Default for Report {
    fn default() -> Self {
        Self::new()
    }
}

/// Sleeps while a futex has a value; comes back early for any reason.
fn wait(futex: &AtomicU32, value: u32) {
    // Not the private kind: the kernel wakes who waits for a child's end by the shared one (set_tid_address(2)).
    let _ = futex::wait(futex, futex::Flags::empty(), value, None);
}

/// The program that the process becomes.
#[derive(Debug)]
pub struct Program {
    /// The sealed image of [`crate::trampoline`].
    pub image: OwnedFd,
    /// Where it says why it could not execute the program: read to its end, empty when it could.
    pub failure: OwnedFd,
    /// The other side of `failure`; the child has its own, so the parent lets go of this one.
    pub failure_writer: OwnedFd,
    /// The arguments, with the program's name first.
    pub arguments: Vec<CString>,
    /// The environment, `NAME=value`.
    pub environment: Vec<CString>,
}

/// All that a process is made from.
#[derive(Debug)]
pub struct Launch {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The new namespaces that clone3(2) makes, as `CLONE_NEW*` bits.
    pub namespaces: u32,
    /// Namespaces that must be joined before the process is made: a user or pid namespace that is there.
    pub joined_before: Vec<Join>,
    /// A version 2 control group to be born in.
    pub cgroup: Option<OwnedFd>,
    /// Whether the parent has anything to do between the process's making and its `execve`.
    pub attended: bool,
    /// Whether the process is in a user namespace that is not the machine's.
    pub in_user_namespace: bool,
    /// What it becomes.
    pub program: Program,
    /// Descriptors that steps name, kept open until the process has its own.
    pub descriptors: Vec<OwnedFd>,
}

/// A process that was made.
#[derive(Debug)]
pub struct Process {
    /// Its id in this process's pid namespace.
    pub pid: u32,
    /// A descriptor that stands for it, whatever becomes of the number.
    pub pidfd: OwnedFd,
    shared: Option<Box<Shared>>,
}

/// What the child reads while it shares the parent's memory. It stays in place until the child has left.
#[derive(Debug)]
struct Shared {
    launch: Launch,
    report: Report,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    clone: clone_args,
    stack: Stack,
    /// The stack of the process in between, which joins namespaces and makes the real one.
    first_stack: Option<Stack>,
    pidfd: Box<i32>,
}

// SAFETY: the pointers lead into `launch`, which the same box owns and nobody changes.
unsafe impl Send for Shared {}

impl Process {
    /// Makes the process and waits until it has become its program, waits to be started, or has failed.
    ///
    /// `parent` is called for each gate, with the process's id; its error ends the process.
    ///
    /// # Errors
    ///
    /// What the step that failed says of itself, at its place in config.json.
    pub fn spawn(launch: Launch, parent: &mut dyn FnMut(Gate, u32) -> Result<()>) -> Result<Self> {
        let mut shared = Shared::new(launch)?;
        let masked = SignalsBlocked::new();
        let made = shared.make();
        drop(masked);
        let (pid, pidfd) = made.map_err(|errno| explain_clone(&shared.launch, errno))?;
        let mut process = Self { pid, pidfd, shared: Some(shared) };
        process.attend(parent)?;
        Ok(process)
    }

    /// Whether the process waits to be started.
    pub fn is_held(&self) -> bool {
        self.shared.is_some()
    }

    /// Waits until a process that was held, and has been given its byte, has become its program.
    pub fn started(&mut self) -> Result<()> {
        if let Some(shared) = &self.shared {
            // It may not have read the byte yet: HELD is no news here.
            while shared.report.state.load(Ordering::Acquire) == HELD {
                wait(&shared.report.state, HELD);
            }
        }
        self.attend(&mut |_, _| Ok(()))
    }

    fn attend(&mut self, parent: &mut dyn FnMut(Gate, u32) -> Result<()>) -> Result<()> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let mut refused = None;
        loop {
            let gate = match shared.report.wait() {
                GONE => break,
                HELD => return Ok(()),
                AT_IDS => Gate::IdMaps,
                _ => Gate::Hooks,
            };
            match parent(gate, self.pid) {
                Ok(()) => shared.report.open(true),
                Err(error) => {
                    refused = Some(error);
                    shared.report.open(false);
                }
            }
        }
        let Some(mut shared) = self.shared.take() else { return Ok(()) };
        let failed = refused.or_else(|| shared.failure());
        if let Some(error) = failed.or_else(|| shared.program_failure().err()) {
            let _ = self.wait();
            return Err(error);
        }
        Ok(())
    }

    /// Waits for the process's end.
    pub fn wait(&self) -> Result<Exit> {
        use std::os::fd::AsFd as _;
        let options = WaitIdOptions::EXITED;
        let status = rustix::io::retry_on_intr(|| rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), options))
            .map_err(|errno| Error::machine(format!("wait for process {}", self.pid), errno))?;
        Ok(status.map_or(Exit::Code(125), |status| match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Exit::Code(u8::try_from(code & 0xff).unwrap_or_default()),
            (None, signal) => Exit::Signal(signal.unwrap_or_default()),
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
    pub fn leave(mut self) -> (u32, Option<OwnedFd>) {
        let pidfd = self.pidfd.try_clone().ok();
        std::mem::forget(self.shared.take());
        (self.pid, pidfd)
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
}

impl Shared {
    fn new(launch: Launch) -> Result<Box<Self>> {
        let pointers = |texts: &[CString]| -> Vec<*const c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let stack = Stack::new()?;
        let first_stack = if launch.joined_before.is_empty() { None } else { Some(Stack::new()?) };
        Ok(Box::new(Self {
            arguments: pointers(&launch.program.arguments),
            environment: pointers(&launch.program.environment),
            report: Report::new(),
            // SAFETY: a structure of integers; all zero means that nothing is asked for.
            clone: unsafe { std::mem::zeroed() },
            stack,
            first_stack,
            pidfd: Box::new(-1),
            launch,
        }))
    }

    /// Makes the process; returns its id and pidfd.
    fn make(&mut self) -> std::result::Result<(u32, OwnedFd), Errno> {
        let shares = general::CLONE_VM | general::CLONE_PIDFD | general::CLONE_CHILD_CLEARTID;
        let mut flags = u64::from(shares) | general::CLONE_CLEAR_SIGHAND | u64::from(self.launch.namespaces);
        if !self.launch.attended {
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
            cgroup: self.launch.cgroup.as_ref().map_or(0, |fd| u64::try_from(fd.as_raw_fd()).unwrap_or_default()),
        };
        let data = std::ptr::from_mut(self).cast::<c_void>();
        let (pid, pidfd) = if let Some(first) = &self.first_stack {
            // A process in between joins the namespaces; the real one becomes this process's child, not its.
            let flags = general::CLONE_VM | general::CLONE_VFORK | general::CLONE_FILES;
            let between = clone_args {
                flags: u64::from(flags) | general::CLONE_CLEAR_SIGHAND,
                stack: first.base as u64,
                stack_size: first.size as u64,
                pidfd: 0,
                child_tid: 0,
                exit_signal: general::SIGCHLD.into(),
                cgroup: 0,
                ..self.clone
            };
            self.clone.flags |= u64::from(general::CLONE_PARENT);
            self.clone.exit_signal = 0;
            // SAFETY: both stacks are this box's own, and it stays until both processes have left the memory.
            let between = unsafe { raw::clone3(&raw const between, join_and_make, data) }?;
            let status = rustix::process::waitpid(rustix::process::Pid::from_raw(between as i32), rustix::process::WaitOptions::empty());
            debug_assert!(status.is_ok());
            match self.report.errno.load(Ordering::Acquire) {
                0 => (self.report.pid.load(Ordering::Acquire), self.report.pidfd.load(Ordering::Acquire)),
                errno => return Err(Errno::from_raw_os_error(errno)),
            }
        } else {
            // SAFETY: the stack is this box's own, and it stays until the process has left the memory.
            let pid = unsafe { raw::clone3(&raw const self.clone, begin, data) }?;
            (pid, *self.pidfd)
        };
        if pidfd < 0 {
            return Err(Errno::BADF);
        }
        // SAFETY: the kernel has just made this descriptor for us (clone(2), CLONE_PIDFD).
        Ok((pid, unsafe { OwnedFd::from_raw_fd(pidfd) }))
    }

    /// What went wrong in the child before its `execve`.
    fn failure(&self) -> Option<Error> {
        let errno = self.report.errno.load(Ordering::Acquire);
        let index = self.report.step.load(Ordering::Acquire) as usize;
        let step = self.launch.steps.get(index);
        if errno == 0 {
            // Every step leads on; a child that was killed on the way has left no word.
            let step = step?;
            let message = format!("the process was killed while it was to {}", step.operation);
            let help = "a memory limit below what a process needs does this";
            return Some(Error::new(Kind::Machine, message).help(help));
        }
        let errno = Errno::from_raw_os_error(errno);
        let Some(step) = step else {
            return Some(Error::machine("execute the start of the program", errno));
        };
        let error = step.operation.explain(errno);
        Some(if let Some(place) = &step.place { error.at(place) } else { error })
    }

    /// What the trampoline says: nothing when the user's program runs.
    fn program_failure(&mut self) -> Result<()> {
        crate::trampoline::outcome(&self.launch.program.failure, &self.launch.program.arguments)
    }
}

/// In the process in between: joins namespaces, makes the real process, ends.
extern "C" fn join_and_make(data: *mut c_void) -> ! {
    // SAFETY: `data` is the box that `make` made and keeps; the maker sleeps (CLONE_VFORK).
    let shared = unsafe { &*data.cast::<Shared>() };
    let made = shared
        .launch
        .joined_before
        .iter()
        .try_for_each(|join| Linux.setns(join.fd, join.kind.flag()))
        // SAFETY: the second stack is the box's own too.
        .and_then(|()| unsafe { raw::clone3(&raw const shared.clone, begin, data) });
    match made {
        Ok(pid) => {
            shared.report.pid.store(pid, Ordering::Release);
            shared.report.pidfd.store(*shared.pidfd, Ordering::Release);
        }
        Err(errno) => shared.report.errno.store(errno.raw_os_error(), Ordering::Release),
    }
    exit(0)
}

/// In the new process: carries the steps out and becomes the program.
extern "C" fn begin(data: *mut c_void) -> ! {
    // SAFETY: `data` is the box that `make` made; it stays until this process has left the memory.
    let shared = unsafe { &*data.cast::<Shared>() };
    let report = &shared.report;
    let mut child = Child::new(&Linux, report, shared.launch.in_user_namespace);
    let mut index = 0;
    for step in &shared.launch.steps {
        report.step.store(index, Ordering::Release);
        if let Err(errno) = step.operation.carry_out(&mut child) {
            report.errno.store(errno.raw_os_error(), Ordering::Release);
            exit(125)
        }
        index += 1;
    }
    report.step.store(index, Ordering::Release);
    let arguments = [
        shared.launch.program.image.as_raw_fd() as usize,
        c"".as_ptr() as usize,
        shared.arguments.as_ptr() as usize,
        shared.environment.as_ptr() as usize,
        general::AT_EMPTY_PATH as usize,
        0,
    ];
    // SAFETY: both arrays end with a null pointer and lead into the box.
    if let Err(errno) = unsafe { raw::syscall(general::__NR_execveat, arguments) } {
        report.errno.store(errno.raw_os_error(), Ordering::Release);
    }
    exit(125)
}

fn exit(code: usize) -> ! {
    loop {
        // SAFETY: takes a number; does not return.
        let _ = unsafe { raw::syscall(general::__NR_exit_group, [code, 0, 0, 0, 0, 0]) };
    }
}

fn explain_clone(launch: &Launch, errno: Errno) -> Error {
    let names = crate::namespaces::names(launch.namespaces);
    let error = Error::machine(format!("make a process with new namespaces ({names})"), errno).at("/linux/namespaces");
    match errno {
        Errno::PERM => error.help("as a normal user the bundle needs a user namespace; `jobc doctor` says what this machine allows"),
        Errno::NOSPC | Errno::USERS => error.help("a limit of /proc/sys/user/max_*_namespaces, or the depth of user namespaces, is reached"),
        Errno::AGAIN => error.help("the limit of processes (ulimit -u, or pids.max) is reached"),
        Errno::BUSY | Errno::OPNOTSUPP => error.help("the control group cannot hold processes; see whether it has children with controllers"),
        _ => error,
    }
}

/// A stack for a process that shares our memory, with a page below it that faults.
#[derive(Debug)]
struct Stack {
    mapping: *mut c_void,
    base: usize,
    size: usize,
}

impl Stack {
    const GUARD: usize = 4096 * 16;
    const SIZE: usize = 64 * 1024;

    fn new() -> Result<Self> {
        use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
        let length = Self::GUARD + Self::SIZE;
        let machine = |errno| Error::machine("map a stack for the new process", errno);
        // SAFETY: a new mapping at an address of the kernel's choice takes nothing away from anybody.
        let mapping = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }
        .map_err(machine)?;
        // SAFETY: the range is the lower part of the mapping just made.
        unsafe { rustix::mm::mprotect(mapping, Self::GUARD, MprotectFlags::empty()) }.map_err(machine)?;
        Ok(Self { mapping, base: mapping as usize + Self::GUARD, size: Self::SIZE })
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and who ran on it has left the memory.
        let _ = unsafe { rustix::mm::munmap(self.mapping, Self::GUARD + Self::SIZE) };
    }
}

/// All signals blocked on this thread, so that none is delivered to a child on a foreign stack.
struct SignalsBlocked(u64);

impl SignalsBlocked {
    fn new() -> Self {
        let (all, mut before) = (u64::MAX, 0_u64);
        let mask = [
            general::SIG_BLOCK as usize,
            std::ptr::from_ref(&all) as usize,
            std::ptr::from_mut(&mut before) as usize,
            size_of::<u64>(),
            0,
            0,
        ];
        // SAFETY: both point to eight bytes on this stack (rt_sigprocmask(2)).
        let _ = unsafe { raw::syscall(general::__NR_rt_sigprocmask, mask) };
        Self(before)
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        let mask = [general::SIG_SETMASK as usize, std::ptr::from_ref(&self.0) as usize, 0, size_of::<u64>(), 0, 0];
        // SAFETY: as above.
        let _ = unsafe { raw::syscall(general::__NR_rt_sigprocmask, mask) };
    }
}
