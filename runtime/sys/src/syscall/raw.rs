//! Syscalls that the system-call crate lacks, by the kernel's own convention.
//!
//! They touch neither `errno` nor any other thread-local, so the new process may make them while it shares its parent's
//! memory. Sources: syscall(2), clone(2), linux/sched.h.
#![allow(unsafe_code)]
#![allow(clippy::many_single_char_names)] // the argument registers have no better names

use std::arch::asm;

use rustix::io::Errno;

/// Makes a syscall with up to six arguments.
///
/// # Safety
///
/// The arguments must be what the call's manual page asks for: pointers must be valid for the call's whole time.
#[cfg(target_arch = "x86_64")]
pub unsafe fn syscall(number: u32, arguments: [usize; 6]) -> Result<usize, Errno> {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    // SAFETY: the kernel clobbers rcx and r11 only; what the arguments point to is the caller's promise.
    unsafe {
        asm!("syscall", inlateout("rax") number as usize => result, in("rdi") a, in("rsi") b, in("rdx") c,
            in("r10") d, in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    check(result)
}

/// Makes a syscall with up to six arguments.
///
/// # Safety
///
/// The arguments must be what the call's manual page asks for: pointers must be valid for the call's whole time.
#[cfg(target_arch = "aarch64")]
pub unsafe fn syscall(number: u32, arguments: [usize; 6]) -> Result<usize, Errno> {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    // SAFETY: the kernel preserves all registers but x0; what the arguments point to is the caller's promise.
    unsafe {
        asm!("svc 0", in("x8") number as usize, inlateout("x0") a => result, in("x1") b, in("x2") c, in("x3") d,
            in("x4") e, in("x5") f, options(nostack));
    }
    check(result)
}

/// The function that the new process runs on its own stack; never returns.
pub type EntryPoint = extern "C" fn(*mut std::ffi::c_void) -> !;

/// Creates a process by clone3(2); the new one calls `entry(data)` on the stack named in `arguments`.
///
/// Returns the new process's id in the calling process only.
///
/// # Safety
///
/// `arguments` must be a valid `clone_args` of `size` bytes whose stack is mapped, writable, 16-byte aligned at its top
/// and used by nothing else until the new process has executed a program or is gone; with `CLONE_VM`, what `data`
/// points to must live as long.
#[cfg(target_arch = "x86_64")]
pub unsafe fn clone3(
    arguments: *const linux_raw_sys::general::clone_args,
    entry: EntryPoint,
    data: *mut std::ffi::c_void,
) -> Result<u32, Errno> {
    let result: isize;
    // SAFETY: the parent's registers are as after any syscall; the child never leaves `entry`.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") linux_raw_sys::general::__NR_clone3 as usize => result,
            in("rdi") arguments,
            in("rsi") size_of::<linux_raw_sys::general::clone_args>(),
            in("r12") data,
            in("r13") entry,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    check(result).map(|pid| u32::try_from(pid).unwrap_or_default())
}

/// Makes a process by clone3(2); the new one calls `entry(data)` on the stack named in `arguments`.
///
/// Returns the new process's id in the calling process only.
///
/// # Safety
///
/// As on x86_64.
#[cfg(target_arch = "aarch64")]
pub unsafe fn clone3(
    arguments: *const linux_raw_sys::general::clone_args,
    entry: EntryPoint,
    data: *mut std::ffi::c_void,
) -> Result<u32, Errno> {
    let result: isize;
    // SAFETY: the parent's registers are as after any syscall; the child never leaves `entry`.
    unsafe {
        asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, x20",
            "blr x21",
            "brk #1",
            "2:",
            in("x8") linux_raw_sys::general::__NR_clone3 as usize,
            inlateout("x0") arguments => result,
            in("x1") size_of::<linux_raw_sys::general::clone_args>(),
            in("x20") data,
            in("x21") entry,
        );
    }
    check(result).map(|pid| u32::try_from(pid).unwrap_or_default())
}

fn check(result: isize) -> Result<usize, Errno> {
    if (-4095..0).contains(&result) {
        Err(Errno::from_raw_os_error(i32::try_from(-result).unwrap_or(i32::MAX)))
    } else {
        Ok(result.unsigned_abs())
    }
}

/// Ends this process with an exit code: all of its threads, and no destructor runs (exit_group(2)).
///
/// A seccomp filter may refuse that. Then its only thread ends, or an illegal instruction ends it: that is not a
/// syscall, and works despite a signal mask and in the first process of a pid namespace.
pub fn exit(code: usize) -> ! {
    // SAFETY: both calls take a number, and do not return where they succeed.
    unsafe {
        let _ = syscall(linux_raw_sys::general::__NR_exit_group, [code, 0, 0, 0, 0, 0]);
        let _ = syscall(linux_raw_sys::general::__NR_exit, [code, 0, 0, 0, 0, 0]);
    }
    trap()
}

/// Ends this process by an illegal instruction.
fn trap() -> ! {
    // SAFETY: the instruction raises an exception, and leads nowhere.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("ud2", options(noreturn, nostack))
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!("udf #0", options(noreturn, nostack))
    }
}
