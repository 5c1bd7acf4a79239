//! Exit codes.

/// How a command ended; the numbers are in docs/cli.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All is well.
    Fine = 0,
    /// The job has errors, or the output differs.
    Errors = 1,
    /// The command line, or a file it names, cannot be used.
    WrongUse = 2,
    /// Our own fault, or the machine's: a full disk, a bug.
    Fault = 3,
}

/// The exit code of a command that a signal ended, and of a job that somebody ended.
#[cfg(target_os = "linux")]
pub(crate) const INTERRUPTED: u8 = 130;
