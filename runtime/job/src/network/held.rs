//! The process that holds a job's network, as the supervisor knows it.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;

use super::address::Addresses;
use super::error::{errno, no_such_task};
use super::news::News;
use super::order::{self, Ask, Made, ORDER, Order, SHORT, Said, Users, receive, send};
use super::program::own_program;
use super::publish::Forward;
use super::socket::is_ready;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id_map::IdMaps;

/// The process that holds what was made.
#[derive(Debug)]
pub(super) struct Held {
    process: Child,
    line: Mutex<Line>,
    /// Whether it is all in a user namespace.
    pub(super) users: bool,
}

/// The conversation with it, one request at a time.
#[derive(Debug)]
struct Line {
    socket: OwnedFd,
    /// The tasks' network namespaces: file descriptors of the process, and whether an attempt has used it.
    namespaces: Vec<(i32, bool)>,
}

impl Held {
    /// Starts the process and waits until it has made everything.
    pub(super) fn start(
        addresses: Option<Addresses>,
        tasks: usize,
        forwards: &[Forward],
        place: PathBuf,
    ) -> Result<(Self, Made)> {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let maps = (!uid.is_root()).then(|| IdMaps::rootless(uid.as_raw(), gid.as_raw())).transpose()?;
        let users = maps.as_ref().map(|maps| Users { groups_denied: maps.groups_denied() });
        let order = Order { tasks, addresses, place, users, forwards: forwards.to_vec() };
        let (ours, theirs) = order::pair()?;
        let process = own_program()
            .stdin(theirs)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| Error::machine("re-execute this program", errno(&error)))?;
        let line = Mutex::new(Line { socket: ours, namespaces: Vec::new() });
        let held = Self { process, line, users: maps.is_some() };
        let made = held.line().begin(&order, maps.as_ref(), held.process.id())?;
        Ok((held, made))
    }

    /// The process's later messages; can be taken once.
    pub(super) fn news(&mut self) -> Option<News> {
        self.process.stdout.take().map(News::of)
    }

    /// Where its files are below /proc.
    pub(super) fn place(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}", self.process.id()))
    }

    /// A network namespace for a task's attempt: a file descriptor of the process.
    pub(super) fn namespace(&self, task: usize) -> Result<i32> {
        self.line().namespace(task)
    }

    /// A socket that reaches a task.
    pub(super) fn socket(&self, task: usize) -> Result<OwnedFd> {
        self.line().socket(task)
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// Has everything made.
    fn begin(&mut self, order: &Order, maps: Option<&IdMaps>, process: u32) -> Result<Made> {
        send(&self.socket, order, None).map_err(silent)?;
        loop {
            match self.hear(ORDER)? {
                (Said::MapIds {}, _) => {
                    maps.ok_or_else(gone)?.write(process)?;
                    send(&self.socket, &(), None).map_err(silent)?;
                }
                (Said::Made(made), _) => {
                    self.namespaces = made.namespaces.iter().map(|namespace| (*namespace, false)).collect();
                    return Ok(made);
                }
                _ => return Err(gone()),
            }
        }
    }

    /// A network namespace for a task's attempt.
    fn namespace(&mut self, task: usize) -> Result<i32> {
        let (mut namespace, used) = *self.namespaces.get(task).ok_or_else(|| no_such_task(task))?;
        if used {
            send(&self.socket, &Ask::Renew(task), None).map_err(silent)?;
            let (Said::Renewed { namespace: new }, _) = self.hear(SHORT)? else { return Err(gone()) };
            namespace = new;
        }
        self.namespaces[task] = (namespace, true);
        Ok(namespace)
    }

    fn socket(&mut self, task: usize) -> Result<OwnedFd> {
        send(&self.socket, &Ask::Socket(task), None).map_err(silent)?;
        let (Said::Socket {}, Some(made)) = self.hear(SHORT)? else { return Err(gone()) };
        Ok(made)
    }

    /// The process's next message, failures as errors.
    fn hear(&self, room: usize) -> Result<(Said, Option<OwnedFd>)> {
        match receive(&self.socket, room).map_err(silent)?.ok_or_else(gone)? {
            (Said::Failed { message, help }, _) => Err(Error { help, ..Error::new(Kind::Machine, message) }),
            said => Ok(said),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // It exits itself, after its uplink, when the supervisor's end of the socket is closed. The kernel removes its
        // namespaces asynchronously.
        let line = self.line.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = rustix::net::shutdown(&line.socket, rustix::net::Shutdown::Both);
        if !has_ended(&self.process, PATIENCE) {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}

/// How long the process may take to stop its uplink.
const PATIENCE: Duration = Duration::from_secs(2);

/// Waits until a child has ended, and leaves its end to be waited for.
fn has_ended(process: &Child, within: Duration) -> bool {
    let pid = i32::try_from(process.id()).ok().and_then(rustix::process::Pid::from_raw);
    let pidfd =
        pid.and_then(|pid| rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok());
    pidfd.is_some_and(|pidfd| is_ready(&pidfd, PollFlags::IN, within).is_ok())
}

fn silent(errno: Errno) -> Error {
    Error::machine("communicate with the process that holds the job's network", errno)
}

fn gone() -> Error {
    Error::new(Kind::Machine, "the process that holds the job's network has ended")
}
