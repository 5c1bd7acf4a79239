//! Reports between parent and child through their shared memory.

use std::fmt;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::thread::futex;

use jobc_sys::syscall::{Fd, Kernel};

/// Where the new process waits for its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The parent has systemd make the cgroup around this process.
    Cgroup,
    /// The parent writes the id maps, by newuidmap and newgidmap.
    IdMaps,
    /// The parent moves network devices into the namespace that this process is in.
    NetworkDevices,
    /// The parent runs the hooks that belong before the root is entered, in its own namespaces.
    Hooks,
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cgroup => "have systemd make its cgroup",
            Self::IdMaps => "map users and groups",
            Self::NetworkDevices => "move network devices",
            Self::Hooks => "run the hooks in the runtime namespace",
        })
    }
}

/// Reports between parent and child through their shared memory.
#[derive(Debug)]
pub struct Report {
    /// Where the child is: [`GONE`] once it has left the shared memory, by `execve` or by its end. A futex.
    pub(crate) state: AtomicU32,
    /// How many gates the parent has opened, or [`NEVER`]. A futex.
    pub(crate) opened: AtomicU32,
    /// The current step of the child.
    pub(crate) step: AtomicU32,
    /// Why that step failed.
    pub(crate) errno: AtomicI32,
    /// An additional value: a hook's exit code.
    pub(crate) detail: AtomicU32,
    /// The process id, as the parent sees it, where another process made the child for it.
    pub(crate) pid: AtomicU32,
}

pub(crate) const GONE: u32 = 0;
pub(crate) const RUNNING: u32 = 1;
pub(crate) const CREATED: u32 = 2;
pub(crate) const AT_ID_MAPS: u32 = 3;
pub(crate) const AT_HOOKS: u32 = 4;
pub(crate) const AT_CGROUP: u32 = 5;
pub(crate) const AT_NETWORK_DEVICES: u32 = 6;

pub(crate) const NEVER: u32 = u32::MAX;

/// How long a child may take to end after a failed step.
const LAST_CALLS_TIMEOUT: Duration = Duration::from_secs(2);

/// How often the parent of a running child looks whether a step has failed.
const CHECK_INTERVAL: futex::Timespec = futex::Timespec { tv_sec: 1, tv_nsec: 0 };

impl Report {
    /// The report of a process that has not started.
    pub fn new() -> Self {
        Self {
            state: AtomicU32::new(RUNNING),
            opened: AtomicU32::new(0),
            step: AtomicU32::new(0),
            errno: AtomicI32::new(0),
            detail: AtomicU32::new(0),
            pid: AtomicU32::new(0),
        }
    }

    /// In the child: waits until the parent has opened one more gate.
    pub fn wait_at(&self, gate: Gate) -> std::result::Result<(), Errno> {
        let before = self.opened.load(Ordering::Acquire);
        self.set_state(match gate {
            Gate::Cgroup => AT_CGROUP,
            Gate::IdMaps => AT_ID_MAPS,
            Gate::NetworkDevices => AT_NETWORK_DEVICES,
            Gate::Hooks => AT_HOOKS,
        });
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

    /// In the child: waits for a byte on a file descriptor; end-of-file without a byte ends the child.
    pub fn hold<K: Kernel>(&self, kernel: &K, fd: Fd) -> std::result::Result<(), Errno> {
        self.set_state(CREATED);
        let read = kernel.read(fd, &mut [0])?;
        self.state.store(RUNNING, Ordering::Release);
        if read == 1 { Ok(()) } else { Err(Errno::CANCELED) }
    }

    /// In the child: adds details about the step that is about to fail.
    pub fn add_detail(&self, detail: u32) {
        self.detail.store(detail, Ordering::Release);
    }

    fn set_state(&self, state: u32) {
        self.state.store(state, Ordering::Release);
        let _ = futex::wake(&self.state, futex::Flags::empty(), u32::MAX >> 1);
    }

    /// In the parent: opens the gate, or marks it as never opening.
    pub(crate) fn open_gate(&self, gate: bool) {
        // The parent continues only when the child has left its gate. One that was killed there stays gone: the
        // kernel reports that only once.
        let at_gate = |state| (state != GONE).then_some(RUNNING);
        let _ = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, at_gate);
        if gate {
            self.opened.fetch_add(1, Ordering::AcqRel);
        } else {
            self.opened.store(NEVER, Ordering::Release);
        }
        let _ = futex::wake(&self.opened, futex::Flags::empty(), u32::MAX >> 1);
    }

    /// In the parent: waits until the child is somewhere else than running.
    ///
    /// A child whose step has failed makes its last calls. A filter can hold them up for ever, where an agent decides
    /// them: `kill` ends the child then.
    pub(crate) fn futex_wait(&self, kill: &dyn Fn()) -> u32 {
        let mut failed: Option<Instant> = None;
        loop {
            match self.state.load(Ordering::Acquire) {
                RUNNING => {
                    let _ = futex::wait(&self.state, futex::Flags::empty(), RUNNING, Some(&CHECK_INTERVAL));
                    if self.errno.load(Ordering::Acquire) != 0
                        && failed.get_or_insert_with(Instant::now).elapsed() > LAST_CALLS_TIMEOUT
                    {
                        kill();
                    }
                }
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
pub(crate) fn wait(futex: &AtomicU32, value: u32) {
    // Not the private kind: the kernel wakes who waits for a child's end by the shared one (set_tid_address(2)).
    let _ = futex::wait(futex, futex::Flags::empty(), value, None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_killed_at_a_gate_is_not_waited_for() {
        let report = Report::new();
        report.set_state(AT_ID_MAPS);
        assert_eq!(report.futex_wait(&|| {}), AT_ID_MAPS);
        // As the kernel does when the process ends.
        report.state.store(GONE, Ordering::Release);
        report.open_gate(true);
        assert_eq!(report.futex_wait(&|| {}), GONE);
    }

    #[test]
    fn a_failed_child_that_does_not_exit_is_killed() {
        let report = Report::new();
        report.errno.store(1, Ordering::Release);
        let began = Instant::now();
        assert_eq!(report.futex_wait(&|| report.state.store(GONE, Ordering::Release)), GONE);
        assert!(began.elapsed() > LAST_CALLS_TIMEOUT, "{:?}", began.elapsed());
    }
}
