//! Signals: forwarded to the container, and waited for.
//!
//! They are blocked and read from a file descriptor (signalfd(2)), so that one `poll` waits for signals, for the
//! container's end and for its terminal, and no handler interrupts other code.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use jobc_schema::signal;
use rustix::io::Errno;

use crate::error::{Error, Kind, Result};
use crate::host::ProcessStatus;
use crate::syscall::signals as kernel;

/// A signal by the kernel's number, 1 to 64, or the 0 of [`Signal::parse_or_probe`]. The C library keeps some to
/// itself; a container may have another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal(i32);

impl Signal {
    /// Ctrl-C.
    pub const INT: Self = Self(2);
    /// Ctrl-\.
    pub const QUIT: Self = Self(3);
    /// Cannot be caught.
    pub const KILL: Self = Self(9);
    /// Ends a program that does not catch it.
    pub const TERM: Self = Self(15);
    /// The terminal went away.
    pub const HUP: Self = Self(1);
    /// Continues a process that is stopped.
    pub const CONT: Self = Self(18);
    /// The terminal's size changed.
    pub const WINCH: Self = Self(28);

    /// The signal of a number from 1 to 64.
    pub fn by_number(number: i32) -> Option<Self> {
        (1..=64).contains(&number).then_some(Self(number))
    }

    /// Reads a name, with or without `SIG`, in any case, or a number from 1 to 64 (signal(7)).
    pub fn parse(text: &str) -> Result<Self> {
        signal::number(text).and_then(Self::by_number).ok_or_else(|| {
            Error::new(Kind::State, format!("unknown signal `{text}`"))
                .help("give a name, such as `TERM` or `SIGTERM`, or a number from 1 to 64")
        })
    }

    /// As above, and 0, with which kill(2) only checks whether the process exists.
    pub fn parse_or_probe(text: &str) -> Result<Self> {
        if text == "0" { Ok(Self(0)) } else { Self::parse(text) }
    }

    /// Its number.
    pub fn number(self) -> i32 {
        self.0
    }

    /// Its bit in a set of signals.
    fn bit(self) -> u64 {
        if self.0 == 0 { 0 } else { 1 << (self.0 - 1) }
    }

    /// Whether its default action ends the process.
    pub fn ends_by_default(self) -> bool {
        // CHLD, CONT, STOP, TSTP, TTIN, TTOU, URG and WINCH do not.
        !matches!(self.0, 17..=23 | 28)
    }

    /// Sends it to a process; false where that is gone.
    pub fn send(self, pidfd: impl AsFd) -> Result<bool> {
        match kernel::send(pidfd.as_fd(), self.0) {
            Ok(()) => Ok(true),
            Err(Errno::SRCH) => Ok(false),
            Err(errno) => Err(Error::system(format!("send the signal {self}"), errno)),
        }
    }

