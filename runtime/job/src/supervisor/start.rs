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

use super::Inherited;
use crate::control::{Answer, Connection, read_line};
use crate::folder::Folder;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::own_program::{Environment, keep_read_only};

/// The hidden command that becomes a supervisor: `jobc supervise STATE RECORD LOCK CLIENT [TERMINAL]`, folders and numbers of
/// descriptors.
pub const COMMAND: &str = "supervise";

/// A supervisor that was started.
#[derive(Debug)]
pub struct Started {
    /// A connection that attends to the job, where the submission says so.
    pub connection: Connection,
    /// The supervisor's process, a child of ours.
    pub child: Child,
}

/// Starts the supervisor of a job whose folders hold a submission, a plan and a build, and waits until it listens.
///
/// `lock` is the job's ([`Folder::try_lock`]): it goes over to the supervisor, so that at no time nobody holds it. `terminal`
/// is a connected Unix socket that gets the master of the terminal of the submission's task.
///
/// # Errors
///
/// What the supervisor says of why it cannot begin.
#[allow(clippy::needless_pass_by_value)] // the terminal's end here is to be closed once it is handed over
pub fn start(folder: &Folder, lock: File, terminal: Option<OwnedFd>) -> Result<Started> {
    let log = folder.record.join("supervisor.log");
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&log)
        .map_err(|error| failed(&error))?;
    let errors = log.try_clone().map_err(|error| failed(&error))?;
    let (ours, theirs) = UnixStream::pair().map_err(|error| failed(&error))?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(COMMAND).arg(&folder.state).arg(&folder.record);
    let terminal = terminal.as_ref().map(AsFd::as_fd);
    let inherited = [Some(lock.as_fd()), Some(theirs.as_fd()), terminal];
    for fd in inherited.into_iter().flatten() {
        // Nothing else is started by this process meanwhile.
        fcntl_setfd(fd, FdFlags::empty()).map_err(|errno| Error::machine("hand a descriptor on", errno))?;
        command.arg(fd.as_raw_fd().to_string());
    }
    command.stdin(Stdio::null()).stdout(log).stderr(errors).current_dir("/");
    let child = command.spawn().map_err(|error| failed(&error))?;
    drop((lock, theirs));
    let answer: Option<Answer> = read_line(&ours).map_err(|error| failed(&error))?;
    match answer {
        Some(Answer::Done {}) => Ok(Started { connection: Connection::over(ours), child }),
        Some(Answer::Refused { message, help }) => {
            let error = Error::new(Kind::State, message);
            Err(if let Some(help) = help { error.help(help) } else { error })
        }
        None => Err(Error::new(Kind::State, "the job's supervisor ended before it began")
            .help(format!("see `{}`", folder.record.join("supervisor.log").display()))),
    }
}

/// Becomes the supervisor that [`start`] has asked for: `words` follow [`COMMAND`]. Returns what `jobc run` exits with.
pub fn become_supervisor(words: &[OsString]) -> Result<u8> {
    let [state, record, descriptors @ ..] = words else { return Err(misused()) };
    let (state, record) = (PathBuf::from(state), PathBuf::from(record));
    let id = state.file_name().and_then(|name| name.to_str()).ok_or_else(misused)?.parse()?;
    let folder = Folder { id, state, record };
    if super::readiness::enters_containers(&super::read(&folder.plan_file())?) {
        // Before any descriptor is closed to other programs: this one may begin again.
        keep_read_only(Environment::Whole)?;
    }
    let mut descriptors = descriptors.iter().map(inherited);
    let mut next = || descriptors.next().transpose();
    let lock = next()?.ok_or_else(misused)?.into();
    let client = next()?.ok_or_else(misused)?.into();
    let terminal = next()?;
    super::run(folder, Inherited { lock, client, terminal })
}

/// A descriptor by its number, which nothing else in this process knows of; it is ours alone from now on.
fn inherited(word: &OsString) -> Result<OwnedFd> {
    let number: RawFd =
        word.to_str().and_then(|word| word.parse().ok()).filter(|&fd| fd > 2).ok_or_else(misused)?;
    if std::fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_err() {
        return Err(misused());
    }
    // SAFETY: it is open, and this process has just begun: who started it has left the descriptor for this.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&fd, FdFlags::CLOEXEC).map_err(|errno| Error::machine("take a descriptor over", errno))?;
    Ok(fd)
}

fn misused() -> Error {
    Error::new(Kind::State, "this command is started by `jobc run` alone")
        .help("run a job with `jobc run job.yaml`")
}

fn failed(error: &std::io::Error) -> Error {
    let errno = rustix::io::Errno::from_io_error(error).unwrap_or(rustix::io::Errno::IO);
    Error::machine("start the job's supervisor", errno)
}
