//! The resource usage of an ended child, by waitid(2), whose `rusage` the syscall crate lacks.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd as _, BorrowedFd};

use linux_raw_sys::general;
use rustix::io::Errno;

use super::raw::syscall;

/// The usage of a process and of its reaped children (getrusage(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedUsage {
    /// CPU time in microseconds.
    pub cpu_usec: u64,
    /// The peak memory of one of the processes, in bytes.
    pub largest_resident_bytes: u64,
    /// Bytes read from disks.
    pub read_bytes: u64,
    /// Bytes written to disks.
    pub written_bytes: u64,
}

/// The usage of a child that has ended but is not reaped yet; `None` while it runs.
///
/// For the first process of a pid namespace it is the usage of the whole namespace, except for children whose parents
/// ignore `SIGCHLD`: the kernel reaps all others for it (zap_pid_ns_processes in kernel/pid_namespace.c).
///
/// # Errors
///
/// `ECHILD` for a process that is not a child of this one.
pub fn usage(pidfd: BorrowedFd<'_>) -> Result<Option<EndedUsage>, Errno> {
    // `si_signo` comes first, and stays 0 if the child has not ended.
    let mut info = [0_i32; 32];
    // SAFETY: a structure of numbers, for which zeros are valid.
    let mut used: general::rusage = unsafe { std::mem::zeroed() };
    let options = general::WEXITED | general::WNOHANG | general::WNOWAIT;
    let arguments = [
        general::P_PIDFD as usize,
        pidfd.as_raw_fd().unsigned_abs() as usize,
        &raw mut info as usize,
        options as usize,
        &raw mut used as usize,
        0,
    ];
    // SAFETY: a siginfo_t has 128 bytes; both structures live until the call is over.
    unsafe { syscall(general::__NR_waitid, arguments) }?;
    if info[0] == 0 {
        return Ok(None);
    }
    let micros = |time: general::__kernel_old_timeval| {
        u64::try_from(time.tv_sec).unwrap_or_default() * 1_000_000
            + u64::try_from(time.tv_usec).unwrap_or_default()
    };
    // The kernel counts memory in KiB, and disks in blocks of 512 bytes.
    let number = |value: i64, unit: u64| u64::try_from(value).unwrap_or_default().saturating_mul(unit);
    Ok(Some(EndedUsage {
        cpu_usec: micros(used.ru_utime) + micros(used.ru_stime),
        largest_resident_bytes: number(used.ru_maxrss, 1024),
        read_bytes: number(used.ru_inblock, 512),
        written_bytes: number(used.ru_oublock, 512),
    }))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;
    use std::process::{Command, Stdio};

    use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};

    use super::*;

    #[test]
    fn a_child_is_counted_with_its_children_and_can_be_waited_for_afterwards() {
        // The inner shell computes, and the outer one takes its end in.
        let script = "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; read line; exit 3";
        let mut child = Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        assert_eq!(usage(pidfd.as_fd()), Ok(None), "it runs");
        drop(child.stdin.take());
        waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        let used = usage(pidfd.as_fd()).unwrap().expect("it has ended");
        assert!(used.cpu_usec > 10_000 && used.largest_resident_bytes > 100 << 10, "{used:?}");
        assert_eq!(child.wait().unwrap().code(), Some(3));
        assert_eq!(usage(pidfd.as_fd()), Err(Errno::CHILD), "its end was taken in");
    }
}
