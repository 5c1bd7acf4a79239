//! The kernel's BPF host as far as filters use it, and a reader of programs.

use linux_raw_sys::ptrace::sock_filter;

use crate::seccomp::Program;

pub(super) const NATIVE: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
pub(super) const I386: u32 = 0x4000_0003;
pub(super) const ARM: u32 = 0x4000_0028;

/// A `struct seccomp_data`.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) number: u32,
    pub(super) architecture: u32,
    pub(super) arguments: [u64; 6],
}

impl Call {
    /// A call of this architecture; arguments that are not given are 0.
    pub(super) fn new(number: u32, given: &[u64]) -> Self {
        let mut arguments = [0; 6];
        arguments[..given.len()].copy_from_slice(given);
        Self { number, architecture: NATIVE, arguments }
    }

    fn word(&self, offset: u32) -> u32 {
        let mut bytes = Vec::new();
        bytes.extend(self.number.to_ne_bytes());
        bytes.extend(self.architecture.to_ne_bytes());
        bytes.extend(0_u64.to_ne_bytes()); // the instruction pointer
        self.arguments.iter().for_each(|argument| bytes.extend(argument.to_ne_bytes()));
        let at = offset as usize;
        u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
    }
}

/// What the program returns for a call.
pub(super) fn decide(program: &Program, call: &Call) -> u32 {
    run(program, call).0
}

/// How many instructions it takes to.
pub(super) fn steps(program: &Program, call: &Call) -> usize {
    run(program, call).1
}

fn run(program: &Program, call: &Call) -> (u32, usize) {
    let (mut accumulator, mut at, mut count) = (0, 0, 0);
    loop {
        let sock_filter { code, jt, jf, k } = program.instructions[at];
        at += 1;
        count += 1;
        let mut jump = |holds: bool| at += usize::from(if holds { jt } else { jf });
        match code {
            0x20 => accumulator = call.word(k),
            0x54 => accumulator &= k,
            0x05 => at += k as usize,
            0x15 => jump(accumulator == k),
            0x25 => jump(accumulator > k),
            0x35 => jump(accumulator >= k),
            0x06 => return (k, count),
            other => panic!("{other:#x} is an unknown instruction"),
        }
    }
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

/// The program in words, a line an instruction, jumps by line number.
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
