//! The program: the architecture, then the number's range by halving, then that range's rules.

use linux_raw_sys::ptrace::{
    AUDIT_ARCH_AARCH64, AUDIT_ARCH_X86_64, BPF_ABS, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD,
    BPF_RET, BPF_W, SECCOMP_RET_KILL_PROCESS, sock_filter,
};

use super::condition::{Condition, JumpTarget, Step};

/// Numbers with the same decision, up to the start of the next range.
pub(super) struct Range {
    pub(super) start: u32,
    pub(super) decision: Decision,
}

/// The action for a call: that of the first rule that applies, or the default.
#[derive(PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) rules: Vec<Rule>,
    pub(super) otherwise: u32,
}

/// An action under conditions that must all hold.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) conditions: Vec<Condition>,
    pub(super) action: u32,
}

const NATIVE_ARCHITECTURE: u32 =
    if cfg!(target_arch = "x86_64") { AUDIT_ARCH_X86_64 } else { AUDIT_ARCH_AARCH64 };

/// Offsets in `struct seccomp_data`.
const NUMBER_OFFSET: u32 = 0;
const ARCHITECTURE_OFFSET: u32 = 4;

/// The program over sorted ranges, of which the first starts at 0.
pub(super) fn program(ranges: &[Range]) -> Vec<sock_filter> {
    let mut code = Vec::with_capacity(4 * ranges.len());
    code.push(instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0, ARCHITECTURE_OFFSET));
    code.push(instruction(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, NATIVE_ARCHITECTURE));
    code.push(ret(SECCOMP_RET_KILL_PROCESS));
    code.push(instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0, NUMBER_OFFSET));
    search(&mut code, ranges);
    code
}

/// Finds the range of the number in the accumulator.
fn search(code: &mut Vec<sock_filter>, ranges: &[Range]) {
    let (lower, upper) = match ranges {
        [] => return code.push(ret(SECCOMP_RET_KILL_PROCESS)),
        [range] => return decide(code, &range.decision),
        ranges => ranges.split_at(ranges.len() / 2),
    };
    let jump = code.len();
    code.push(instruction(BPF_JMP | BPF_JGE | BPF_K, 0, 0, upper[0].start));
    search(code, lower);
    let distance = code.len() - jump - 1;
    if let Ok(near) = u8::try_from(distance) {
        code[jump].jt = near;
    } else {
        // Too far for a conditional jump: one over an unconditional one, which reaches anywhere.
        let far = u32::try_from(distance).expect("a program is short");
        code[jump].jf = 1;
        code.insert(jump + 1, instruction(BPF_JMP | BPF_JA, 0, 0, far));
    }
    search(code, upper);
}

fn decide(code: &mut Vec<sock_filter>, decision: &Decision) {
    for rule in &decision.rules {
        apply(code, rule);
    }
    code.push(ret(decision.otherwise));
}

/// A rule's conditions and its action. At most six conditions of six steps, so every jump fits.
fn apply(code: &mut Vec<sock_filter>, rule: &Rule) {
    let conditions: Vec<Vec<Step>> = rule.conditions.iter().map(|condition| condition.steps()).collect();
    let end = conditions.iter().map(Vec::len).sum::<usize>() + 1;
    let mut at = 0;
    for steps in conditions {
        let behind = at + steps.len();
        for Step { code: operation, k, if_true: yes, if_false: no } in steps {
            at += 1;
            let distance = |to: JumpTarget| {
                let target = match to {
                    JumpTarget::Next => at,
                    JumpTarget::Pass => behind,
                    JumpTarget::Fail => end,
                };
                u8::try_from(target - at).expect("a rule is short")
            };
            code.push(instruction(operation, distance(yes), distance(no), k));
        }
    }
    code.push(ret(rule.action));
}

fn ret(action: u32) -> sock_filter {
    instruction(BPF_RET | BPF_K, 0, 0, action)
}

#[expect(clippy::cast_possible_truncation, reason = "the constants have 16 bits in the kernel")]
fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}
