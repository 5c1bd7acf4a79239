//! Programs in the kernel, loaded by children of this test.
#![allow(unsafe_code, reason = "fork, and syscalls that no library provides")]

use std::ffi::{c_int, c_long};

use linux_raw_sys::general::{__NR_exit_group, __NR_getpid, __NR_getppid, __NR_personality, __NR_seccomp};
use linux_raw_sys::ptrace::{SECCOMP_SET_MODE_FILTER, sock_fprog};
use serde_json::json;

use super::{Program, bundle, compile, compiled};

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
}

/// How a child ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Code(c_int),
    Signal(c_int),
}

const SIGSYS: c_int = 31;
#[cfg(target_arch = "x86_64")]
const SIGSEGV: c_int = 11;

/// Loads the program in a child, which then runs `body` and exits with what it returns; 200 if it was refused.
fn child(program: &Program, body: fn() -> c_long) -> End {
    let mut instructions = program.instructions.clone();
    let length = u16::try_from(instructions.len()).expect("short");
    let filter = sock_fprog { len: length, filter: instructions.as_mut_ptr() };
    // SAFETY: the child only makes syscalls, on valid memory.
    unsafe {
        let pid = fork();
        if pid == 0 {
            let _ = rustix::thread::set_no_new_privs(true);
            let load = c_long::from(SECCOMP_SET_MODE_FILTER);
            let refused =
                syscall(c_long::from(__NR_seccomp), load, c_long::from(program.flags), &raw const filter);
            let code = if refused == 0 { body() } else { 200 };
            syscall(c_long::from(__NR_exit_group), code);
        }
        let mut status = 0;
        assert_eq!(waitpid(pid, &raw mut status, 0), pid);
        match status & 0x7f {
            0 => End::Code(status >> 8 & 0xff),
            signal => End::Signal(signal),
        }
    }
}

fn call(number: u32, argument: c_long) -> c_long {
    // SAFETY: the calls of these tests take no pointers.
    unsafe { syscall(c_long::from(number), argument) }
}

#[test]
fn a_bundles_profile_loads_and_decides() {
    let program = compile(&bundle()).expect("compiled");
    assert_eq!(child(&program, || c_long::from(call(__NR_getppid, 0) > 0)), End::Code(1));
    // UNAME26 may be asked for; 0x0400000 (ADDR_NO_RANDOMIZE) may not.
    assert_eq!(child(&program, || call(__NR_personality, 0x0002_0000)), End::Code(0));
    assert_eq!(child(&program, || -call(__NR_personality, 0x0400_0000)), End::Code(1));
}

#[test]
fn flags_and_actions_are_accepted() {
    let every: Vec<_> = ["KILL", "KILL_PROCESS", "TRAP", "ERRNO", "TRACE", "LOG"]
        .iter()
        .map(|name| {
            let argument = json!([{"index": 5, "value": 77, "op": "SCMP_CMP_EQ"}]);
            json!({"names": ["getpid"], "action": format!("SCMP_ACT_{name}"), "args": argument})
        })
        .chain([json!({"names": ["getppid"], "action": "SCMP_ACT_ERRNO", "errnoRet": 0})])
        .collect();
    let flags = ["LOG", "SPEC_ALLOW", "TSYNC", "WAIT_KILLABLE_RECV"]
        .map(|name| format!("SECCOMP_FILTER_FLAG_{name}"));
    let json = json!({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": every, "flags": flags});
    let program = compiled(json);
    assert_eq!(child(&program, || c_long::from(call(__NR_getpid, 0) > 1)), End::Code(1));
    assert_eq!(child(&program, || call(__NR_getppid, 0)), End::Code(0), "feigned");
}

#[test]
fn a_killing_default_kills() {
    let rules = json!([{"names": ["exit_group"], "action": "SCMP_ACT_ALLOW"}]);
    let program = compiled(json!({"defaultAction": "SCMP_ACT_KILL_PROCESS", "syscalls": rules}));
    assert_eq!(child(&program, || 5), End::Code(5));
    assert_eq!(child(&program, || call(__NR_getpid, 0)), End::Signal(SIGSYS));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn calls_of_32_bit_programs_end_the_process() {
    let program = compiled(json!({"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86"]}));
    let i386 = || {
        let mut result: c_long = 20; // getpid
        // SAFETY: it takes no arguments; the kernel keeps every register but eax and r8 to r11.
        unsafe {
            std::arch::asm!("int 0x80", inout("rax") result, out("r8") _, out("r9") _, out("r10") _, out("r11") _);
        }
        c_long::from(result > 0)
    };
    let x32 = || call(0x4000_0000 | __NR_getpid, 0);
    // A kernel without 32-bit emulation sends SIGSEGV instead.
    let end = child(&program, i386);
    assert!(end == End::Signal(SIGSYS) || end == End::Signal(SIGSEGV), "{end:?}");
    assert_eq!(child(&program, x32), End::Signal(SIGSYS));
}
