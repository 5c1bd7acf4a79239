//! Filters as the kernel sees them, and a reader of programs.

use linux_raw_sys::ptrace::sock_filter;

use crate::seccomp::Program;
pub(super) use crate::seccomp::decide::{Call, NATIVE};

pub(super) const I386: u32 = 0x4000_0003;
pub(super) const ARM: u32 = 0x4000_0028;

/// The return value of the program for a call.
pub(super) fn decide(program: &Program, call: &Call) -> u32 {
    call.decide(program).0
}

/// How many instructions it takes to.
pub(super) fn steps(program: &Program, call: &Call) -> usize {
    call.decide(program).1
}

/// What the kernel asks of a program when it is loaded: jumps within it, loads of whole words of the data, and that its
/// last instruction returns.
pub(super) fn verify(program: &Program) {
    let length = program.instructions.len();
    for (at, instruction) in program.instructions.iter().enumerate() {
        let left = length - at - 1;
        match instruction.code {
            0x20 => assert!(instruction.k.is_multiple_of(4) && instruction.k < 64),
            0x05 => assert!((instruction.k as usize) < left),
            0x15 | 0x25 | 0x35 => assert!(usize::from(instruction.jt.max(instruction.jf)) < left),
            _ => {}
        }
    }
    assert_eq!(program.instructions.last().map(|last| last.code), Some(0x06));
}

/// The program as text, one instruction per line, jumps by line number.
pub(super) fn listing(program: &Program) -> String {
    let line = |(at, instruction): (usize, &sock_filter)| {
        let k = instruction.k;
        let [yes, no] = [instruction.jt, instruction.jf].map(|by| at + 1 + usize::from(by));
        let text = match instruction.code {
            0x20 => format!("load [{k}]"),
            0x54 => format!("and {k:#x}"),
            0x05 => format!("go {}", at + 1 + k as usize),
            0x15 => format!("= {k:#x} ? {yes} : {no}"),
            0x25 => format!("> {k:#x} ? {yes} : {no}"),
            0x35 => format!(">= {k:#x} ? {yes} : {no}"),
            0x06 => format!("return {k:#010x}"),
            other => format!("{other:#x}"),
        };
        format!("{at:3} {text}\n")
    };
    program.instructions.iter().enumerate().map(line).collect()
}
