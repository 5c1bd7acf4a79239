//! The processes of a task that a signal of a user is for.

mod recipients;

use std::collections::BTreeSet;

use jobc_sys::error::Result;
use jobc_sys::pid_namespace::Member;
use jobc_sys::signals::{Disposition, Signal};
use recipients::recipients;

/// The program of a task and the processes that belong to it.
pub(crate) struct ProgramProcesses {
    /// The program itself: the first process, or the child of an init of this runtime.
    pub(crate) pid: u32,
    /// All but the first process; below an init the program is one of them.
    pub(crate) others: Vec<Member>,
}

impl ProgramProcesses {
    /// How the program handles a signal.
    pub(crate) fn disposition(&self, signal: Signal) -> Option<Disposition> {
        Disposition::of(self.pid, signal)
    }

    /// All but an init.
    fn pids(&self) -> impl Iterator<Item = u32> {
        std::iter::once(self.pid).chain(self.others.iter().map(|other| other.pid))
    }

    /// Whether a process handles a signal.
    pub(crate) fn handles(&self, signal: Signal) -> bool {
        self.pids().any(|pid| handles(pid, signal) || signal == Signal::INT && traps_interrupt(pid))
    }

    /// Whether the program itself decides what a signal does: it handles or ignores it, or the signal ends no process.
    pub(crate) fn decides(&self, signal: Signal) -> bool {
        self.disposition(signal) == Some(Disposition::Ignored)
            || handles(self.pid, signal)
            || !signal.ends_by_default()
    }

    /// Sends a signal to the program if it decides what that does, and otherwise to the [`recipients`] among the others.
    pub(crate) fn send(&self, signal: Signal) -> Result<()> {
        if self.decides(signal) {
            return signal.send_to(self.pid);
        }
        let mut all = BTreeSet::from_iter(recipients(&self.others, |pid| handles(pid, signal)));
        if signal == Signal::INT {
            all.extend(self.pids().filter(|&pid| traps_interrupt(pid)));
        }
        all.into_iter().try_for_each(|pid| signal.send_to(pid))
    }

    /// Sends a signal to the [`recipients`] below the program, whatever its own handler is.
    pub(crate) fn send_below(&self, signal: Signal) -> Result<()> {
        recipients(&self.others, |pid| handles(pid, signal))
            .into_iter()
            .try_for_each(|pid| signal.send_to(pid))
    }

    /// The same of a program that is in no PID namespace of its own: where none of the others handles the signal, it
    /// ends the program, too.
    pub(crate) fn send_to_all(&self, signal: Signal) -> Result<()> {
        let is_handled = self.others.iter().any(|other| handles(other.pid, signal));
        if !self.others.is_empty() {
            self.send(signal)?;
        }
        if self.others.is_empty() || !is_handled && !self.decides(signal) {
            return signal.send_to(self.pid);
        }
        Ok(())
    }
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

/// Whether a process is a shell, by its name in proc_pid_comm(5).
fn is_shell(pid: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    matches!(name.trim_end(), "bash" | "sh" | "dash" | "ash" | "busybox" | "zsh" | "ksh" | "mksh")
}
