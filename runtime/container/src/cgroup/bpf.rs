//! The parts of bpf(2) that a device program needs: load, and attach to a group.
//!
//! The system-call crate has no bpf(2). The structures are the first fields of `union bpf_attr` (linux/bpf.h) for each
//! command; the kernel takes a shorter one and reads the rest as zero.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use linux_raw_sys::general::__NR_bpf;
use rustix::io::Errno;

use super::devices::program::Instruction;
use jobc_sys::syscall::raw;

/// `BPF_PROG_LOAD`.
const BPF_PROG_LOAD: usize = 5;
/// `BPF_PROG_ATTACH`.
const BPF_PROG_ATTACH: usize = 8;
/// `BPF_PROG_TYPE_CGROUP_DEVICE`.
const BPF_PROG_TYPE_CGROUP_DEVICE: u32 = 15;
/// `BPF_CGROUP_DEVICE`.
const BPF_CGROUP_DEVICE: u32 = 6;
/// `BPF_F_ALLOW_MULTI`: programs of the groups above stay in force, and groups below may add their own.
const BPF_F_ALLOW_MULTI: u32 = 2;

/// How often to retry loading a program that the kernel did not finish verifying.
const MAX_TRIES: usize = 16;

/// The fields of `union bpf_attr` for `BPF_PROG_LOAD`.
#[repr(C)]
struct LoadArguments {
    kind: u32,
    count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    expected_attachment: u32,
}

/// The fields of `union bpf_attr` for `BPF_PROG_ATTACH`.
#[repr(C)]
struct AttachArguments {
    target: u32,
    program: u32,
    kind: u32,
    flags: u32,
}

/// Loads a device program.
///
/// # Errors
///
/// `EPERM` without `CAP_BPF` and `CAP_NET_ADMIN` (or `CAP_SYS_ADMIN`) in the first user namespace.
pub(super) fn load(program: &[Instruction]) -> Result<OwnedFd, Errno> {
    let address = |pointer: *const u8| pointer as u64;
    let mut name = [0; 16];
    name[..12].copy_from_slice(b"jobc_devices");
    let arguments = LoadArguments {
        kind: BPF_PROG_TYPE_CGROUP_DEVICE,
        count: u32::try_from(program.len()).map_err(|_| Errno::TOOBIG)?,
        instructions: address(program.as_ptr().cast()),
        // No helper of the kernel is called, so no license is required.
        licence: address(c"MIT".as_ptr().cast()),
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name,
        interface: 0,
        expected_attachment: BPF_CGROUP_DEVICE,
    };
    let fd = retry_interrupted(|| {
        let words = [BPF_PROG_LOAD, (&raw const arguments) as usize, size_of::<LoadArguments>(), 0, 0, 0];
        // SAFETY: `arguments`, the instructions and the licence outlive the call, and the size is that of `arguments`.
        unsafe { raw::syscall(__NR_bpf, words) }
    })?;
    let fd = i32::try_from(fd).map_err(|_| Errno::BADF)?;
    // SAFETY: the kernel made this file descriptor just now, and it is close-on-exec.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Retries if the kernel aborted its check of a program, as it does as soon as a signal is pending (`bpf_check` in
/// kernel/bpf/verifier.c): in a gang that is the end of another child, each time for one call.
fn retry_interrupted<T>(mut load: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    for _ in 1..MAX_TRIES {
        match load() {
            Err(Errno::AGAIN) => {}
            other => return other,
        }
    }
    load()
}

/// Attaches a device program to a group; it is in force as long as the group exists.
pub(super) fn attach(group: BorrowedFd<'_>, program: &OwnedFd) -> Result<(), Errno> {
    let number = |fd: i32| u32::try_from(fd).unwrap_or_default();
    let arguments = AttachArguments {
        target: number(group.as_raw_fd()),
        program: number(program.as_raw_fd()),
        kind: BPF_CGROUP_DEVICE,
        flags: BPF_F_ALLOW_MULTI,
    };
    // SAFETY: `arguments` outlives the call, and the size is its own.
    unsafe {
        raw::syscall(
            __NR_bpf,
            [BPF_PROG_ATTACH, (&raw const arguments) as usize, size_of::<AttachArguments>(), 0, 0, 0],
        )
    }?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loads while a simulated kernel fails with EAGAIN this many times and then returns `then`; returns the number of
    /// attempts.
    fn check(given_up: usize, then: Result<(), Errno>) -> (Result<(), Errno>, usize) {
        let mut attempts = 0;
        let loaded = retry_interrupted(|| {
            attempts += 1;
            if attempts <= given_up { Err(Errno::AGAIN) } else { then }
        });
        (loaded, attempts)
    }

    #[test]
    fn a_signal_does_not_keep_a_program_from_being_loaded() {
        assert_eq!(check(0, Ok(())), (Ok(()), 1));
        assert_eq!(check(3, Ok(())), (Ok(()), 4));
        assert_eq!(check(1, Err(Errno::PERM)), (Err(Errno::PERM), 2));
        assert_eq!(check(usize::MAX, Ok(())), (Err(Errno::AGAIN), MAX_TRIES));
    }
}
