//! Requests of commands to a running job's supervisor: one line of JSON each for the request and the reply, over the
//! socket `control`.
//!
//! Only users who can enter the job's directory can connect; the supervisor also compares the peer's user with its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::directory::Directory;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::TaskId;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The connection stays open; when the client closes it without [`Request::Leave`], the job is ended.
    Attend {},
    /// On an attached connection: the job continues without the client.
    Leave {},
    /// Ask every task to end, and kill what is left after the grace period: the plan's, or the one given.
    Stop {
        /// Seconds instead of the plan's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grace_seconds: Option<u64>,
        /// Whether it is Ctrl-C in the foreground: every task gets SIGINT first.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        interrupt: bool,
    },
    /// Send a signal to the named tasks, or to all if none is named. `KILL` to all ends the job.
    Kill {
        /// A number, signal(7).
        signal: i32,
        /// The tasks.
        #[serde(default)]
        tasks: Vec<TaskId>,
    },
    /// Freeze every task.
    Pause {},
    /// Let every task go on, or resume a suspended job.
    Resume {},
    /// End every task by the contract of `preemption`, and give back the host's resources.
    Suspend {},
}

/// The reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// It is done, or begun in the case of `Stop`.
    Done {},
    /// It is not, and why.
    Refused {
        /// The error.
        message: String,
        /// The advice.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        help: Option<String>,
    },
    /// The job has ended: the last line, to the process that hands on the signals of Slurm.
    Ended {
        /// What `jobc run` would exit with.
        code: u8,
    },
}

/// How long a supervisor may take to answer.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum bytes read of a line.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// A connection to a job's supervisor.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
}

impl Connection {
    /// Connects to the supervisor of a job; `None` if no supervisor runs.
    pub fn open(directory: &Directory) -> Result<Option<Self>> {
        // A socket's path is limited to 108 bytes (unix(7)), so it is relative to its directory.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(state) = rustix::fs::open(&directory.state, flags, Mode::empty()) else { return Ok(None) };
        match UnixStream::connect(format!("/proc/self/fd/{}/control", state.as_raw_fd())) {
            Ok(stream) => {
                let timed = stream.set_read_timeout(Some(RESPONSE_TIMEOUT));
                timed.map_err(|error| failed(directory, &error))?;
                Ok(Some(Self { stream }))
            }
            Err(_) => Ok(None),
        }
    }

    /// A connection over a socket that the supervisor has the other side of.
    pub(crate) fn from_stream(stream: UnixStream) -> Self {
        Self { stream }
    }

    /// Asks, and waits for the answer.
    pub fn request(&mut self, directory: &Directory, request: &Request) -> Result<()> {
        write_line(&mut self.stream, request).map_err(|error| failed(directory, &error))?;
        let answer: Option<Response> = read_line(&self.stream).map_err(|error| failed(directory, &error))?;
        match answer {
            Some(Response::Done {}) => Ok(()),
            Some(Response::Refused { message, help }) => {
                let error = Error::new(Kind::State, message);
                Err(if let Some(help) = help { error.help(help) } else { error })
            }
            Some(Response::Ended { .. }) | None => Err(Error::new(
                Kind::State,
                format!("the supervisor of job `{}` ended meanwhile", directory.id),
            )),
        }
    }

    /// The process that listens.
    pub(crate) fn peer(&self) -> Option<u32> {
        let credentials = rustix::net::sockopt::socket_peercred(&self.stream).ok()?;
        u32::try_from(credentials.pid.as_raw_nonzero().get()).ok()
    }

    /// The socket itself, to wait for its end.
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }
}

/// Writes a value as a line.
pub fn write_line(stream: &mut UnixStream, value: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Reads a value from a line; nothing at the end.
pub fn read_line<T: for<'de> Deserialize<'de>>(stream: &UnixStream) -> std::io::Result<Option<T>> {
    let mut line = Vec::new();
    BufReader::with_capacity(1, stream.take(MAX_LINE_BYTES)).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&line)?))
}

fn failed(directory: &Directory, error: &std::io::Error) -> Error {
    Error::new(Kind::State, format!("the supervisor of job `{}` does not answer: {error}", directory.id))
        .help(format!("`jobc kill --force {}` ends it", directory.id))
}