    /// Sends it to a process by PID; a process that has exited is not an error.
    pub fn send_to(self, pid: u32) -> Result<()> {
        let Some(number) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else {
            return Ok(());
        };
        match rustix::process::pidfd_open(number, rustix::process::PidfdFlags::empty()) {
            Ok(pidfd) => self.send(&pidfd).map(drop),
            Err(Errno::SRCH) => Ok(()),
            Err(errno) => Err(Error::system(format!("open process {pid}"), errno)),
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match signal::name(self.0) {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// Has writing to a reader that went away be an error, instead of this process's end.
///
/// The standard library does so before `main`; a program that begins without it asks for it.
///
/// # Errors
///
/// The kernel's; it has none for this.
pub fn ignore_broken_pipes() -> rustix::io::Result<()> {
    kernel::ignore_broken_pipes()
}

/// Calls a function that starts a program, with no signal blocked in this thread: a program inherits blocked signals.
///
/// # Errors
///
/// The kernel's; it has none for this.
pub fn with_none_blocked<T>(start: impl FnOnce() -> T) -> Result<T> {
    let failed = |errno| Error::system("change the blocked signals", errno);
    let before = kernel::block(0).map_err(failed)?;
    kernel::set_blocked(0).map_err(failed)?;
    let started = start();
    kernel::set_blocked(before).map_err(failed)?;
    Ok(started)
}

/// How a process handles a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Nothing: the kernel's default applies.
    Default,
    /// Nothing, and as the first process of a pid namespace it is exempt from the kernel's default action
    /// (pid_namespaces(7)).
    Exempt,
    /// It ignores it.
    Ignored,
    /// It has a handler, or waits for it.
    Caught,
}

impl Disposition {
    /// How a process handles a signal; `None` if it has ended (proc_pid_status(5)).
    ///
    /// Waits at most 50 ms while the process creates another one: meanwhile it blocks every signal, and the first
    /// process of a pid namespace would then lose the signal.
    pub fn of(pid: u32, signal: Signal) -> Option<Self> {
        let path = format!("/proc/{pid}/status");
        let mut status = std::fs::read_to_string(&path).ok()?;
        for _ in 0..50 {
            if !blocks_for_a_moment(&status, signal) {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
            status = std::fs::read_to_string(&path).ok()?;
        }
        Self::parse(&status, signal)
    }

    fn parse(status: &str, signal: Signal) -> Option<Self> {
        let has = |field| is_in_set(status, field, signal);
        // Its number in each namespace, the innermost last: more than one where it is in another one than ours.
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        let first = numbers.split_ascii_whitespace().skip(1).last() == Some("1");
        let (blocked, ignored, caught) = (has("SigBlk:")?, has("SigIgn:")?, has("SigCgt:")?);
        Some(match () {
            () if caught || blocked => Self::Caught,
            () if ignored => Self::Ignored,
            () if first => Self::Exempt,
            () => Self::Default,
        })
    }
}

/// Whether a set of signals in a process's status has a signal.
fn is_in_set(status: &str, field: &str, signal: Signal) -> Option<bool> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    Some(u64::from_str_radix(line.trim(), 16).ok()? & signal.bit() != 0)
}

/// Whether a process blocks a signal but does not wait for it: it runs, or sleeps in the kernel until the process that
/// it made by vfork(2) executes a program. A process that waits for signals sleeps interruptibly.
fn blocks_for_a_moment(status: &str, signal: Signal) -> bool {
    let has = |field| is_in_set(status, field, signal) == Some(true);
    let state = status.lines().find_map(|line| line.strip_prefix("State:"));
    let is_busy = state.is_some_and(|state| state.trim_start().starts_with(['R', 'D']));
    is_busy && has("SigBlk:") && !has("SigCgt:")
}

/// The signals that belong to the container, blocked in this thread until dropped, and read one by one.
#[derive(Debug)]
pub struct Signals {
    signalfd: OwnedFd,
    blocked_before: u64,
}

impl Signals {
    /// Blocks the forwarded signals: all but those that stop or continue this process, those for its own faults,
    /// `CHLD`, `PIPE` and `URG`, and those that were ignored at its start, as by nohup(1).
    pub fn block_forwarded() -> Result<Self> {
        Self::block(0)
    }

    /// As above with `CONT`, by which batch systems announce the end, and which still continues this process.
    pub fn block_forwarded_and_continue() -> Result<Self> {
        Self::block(Signal::CONT.bit())
    }

    fn block(more: u64) -> Result<Self> {
        let by_the_user = [Signal::HUP, Signal::INT, Signal::QUIT].map(Signal::bit).iter().sum::<u64>();
        let ignored = ProcessStatus::of_this_process()?.ignored_signals & by_the_user;
        let all =
            FORWARDED.iter().copied().chain(34..=64).fold(more, |set, number| set | Signal(number).bit());
        let set = all & !ignored;
        let descriptor = kernel::signalfd(set).map_err(|errno| Error::system("wait for signals", errno))?;
        let blocked_before = kernel::block(set).map_err(|errno| Error::system("wait for signals", errno))?;
        Ok(Self { signalfd: descriptor, blocked_before })
    }

    /// The next pending signal; `None` if there is none.
    pub fn next(&self) -> Option<Signal> {
        self.next_with_sender().map(|(signal, _)| signal)
    }

    /// The next signal, and who sent it.
    pub fn next_with_sender(&self) -> Option<(Signal, Sender)> {
        /// A signal that the kernel itself sends (`SI_KERNEL`, sigaction(2)).
        const BY_KERNEL: i32 = 0x80;
        // struct signalfd_siginfo has 128 bytes and begins with the number, an error number and the code.
        let mut info = [0_u8; 128];
        let Ok(128) = rustix::io::read(&self.signalfd, &mut info) else { return None };
        let word = |at: usize| i32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
        let sender = if word(8) == BY_KERNEL { Sender::Terminal } else { Sender::Process };
        Some((Signal::by_number(word(0))?, sender))
    }
}

/// The sender of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The terminal, to its foreground process group: a key, or a hangup.
    Terminal,
    /// A process, from this one.
    Process,
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signalfd.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let _ = kernel::set_blocked(self.blocked_before);
    }
}

/// HUP, INT, QUIT, USR1, USR2, ALRM, TERM, STKFLT, VTALRM, PROF, WINCH, IO, PWR.
const FORWARDED: &[i32] = &[1, 2, 3, 10, 12, 14, 15, 16, 26, 27, 28, 29, 30];

#[cfg(test)]
mod tests;
