//! The return value of a filter for a call: the part of the kernel's classic BPF that [`super::compile`] uses.
//!
//! Some syscalls of the runtime itself can be made after or before loading the filter, depending on whether it allows
//! them.

use linux_raw_sys::ptrace::{
    SECCOMP_RET_ACTION_FULL, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_LOG, sock_filter,
};

use super::Program;

/// `AUDIT_ARCH_*` of this architecture (linux/audit.h).
pub(super) const NATIVE: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };

/// A `struct seccomp_data` without its instruction pointer, which no filter of ours reads.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(super) number: u32,
    pub(super) architecture: u32,
    pub(super) arguments: [u64; 6],
}

impl Call {
    /// A call of this architecture; arguments that are not given are 0.
    pub(crate) fn new(number: u32, given: &[u64]) -> Self {
        let mut arguments = [0; 6];
        arguments[..given.len()].copy_from_slice(given);
        Self { number, architecture: NATIVE, arguments }
    }

    /// Whether the filter lets the call through, in silence or with a line in the kernel's log.
    pub(crate) fn is_allowed_by(&self, program: &Program) -> bool {
        matches!(self.decide(program).0 & SECCOMP_RET_ACTION_FULL, SECCOMP_RET_ALLOW | SECCOMP_RET_LOG)
    }

    /// The return value of the filter (`SECCOMP_RET_*`), and the number of executed instructions.
    ///
    /// Anything else than our programs ends the process, as an invalid program would in the kernel.
    pub(super) fn decide(&self, program: &Program) -> (u32, usize) {
        let (mut accumulator, mut at, mut count) = (0, 0, 0);
        while let Some(&sock_filter { code, jt, jf, k }) = program.instructions.get(at) {
            at += 1;
            count += 1;
            let mut jump = |holds: bool| at += usize::from(if holds { jt } else { jf });
            match code {
                0x20 => accumulator = self.word(k),
                0x54 => accumulator &= k,
                0x05 => at += k as usize,
                0x15 => jump(accumulator == k),
                0x25 => jump(accumulator > k),
                0x35 => jump(accumulator >= k),
                0x06 => return (k, count),
                _ => break,
            }
        }
        (SECCOMP_RET_KILL_PROCESS, count)
    }

    fn word(&self, offset: u32) -> u32 {
        let half = |value: u64| {
            let shift = if offset.is_multiple_of(8) { 0 } else { 32 };
            u32::try_from(value >> shift & u64::from(u32::MAX)).unwrap_or_default()
        };
        match offset {
            0 => self.number,
            4 => self.architecture,
            16..64 => half(self.arguments[(offset as usize - 16) / 8]),
            _ => 0,
        }
    }
}
