//! Exit codes of jobs and of tasks; docs/reference/exit-codes.md lists them.

/// All tasks that had to succeed did.
pub const SUCCEEDED: u8 = 0;
/// The job failed.
pub const FAILED: u8 = 1;
/// A time limit ended the job or the task, or the task was not ready in time; also for `retry.on_exit_codes`.
pub const TIMED_OUT: u8 = 124;
/// The job or the container could not be started, or the supervisor of the job was killed.
pub const NOT_STARTED: u8 = 125;
/// The program of the task cannot be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// The program of the task does not exist.
pub const NOT_FOUND: u8 = 127;
/// The job was stopped.
pub const STOPPED: u8 = 130;
