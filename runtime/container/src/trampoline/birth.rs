//! How the trampoline creates the last process, in the pid namespace of a running container.
//!
//! A process of the container sees another from its first moment on, and with CAP_SYS_PTRACE it may read and change it.
//! So an additional process is created in two steps: the first one enters the container's namespaces except the pid
//! namespace, which only its children are in (pid_namespaces(7)), drops all rights that the program must not have, and
//! executes the trampoline. The trampoline creates the second one. There, a process of the container finds only the
//! program's own arguments, environment and rights, and a few hundred bytes of memory.
//!
//! The second process becomes a child of the runtime (`CLONE_PARENT`), which learns its number by a [`BORN`] report.

use std::os::fd::RawFd;

use linux_raw_sys::general::{
    __NR_capset, __NR_clone, __NR_exit_group, __NR_ioctl, __NR_ppoll, __NR_prctl, __NR_setsid, __NR_write,
    CLONE_PARENT, SIGKILL,
};
use linux_raw_sys::ioctl::TIOCSCTTY;
use linux_raw_sys::prctl::PR_SET_PDEATHSIG;

use super::failure::Failure;
use crate::seccomp::Program;
use crate::seccomp::decide::Call;

/// The bit of a report that the other bits are the number of the second process.
pub(super) const BORN: u32 = 0x8000_0000;

/// Flags of `birth` in the image's header: a second process is made.
pub(super) const MAKE: u32 = 1;

/// It is made after the filter was loaded.
pub(super) const AFTER_FILTER: u32 = 2;

/// It ends with the runtime.
pub(super) const END_WITH_PARENT: u32 = 4;

/// Its standard input becomes the terminal of its session.
pub(super) const TERMINAL: u32 = 8;

/// The program's process is a child of this one, which becomes its init ([`super::init`]).
pub(super) const BELOW_INIT: u32 = 16;

/// Which process becomes the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgramProcess {
    /// The trampoline's own.
    #[default]
    Same,
    /// Another child of the runtime.
    Last(Birth),
    /// A child of the trampoline's, which becomes its init.
    BelowInit {
        /// Whether its standard input is its terminal.
        terminal: bool,
    },
}

impl ProgramProcess {
    /// The flags for the header.
    pub(super) fn flags(self, filter: Option<&Program>, report: RawFd) -> u32 {
        match self {
            Self::Same => 0,
            Self::Last(birth) => birth.flags(filter, report),
            Self::BelowInit { terminal } => super::init::flags(filter, terminal),
        }
    }

    /// Whether the trampoline creates another child of the runtime, and ends.
    pub fn is_last(self) -> bool {
        matches!(self, Self::Last(_))
    }
}

/// The second process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Birth {
    /// Whether it ends with the runtime.
    pub end_with_parent: bool,
    /// Whether its standard input is its terminal.
    pub terminal: bool,
}

impl Birth {
    /// The flags for the header.
    pub(super) fn flags(self, filter: Option<&Program>, report: RawFd) -> u32 {
        let after = filter.is_some_and(|filter| self.is_after(filter, report));
        [
            (true, MAKE),
            (after, AFTER_FILTER),
            (self.end_with_parent, END_WITH_PARENT),
            (self.terminal, TERMINAL),
        ]
        .into_iter()
        .map(|(is_set, flag)| if is_set { flag } else { 0 })
        .sum()
    }

    /// Whether the second process is made after the filter was loaded: where the right to load it is none of the
    /// program's, and the filter allows all calls that follow. A filter that denies one of them is loaded by the second
    /// process, as every filter is that needs no right, or has an agent: that is given the process.
    fn is_after(self, filter: &Program, report: RawFd) -> bool {
        let (Some(with), Some(without)) = (filter.rights_after, filter.rights_without) else { return false };
        let report = u64::try_from(report).unwrap_or_default();
        let always = [
            Call::new(__NR_capset, &[]),
            Call::new(__NR_clone, &[CLONE_PARENT.into()]),
            Call::new(__NR_write, &[report, 0, Failure::SIZE as u64]),
            Call::new(__NR_exit_group, &[]),
            Call::new(__NR_setsid, &[]),
        ];
        let ends = [
            Call::new(__NR_prctl, &[PR_SET_PDEATHSIG.into(), SIGKILL.into()]),
            Call::new(__NR_ppoll, &[0, 1]),
        ];
        let terminal = [Call::new(__NR_ioctl, &[0, TIOCSCTTY.into()])];
        let calls = always
            .iter()
            .chain(ends.iter().filter(|_| self.end_with_parent))
            .chain(terminal.iter().filter(|_| self.terminal));
        with != without && !filter.notifies() && { calls }.all(|call| call.is_allowed_by(filter))
    }
}

/// The number of the second process, where a report is of it.
pub(super) fn born(report: [u8; Failure::SIZE]) -> Option<u32> {
    let code = u32::from_ne_bytes(report);
    (code & BORN != 0).then_some(code & !BORN)
}
