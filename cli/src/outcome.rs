//! Exit codes.

/// The exit codes of commands; docs/reference/exit-codes.md lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Success, possibly with warnings.
    Success = 0,
    /// The job has errors, or the output differs.
    Errors = 1,
    /// The command line, or a file it names, cannot be used.
    UsageError = 2,
    /// An internal error, or a fault of the host: a bug, a full disk.
    SystemError = 3,
}
