//! Programs that fetch for us: started without a terminal, watched, and ended when the job is.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::readable;
use jobc_sys::syscall::parent::kill_with_parent;

/// How soon a request to stop is seen.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How often progress is reported.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// How much of a program's last output is kept for its error.
const MAX_STDERR_BYTES: u64 = 2048;

/// A program's run, and how it ended.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    /// How.
    pub(crate) status: ExitStatus,
    /// The last part of its standard error, trimmed.
    pub(crate) stderr: String,
}

/// Runs a program to its end with `input` as its standard input; `step` is called once a second.
///
/// The input is a file in memory, so a secret in it is on no command line and on no disk.
///
/// # Errors
///
/// The program is not installed, or `stopped` became true: then it is killed with its children.
pub(crate) fn run(
    command: &mut Command,
    input: &[u8],
    stopped: &AtomicBool,
    step: &mut dyn FnMut(),
) -> Result<ProgramOutput> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |error: std::io::Error| {
        if error.kind() == ErrorKind::NotFound {
            let package = if name == "ssh-keygen" { "openssh-client" } else { &name };
            return Error::new(Kind::System, format!("the program `{name}` is not installed"))
                .help(format!("install the package `{package}`"));
        }
        Error::new(Kind::System, format!("cannot run `{name}`: {}", jobc_sys::error::describe_io(&error)))
    };
    let memory = || memfd_create(c"jobc", MemfdFlags::CLOEXEC).map(File::from);
    let (mut given, mut output) =
        (memory().map_err(Into::into).map_err(failed)?, memory().map_err(Into::into).map_err(failed)?);
    let ready = given.write_all(input).and_then(|()| given.rewind()).and_then(|()| output.try_clone());
    let errors = ready.map_err(failed)?;
    let child = {
        use std::os::unix::process::CommandExt as _;
        command.stdin(given).stdout(Stdio::null()).stderr(errors).process_group(0);
        kill_with_parent(command).spawn().map_err(failed)?
    };
    let status = wait(child, stopped, step).map_err(failed)?;
    let Some(status) = status else { return Err(stopped_error()) };
    let length = output.metadata().map_or(0, |status| status.len());
    let mut words = Vec::new();
    let read = output
        .seek(std::io::SeekFrom::Start(length.saturating_sub(MAX_STDERR_BYTES)))
        .and_then(|_| output.read_to_end(&mut words));
    read.map_err(failed)?;
    Ok(ProgramOutput { status, stderr: String::from_utf8_lossy(&words).trim().to_owned() })
}

/// The error for a request to stop.
pub(crate) fn stopped_error() -> Error {
    Error::new(Kind::State, "the job ended before it started")
}

/// Waits for the exit; `None` if it was stopped before.
fn wait(
    mut child: Child,
    stopped: &AtomicBool,
    step: &mut dyn FnMut(),
) -> std::io::Result<Option<ExitStatus>> {
    let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    let mut reported_at = Instant::now();
    loop {
        if readable::wait(&[pidfd.as_fd()], Some(POLL_INTERVAL))?[0] {
            return child.wait().map(Some);
        }
        if stopped.load(Ordering::Relaxed) {
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            child.wait()?;
            return Ok(None);
        }
        if reported_at.elapsed() >= PROGRESS_INTERVAL {
            reported_at = Instant::now();
            step();
        }
    }
}
