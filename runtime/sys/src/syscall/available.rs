//! The syscalls that the kernel has.
#![allow(unsafe_code)]

use linux_raw_sys::general as number;
use rustix::io::Errno;

use super::raw;

/// The syscalls containers are made with that are younger than Linux 5.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Syscall {
    /// clone3(2).
    Clone3,
    /// close_range(2).
    CloseRange,
    /// fsconfig(2).
    Fsconfig,
    /// fsmount(2).
    Fsmount,
    /// fsopen(2).
    Fsopen,
    /// mount_setattr(2).
    MountSetattr,
    /// move_mount(2).
    MoveMount,
    /// open_tree(2).
    OpenTree,
    /// openat2(2).
    Openat2,
    /// pidfd_open(2).
    PidfdOpen,
    /// pidfd_send_signal(2).
    PidfdSendSignal,
}

impl Syscall {
    /// All of them with their names and the Linux release that brought them.
    pub const TABLE: [(Self, &'static str, &'static str); 11] = [
        (Self::Clone3, "clone3", "5.3"),
        (Self::CloseRange, "close_range", "5.9"),
        (Self::Fsconfig, "fsconfig", "5.2"),
        (Self::Fsmount, "fsmount", "5.2"),
        (Self::Fsopen, "fsopen", "5.2"),
        (Self::MountSetattr, "mount_setattr", "5.12"),
        (Self::MoveMount, "move_mount", "5.2"),
        (Self::OpenTree, "open_tree", "5.2"),
        (Self::Openat2, "openat2", "5.6"),
        (Self::PidfdOpen, "pidfd_open", "5.3"),
        (Self::PidfdSendSignal, "pidfd_send_signal", "5.1"),
    ];

    fn number(self) -> u32 {
        match self {
            Self::Clone3 => number::__NR_clone3,
            Self::CloseRange => number::__NR_close_range,
            Self::Fsconfig => number::__NR_fsconfig,
            Self::Fsmount => number::__NR_fsmount,
            Self::Fsopen => number::__NR_fsopen,
            Self::MountSetattr => number::__NR_mount_setattr,
            Self::MoveMount => number::__NR_move_mount,
            Self::OpenTree => number::__NR_open_tree,
            Self::Openat2 => number::__NR_openat2,
            Self::PidfdOpen => number::__NR_pidfd_open,
            Self::PidfdSendSignal => number::__NR_pidfd_send_signal,
        }
    }
}

/// Whether the kernel has a syscall that no filter hides.
///
/// The call is made with arguments that no call accepts, so it fails; only `ENOSYS` means that it does not exist.
pub fn available(call: Syscall) -> bool {
    // SAFETY: every pointer and file descriptor is -1, an address that is never mapped and a number that is never open:
    // each of these calls reads its arguments before it does anything, and fails.
    let result = unsafe { raw::syscall(call.number(), [usize::MAX; 6]) };
    result != Err(Errno::NOSYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_can_do_is_available() {
        let pid = rustix::process::getpid();
        let has = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).is_ok();
        assert_eq!(available(Syscall::PidfdOpen), has);
    }

    #[test]
    fn asking_does_nothing_and_an_unknown_number_is_seen() {
        let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let before = open();
        for (call, name, _) in Syscall::TABLE {
            let result = unsafe { raw::syscall(call.number(), [usize::MAX; 6]) };
            assert!(result.is_err(), "{name} did something");
        }
        assert_eq!(open(), before);
        let none = unsafe { raw::syscall(100_000, [usize::MAX; 6]) };
        assert_eq!(none, Err(Errno::NOSYS));
    }
}
