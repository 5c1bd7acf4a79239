//! The rules as a program that the kernel runs at each opening and making of a device (`BPF_PROG_TYPE_CGROUP_DEVICE`).
//!
//! It goes through the rules from the last to the first and keeps the accesses that are still undecided: a rule that
//! denies one of them ends it with 0 (EPERM), one that allows takes its accesses out, and where none is left the answer
//! is 1. Source: struct bpf_cgroup_dev_ctx in linux/bpf.h; the instructions in Documentation/bpf/standardization.

use super::{ALL, DeviceKind, Rule};

/// One instruction, as the kernel reads it (struct bpf_insn).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Instruction {
    pub(crate) code: u8,
    /// The destination register in the low half, the source in the high half.
    pub(crate) registers: u8,
    pub(crate) offset: i16,
    pub(crate) immediate: i32,
}

/// `BPF_LDX | BPF_MEM | BPF_W`: load 32 bits.
pub(crate) const LOAD: u8 = 0x61;
/// `BPF_ALU64 | BPF_MOV | BPF_K`.
pub(crate) const SET: u8 = 0xb7;
/// `BPF_ALU64 | BPF_MOV | BPF_X`.
pub(crate) const COPY: u8 = 0xbf;
/// `BPF_ALU64 | BPF_AND | BPF_K`.
pub(crate) const AND: u8 = 0x57;
/// `BPF_ALU64 | BPF_RSH | BPF_K`.
pub(crate) const SHIFT_RIGHT: u8 = 0x77;
/// `BPF_JMP | BPF_JEQ | BPF_K`.
pub(crate) const JUMP_IF: u8 = 0x15;
/// `BPF_JMP | BPF_JNE | BPF_K`.
pub(crate) const JUMP_UNLESS: u8 = 0x55;
/// `BPF_JMP | BPF_EXIT`.
pub(crate) const EXIT: u8 = 0x95;

// The registers: r0 is the answer, r1 the context at the start.
const RESULT: u8 = 0;
const CONTEXT: u8 = 1;
const ACCESS: u8 = 2;
const KIND: u8 = 3;
const MAJOR: u8 = 4;
const MINOR: u8 = 5;
const SCRATCH: u8 = 6;

/// The program for a list of rules.
pub(crate) fn assemble(rules: &[Rule]) -> Vec<Instruction> {
    let mut program = vec![
        Instruction { code: LOAD, registers: ACCESS | CONTEXT << 4, offset: 0, immediate: 0 },
        Instruction { code: LOAD, registers: MAJOR | CONTEXT << 4, offset: 4, immediate: 0 },
        Instruction { code: LOAD, registers: MINOR | CONTEXT << 4, offset: 8, immediate: 0 },
        copy(KIND, ACCESS),
        instruction(AND, KIND, 0xffff),
        instruction(SHIFT_RIGHT, ACCESS, 16),
    ];
    for rule in rules.iter().rev() {
        program.extend(rule_instructions(rule));
        if rule.matches_all() {
            // Nothing after it is ever reached, which the kernel's verifier would refuse.
            return program;
        }
    }
    program.extend([instruction(SET, RESULT, 0), EXIT_INSTRUCTION]);
    program
}

const EXIT_INSTRUCTION: Instruction = Instruction { code: EXIT, registers: 0, offset: 0, immediate: 0 };

/// The instructions of one rule; a jump over the rest of it where it is about other devices.
fn rule_instructions(rule: &Rule) -> Vec<Instruction> {
    let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let mut list = vec![];
    if let Some(kind) = rule.kind {
        list.push(instruction(
            JUMP_UNLESS,
            KIND,
            match kind {
                DeviceKind::Block => 1,
                DeviceKind::Character => 2,
            },
        ));
    }
    list.extend(rule.major.map(|major| instruction(JUMP_UNLESS, MAJOR, number(major))));
    list.extend(rule.minor.map(|minor| instruction(JUMP_UNLESS, MINOR, number(minor))));
    match (rule.allow, rule.access == ALL) {
        (true, true) => list.extend([instruction(SET, RESULT, 1), EXIT_INSTRUCTION]),
        (true, false) => list.extend([
            instruction(AND, ACCESS, number(ALL & !rule.access)),
            instruction(JUMP_UNLESS, ACCESS, 0),
            instruction(SET, RESULT, 1),
            EXIT_INSTRUCTION,
        ]),
        (false, true) => list.extend([instruction(SET, RESULT, 0), EXIT_INSTRUCTION]),
        (false, false) => list.extend([
            copy(SCRATCH, ACCESS),
            instruction(AND, SCRATCH, number(rule.access)),
            instruction(JUMP_IF, SCRATCH, 0),
            instruction(SET, RESULT, 0),
            EXIT_INSTRUCTION,
        ]),
    }
    let end = list.len();
    for (index, instruction) in list.iter_mut().enumerate() {
        if matches!(instruction.code, JUMP_IF | JUMP_UNLESS) {
            instruction.offset = i16::try_from(end - index - 1).expect("a rule has few instructions");
        }
    }
    list
}

fn instruction(code: u8, register: u8, immediate: i32) -> Instruction {
    Instruction { code, registers: register, offset: 0, immediate }
}

fn copy(to: u8, from: u8) -> Instruction {
    Instruction { code: COPY, registers: to | from << 4, offset: 0, immediate: 0 }
}
