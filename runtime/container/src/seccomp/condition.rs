//! A test of one argument, as BPF.
//!
//! Arguments have 64 bits and BPF's accumulator 32, so each comparison looks at the high half and, where that does not
//! decide, at the low one.

use linux_raw_sys::ptrace::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JMP, BPF_K, BPF_LD, BPF_W,
};
use oci_spec::runtime::LinuxSeccompOperator as Operator;

/// A test of one argument of a syscall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    /// The index of the argument, 0 to 5.
    pub(super) index: u32,
    /// The operator; the comparison is unsigned.
    pub(super) operator: Operator,
    /// The value to compare with; the mask of `SCMP_CMP_MASKED_EQ`.
    pub(super) value: u64,
    /// The expected value under the mask. Bits outside the mask are ignored, as libseccomp does.
    pub(super) second: u64,
}

/// An instruction of a condition, its jumps not yet numbers.
#[derive(Clone, Copy)]
pub(super) struct Step {
    /// The instruction's code.
    pub(super) code: u32,
    /// Its constant.
    pub(super) k: u32,
    /// Where a jump goes if its comparison holds.
    pub(super) if_true: JumpTarget,
    /// Where it goes if not.
    pub(super) if_false: JumpTarget,
}

/// Where a step continues.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum JumpTarget {
    /// The following step.
    Next,
    /// Behind this condition, which holds.
    Pass,
    /// Behind this rule, which does not apply.
    Fail,
}

use JumpTarget::{Fail, Next, Pass};

/// The offset of the first argument in `struct seccomp_data`.
const ARGUMENTS: u32 = 16;

impl Condition {
    /// The condition's instructions; the last goes to `Pass` or `Fail` on both sides, where `Next` means `Pass`.
    pub(super) fn steps(self) -> Vec<Step> {
        let (high, low) = halves(self.value);
        match self.operator {
            Operator::ScmpCmpEq => {
                vec![self.high(), equal(high, Next, Fail), self.low(), equal(low, Pass, Fail)]
            }
            Operator::ScmpCmpNe => {
                vec![self.high(), equal(high, Next, Pass), self.low(), equal(low, Fail, Pass)]
            }
            Operator::ScmpCmpGt => self.ordered(greater(low, Pass, Fail), Pass, Fail),
            Operator::ScmpCmpGe => self.ordered(at_least(low, Pass, Fail), Pass, Fail),
            Operator::ScmpCmpLe => self.ordered(greater(low, Fail, Pass), Fail, Pass),
            Operator::ScmpCmpLt => self.ordered(at_least(low, Fail, Pass), Fail, Pass),
            Operator::ScmpCmpMaskedEq => {
                let (want_high, want_low) = halves(self.second & self.value);
                vec![
                    self.high(),
                    and(high),
                    equal(want_high, Next, Fail),
                    self.low(),
                    and(low),
                    equal(want_low, Pass, Fail),
                ]
            }
        }
    }

    /// A comparison by order: where the high halves differ they decide, else `last` does.
    fn ordered(self, last: Step, above: JumpTarget, below: JumpTarget) -> Vec<Step> {
        let (high, _) = halves(self.value);
        vec![self.high(), greater(high, above, Next), equal(high, Next, below), self.low(), last]
    }

    /// Loads the argument's low half; the architectures here are little-endian.
    fn low(self) -> Step {
        step(BPF_LD | BPF_W | BPF_ABS, ARGUMENTS + 8 * self.index, Next, Next)
    }

    fn high(self) -> Step {
        step(BPF_LD | BPF_W | BPF_ABS, ARGUMENTS + 8 * self.index + 4, Next, Next)
    }
}

#[cfg(not(target_endian = "little"))]
compile_error!("the halves of an argument are where little-endian hosts have them");

/// The high and the low half.
#[expect(clippy::cast_possible_truncation, reason = "the low half is what is left")]
fn halves(value: u64) -> (u32, u32) {
    ((value >> 32) as u32, value as u32)
}

fn step(code: u32, k: u32, yes: JumpTarget, no: JumpTarget) -> Step {
    Step { code, k, if_true: yes, if_false: no }
}

fn and(mask: u32) -> Step {
    step(BPF_ALU | BPF_AND | BPF_K, mask, Next, Next)
}

fn equal(k: u32, yes: JumpTarget, no: JumpTarget) -> Step {
    step(BPF_JMP | BPF_JEQ | BPF_K, k, yes, no)
}

fn greater(k: u32, yes: JumpTarget, no: JumpTarget) -> Step {
    step(BPF_JMP | BPF_JGT | BPF_K, k, yes, no)
}

fn at_least(k: u32, yes: JumpTarget, no: JumpTarget) -> Step {
    step(BPF_JMP | BPF_JGE | BPF_K, k, yes, no)
}
