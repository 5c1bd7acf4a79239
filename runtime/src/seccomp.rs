//! The system-call filter: config.json's profile as a BPF program.

/// A filter, ready for seccomp(2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Instructions of classic BPF, eight bytes each (linux/filter.h).
    pub instructions: Vec<[u8; 8]>,
    /// `SECCOMP_FILTER_FLAG_*`.
    pub flags: u32,
}
