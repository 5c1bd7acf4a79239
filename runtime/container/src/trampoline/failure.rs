//! What a trampoline reports to the process that waits for the program, and its meaning for a user.

use std::os::fd::RawFd;

use rustix::io::Errno;

use jobc_sys::error::{Error, Kind};

/// The byte on `reply` when the listener was taken.
pub const LISTENER_TAKEN: u8 = b'1';

/// The report of a trampoline that cannot execute the user's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No candidate could be executed; the error number of the last, or `EACCES` where any of them gave that.
    Exec(Errno),
    /// The kernel refused the seccomp filter.
    Filter(Errno),
    /// The kernel refused the security module's label.
    Label(Errno),
    /// The kernel did not make the second process of the trampoline, or not its session.
    Birth(Errno),
    /// The kernel did not execute the trampoline with the program's arguments and environment.
    Start(Errno),
    /// A step between the start and the trampoline failed. The process that carries out the steps reports it itself.
    Step(Errno),
}

impl Failure {
    /// How many bytes a report has.
    pub const SIZE: usize = 4;

    /// Decodes a report: the error number, with a bit for what failed.
    pub fn of(report: [u8; Self::SIZE]) -> Self {
        let code = u32::from_ne_bytes(report);
        let errno = Errno::from_raw_os_error((code & 0xfff).max(1).cast_signed());
        match code & (Self::FILTER | Self::STEP | Self::LABEL | Self::START | Self::BIRTH) {
            0 => Self::Exec(errno),
            Self::START => Self::Start(errno),
            Self::BIRTH => Self::Birth(errno),
            Self::STEP => Self::Step(errno),
            Self::LABEL => Self::Label(errno),
            _ => Self::Filter(errno),
        }
    }

    /// The report for this failure.
    pub fn report(self) -> [u8; Self::SIZE] {
        let (errno, bit) = match self {
            Self::Exec(errno) => (errno, 0),
            Self::Filter(errno) => (errno, Self::FILTER),
            Self::Label(errno) => (errno, Self::LABEL),
            Self::Step(errno) => (errno, Self::STEP),
            Self::Start(errno) => (errno, Self::START),
            Self::Birth(errno) => (errno, Self::BIRTH),
        };
        (errno.raw_os_error().unsigned_abs() | bit).to_ne_bytes()
    }

    /// The bit of a report for the filter. Error numbers are below 4,096.
    pub(super) const FILTER: u32 = 0x1_0000;

    /// The bit of a report for a step.
    pub(super) const STEP: u32 = 0x2_0000;

    /// The bit of a report for the label.
    pub(super) const LABEL: u32 = 0x4_0000;

    /// The bit of a report for the trampoline's own start.
    pub(super) const START: u32 = 0x10_0000;

    /// The bit of a report for the making of the second process.
    pub(super) const BIRTH: u32 = 0x20_0000;

    /// The bit of a report without a failure: the lower bits are the number of the filter's listener.
    pub const LISTENER: u32 = 0x8_0000;

    /// The listener's number, where a report is of one.
    pub fn listener(report: [u8; Self::SIZE]) -> Option<RawFd> {
        let code = u32::from_ne_bytes(report);
        (code & Self::LISTENER != 0).then(|| (code & (Self::LISTENER - 1)).cast_signed())
    }

    /// The error for a user, about the program they named.
    pub fn error(self, program: &str) -> Error {
        match self {
            Self::Exec(errno @ (Errno::NOENT | Errno::NOTDIR)) => {
                Error::new(Kind::ProgramNotFound, format!("cannot execute `{program}`"))
                    .because(errno)
                    .at("/process/args/0")
                    .help("it must be in the container, in a directory of its `PATH`; a script's interpreter must be there too")
            }
            Self::Exec(errno) => {
                let error = Error::new(Kind::NotExecutable, format!("cannot execute `{program}`"))
                    .because(errno)
                    .at("/process/args/0");
                match errno {
                    Errno::NOEXEC => {
                        error.help("it is built for another architecture, or it is a script without `#!`")
                    }
                    Errno::PERM => error.help("the seccomp filter must allow `execve`"),
                    _ => error,
                }
            }
            Self::Step(Errno::CHILD) => {
                Error::new(Kind::Hook, "a startContainer hook failed").at("/hooks/startContainer")
            }
            Self::Start(errno) => {
                let error = Error::system("execute the start of the program", errno);
                match errno {
                    Errno::TOOBIG => error.at("/process/args").help(
                        "arguments and environment together may take a quarter of the stack's limit, at most 6 MiB; write some to a file",
                    ),
                    _ => error,
                }
            }
            Self::Birth(errno) => {
                let error = Error::system("make the process in the container's pid namespace", errno);
                match errno {
                    Errno::AGAIN => error.help("the process limits (`pids`, RLIMIT_NPROC) must allow two more processes during the start"),
                    // A pid namespace whose first process has ended takes no other (pid_namespaces(7)).
                    Errno::NOMEM => error.help("the container has ended meanwhile, or memory is used up"),
                    _ => error,
                }
            }
            Self::Step(errno) => Error::system("make the last steps to the program", errno),
            Self::Filter(errno) => {
                let error = Error::system("load the seccomp filter", errno).at("/linux/seccomp");
                match errno {
                    Errno::AGAIN => {
                        error.help("the process limit must allow one more process during the start")
                    }
                    Errno::ACCESS => error.help("set `noNewPrivileges`, or add CAP_SYS_ADMIN"),
                    Errno::BUSY => error.help("this process already has a seccomp listener"),
                    _ => error,
                }
            }
            Self::Label(errno) => crate::labels::refused(errno),
        }
    }
}
