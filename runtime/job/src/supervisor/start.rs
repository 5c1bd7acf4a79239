//! A supervisor's start: from the side of the command that submits the job, and from its own.
#![allow(unsafe_code)]

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::io::{FdFlags, fcntl_setfd};

use super::InheritedFds;
use crate::control::{Connection, Response, read_line};
use crate::directory::Directory;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::own_program::{Environment, ensure_read_only};

/// The hidden command that becomes a supervisor: `jobc supervise STATE RECORD LOCK CLIENT [TERMINAL]`, directories and
/// numbers of file descriptors.
pub const COMMAND: &str = "supervise";

/// A supervisor that was started.
#[derive(Debug)]
pub struct StartedSupervisor {
    /// A connection that is attached to the job, if the submission requests it.
    pub connection: Connection,
    /// The supervisor's process, a child of this process.
    pub child: Child,
}

/// Starts the supervisor of a job whose directories hold a submission, a plan and a build, and waits until it listens.
///
/// `lock` is the job's ([`Directory::try_lock`]): it is passed to the supervisor without being released. `terminal` is
/// a connected Unix socket that gets the master of the terminal of the submission's task, or the standard input of that
/// task.
///
/// # Errors
///
/// The supervisor's error if it cannot start; the directories are removed then.
#[allow(clippy::needless_pass_by_value)] // the terminal's end here is to be closed once it is handed over
pub fn start(directory: &Directory, lock: File, terminal: Option<OwnedFd>) -> Result<StartedSupervisor> {
    let log = directory.record.join("supervisor.log");
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&log)
        .map_err(|error| failed(&error))?;
    let errors = log.try_clone().map_err(|error| failed(&error))?;
    let (ours, theirs) = UnixStream::pair().map_err(|error| failed(&error))?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(COMMAND).arg(&directory.state).arg(&directory.record);
    let terminal = terminal.as_ref().map(AsFd::as_fd);
    let inherited = [Some(lock.as_fd()), Some(theirs.as_fd()), terminal];
    for fd in inherited.into_iter().flatten() {
        // This process starts no other program meanwhile.
        fcntl_setfd(fd, FdFlags::empty()).map_err(|errno| Error::system("pass a file descriptor", errno))?;
        command.arg(fd.as_raw_fd().to_string());
    }
    command.stdin(Stdio::null()).stdout(log).stderr(errors).current_dir("/");
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    drop((lock, theirs));
    let answer: Option<Response> = read_line(&ours).map_err(|error| failed(&error))?;
    match answer {
        Some(Response::Done {}) => Ok(StartedSupervisor { connection: Connection::from_stream(ours), child }),
        Some(Response::Refused { message, help }) => {
            // Nothing of the job has started: without this it would be found later as lost. The error is the answer.
            let _ = child.wait();
            let _ = directory.remove();
            let error = Error::new(Kind::State, message);
            Err(if let Some(help) = help { error.help(help) } else { error })
        }
        Some(Response::Ended { .. }) | None => {
            Err(Error::new(Kind::State, "the job's supervisor exited before it started the job")
                .help(format!("see `{}`", directory.record.join("supervisor.log").display())))
        }
    }
}

/// Becomes the supervisor that [`start`] starts: `words` follow [`COMMAND`]. Returns the exit code of `jobc run`.
pub fn become_supervisor(words: &[OsString]) -> Result<u8> {
    let [state, record, descriptors @ ..] = words else { return Err(internal_command_error()) };
    let (state, record) = (PathBuf::from(state), PathBuf::from(record));
    let id = state.file_name().and_then(|name| name.to_str()).ok_or_else(internal_command_error)?.parse()?;
    let directory = Directory { id, state, record };
    if super::readiness::enters_containers(&super::read(&directory.plan_file())?) {
        // Before file descriptors are set to close-on-exec, because this program may execute itself again.
        ensure_read_only(Environment::Whole)?;
    }
    let mut descriptors = descriptors.iter().map(inherited_fd);
    let mut next = || descriptors.next().transpose();
    let lock = next()?.ok_or_else(internal_command_error)?.into();
    let client = next()?.ok_or_else(internal_command_error)?.into();
    let terminal = next()?;
    super::run(directory, InheritedFds { lock, client, terminal })
}

/// A file descriptor by its number, which nothing else in this process uses; this process owns it from now on.
fn inherited_fd(word: &OsString) -> Result<OwnedFd> {
    let number: RawFd = word
        .to_str()
        .and_then(|word| word.parse().ok())
        .filter(|&fd| fd > 2)
        .ok_or_else(internal_command_error)?;
    if std::fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_err() {
        return Err(internal_command_error());
    }
    // SAFETY: it is open, and this process has just started: its parent has left the file descriptor for this.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&fd, FdFlags::CLOEXEC)
        .map_err(|errno| Error::system("take over a file descriptor", errno))?;
    Ok(fd)
}

fn internal_command_error() -> Error {
    Error::new(Kind::State, "this command is internal: only `jobc run` starts it")
        .help("run a job with `jobc run job.yaml`")
}

fn failed(error: &std::io::Error) -> Error {
    Error::io("start the job's supervisor", error)
}
