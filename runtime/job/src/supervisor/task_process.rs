//! What runs an attempt of a task: a container of this host, or a step of Slurm on a node.

use std::borrow::Cow;
use std::fmt::Debug;
use std::os::fd::BorrowedFd;

use crate::discarded::WrittenLayers;
use crate::lifecycle::EndSignal;
use jobc_container::cgroup::{Cgroup, CgroupRecord};
use jobc_container::container::Container;
use jobc_container::process::Exit;
use jobc_sys::error::Result;
use jobc_sys::signals::Signal;
use jobc_sys::syscall::ended::EndedUsage;

/// A created attempt, which waits to be let go, then runs, then has ended.
pub(super) trait TaskProcess: Debug + Send {
    /// Readable once it has ended.
    fn pidfd(&self) -> BorrowedFd<'_>;

    /// The process of this host that it is.
    fn pid(&self) -> u32;

    /// The name of its container on this host, if it has one.
    fn container(&self) -> Option<&str> {
        None
    }

    /// Its cgroups on this host.
    fn cgroup(&self) -> Cgroup {
        Cgroup::open(CgroupRecord::default())
    }

    /// Lets it go; [`wait_started`](Self::wait_started) waits until its program runs.
    fn release(&mut self);

    /// Waits until its program runs.
    ///
    /// # Errors
    ///
    /// Why it could not be executed; the process has exited.
    fn wait_started(&mut self) -> Result<()> {
        Ok(())
    }

    /// Has it end by a signal of its job's end.
    fn end(&mut self, signal: EndSignal) -> Result<()>;

    /// Sends a signal as a user at a terminal means it.
    fn signal(&mut self, signal: Signal) -> Result<()>;

    /// What of its output the program wrote; the rest is for [`take_reports`](Self::take_reports).
    fn own_output<'a>(&mut self, _stream: usize, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        Cow::Borrowed(bytes)
    }

    /// What it has reported since the last time.
    fn take_reports(&mut self) -> Vec<TaskReport> {
        Vec::new()
    }

    /// The resource usage of its processes, once its first process has ended.
    fn ended_usage(&self) -> Option<EndedUsage> {
        None
    }

    /// Takes the writable layers of its root, once.
    fn take_layers(&mut self) -> Option<WrittenLayers> {
        None
    }

    /// Why it ended, as far as its own host has said.
    fn end_note(&self) -> Option<String> {
        None
    }

    /// Takes in the end of its first process, with which everything else of it has ended.
    fn reap(self: Box<Self>) -> Result<(Exit, Option<Box<Container>>)>;

    /// Takes in that its program could not be executed: its process is gone.
    fn into_container(self: Box<Self>) -> Option<Box<Container>>;
}

/// What an attempt on another host says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TaskReport {
    /// Its program runs there, as this process.
    Started {
        /// The number of the process on its node.
        pid: u32,
    },
    /// The same of one of several ranks.
    RankStarted {
        /// Its number.
        rank: u32,
        /// Its node.
        node: String,
        /// The number of the process there.
        pid: u32,
    },
    /// The program of a rank has ended.
    RankEnded {
        /// Its number.
        rank: u32,
        /// Its exit code.
        code: u8,
    },
    /// It is ready.
    Ready,
    /// It was not ready in time.
    NotReady,
}
