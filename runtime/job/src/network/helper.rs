//! The supervisor's handle to the process that holds a job's network.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;

use super::error::no_such_task;
use super::events::NetworkEvents;
use super::messages::{
    self, HelperMessage, MAX_MESSAGE_BYTES, MAX_SETUP_BYTES, NetworkSetup, SetupRequest, TaskRequest,
    UserNamespace, receive, send,
};
use super::program::helper_command;
use super::socket::is_ready;
use jobc_container::rootless::Caller;
use jobc_sys::error::{Error, Kind, Result, errno_of};
use jobc_sys::host::needs_user_namespace;
use jobc_sys::id_map::IdMaps;
use jobc_sys::parallel::lock;

/// The process that holds what was made.
#[derive(Debug)]
pub(super) struct NetworkHelper {
    process: Child,
    connection: Mutex<HelperConnection>,
    /// Whether it is all in a user namespace.
    pub(super) in_user_namespace: bool,
}

/// The conversation with it, one request at a time.
#[derive(Debug)]
struct HelperConnection {
    socket: OwnedFd,
    /// The tasks' network namespaces: file descriptors of the process, and whether an attempt has used it.
    namespaces: Vec<(i32, bool)>,
}

impl NetworkHelper {
    /// Starts the process and waits until it has made everything.
    ///
    /// The request gets a user namespace where this user needs one.
    pub(super) fn start(mut order: SetupRequest, caller: Caller) -> Result<(Self, NetworkSetup)> {
        let maps = needs_user_namespace().then(|| caller.id_maps()).transpose()?;
        order.users = maps.as_ref().map(|maps| UserNamespace { groups_denied: maps.groups_denied() });
        let (ours, theirs) = messages::pair()?;
        let process = helper_command()
            .stdin(theirs)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| Error::system("re-execute this program", errno_of(&error)))?;
        let line = Mutex::new(HelperConnection { socket: ours, namespaces: Vec::new() });
        let held = Self { process, connection: line, in_user_namespace: maps.is_some() };
        let made = lock(&held.connection).set_up(&order, maps.as_ref(), held.process.id())?;
        Ok((held, made))
    }

    /// The process's later messages; can be taken once.
    pub(super) fn take_events(&mut self) -> Option<NetworkEvents> {
        self.process.stdout.take().map(NetworkEvents::of)
    }

    /// Where its files are below /proc.
    pub(super) fn proc_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}", self.process.id()))
    }

    /// Whether it holds networks, and not only what tasks share otherwise.
    pub(super) fn has_networks(&self) -> bool {
        !lock(&self.connection).namespaces.is_empty()
    }

    /// A network namespace for a task's attempt: a file descriptor of the process.
    pub(super) fn namespace(&self, task: usize) -> Result<i32> {
        lock(&self.connection).namespace(task)
    }

    /// A socket that reaches a task.
    pub(super) fn socket(&self, task: usize) -> Result<OwnedFd> {
        lock(&self.connection).socket(task)
    }
}

impl HelperConnection {
    /// Has everything made.
    fn set_up(&mut self, order: &SetupRequest, maps: Option<&IdMaps>, process: u32) -> Result<NetworkSetup> {
        send(&self.socket, order, None).map_err(communication_error)?;
        loop {
            match self.receive_reply(MAX_SETUP_BYTES)? {
                (HelperMessage::MapIds {}, _) => {
                    maps.ok_or_else(helper_exited)?.write(process)?;
                    send(&self.socket, &(), None).map_err(communication_error)?;
                }
                (HelperMessage::Made(made), _) => {
                    self.namespaces = made.namespaces.iter().map(|namespace| (*namespace, false)).collect();
                    return Ok(made);
                }
                _ => return Err(helper_exited()),
            }
        }
    }

    /// A network namespace for a task's attempt.
    fn namespace(&mut self, task: usize) -> Result<i32> {
        let (mut namespace, used) = *self.namespaces.get(task).ok_or_else(|| no_such_task(task))?;
        if used {
            send(&self.socket, &TaskRequest::Renew(task), None).map_err(communication_error)?;
            let (HelperMessage::Renewed { namespace: new }, _) = self.receive_reply(MAX_MESSAGE_BYTES)?
            else {
                return Err(helper_exited());
            };
            namespace = new;
        }
        self.namespaces[task] = (namespace, true);
        Ok(namespace)
    }

    fn socket(&mut self, task: usize) -> Result<OwnedFd> {
        send(&self.socket, &TaskRequest::Socket(task), None).map_err(communication_error)?;
        let (HelperMessage::Socket {}, Some(made)) = self.receive_reply(MAX_MESSAGE_BYTES)? else {
            return Err(helper_exited());
        };
        Ok(made)
    }

    /// The process's next message, failures as errors.
    fn receive_reply(&self, room: usize) -> Result<(HelperMessage, Option<OwnedFd>)> {
        match receive(&self.socket, room).map_err(communication_error)?.ok_or_else(helper_exited)? {
            (HelperMessage::Failed(error), _) => Err(error),
            response => Ok(response),
        }
    }
}

impl Drop for NetworkHelper {
    fn drop(&mut self) {
        // It exits itself, after its uplink, when the supervisor's end of the socket is closed. The kernel removes its
        // namespaces asynchronously.
        let line = self.connection.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = rustix::net::shutdown(&line.socket, rustix::net::Shutdown::Both);
        if !has_ended(&self.process, STOP_TIMEOUT) {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}

/// How long the process may take to stop its uplink.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Waits until a child has ended, and leaves its end to be waited for.
fn has_ended(process: &Child, within: Duration) -> bool {
    let pid = i32::try_from(process.id()).ok().and_then(rustix::process::Pid::from_raw);
    let pidfd =
        pid.and_then(|pid| rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok());
    pidfd.is_some_and(|pidfd| is_ready(&pidfd, PollFlags::IN, within).is_ok())
}

fn communication_error(errno: Errno) -> Error {
    Error::system("communicate with the process that holds the job's network", errno)
}

fn helper_exited() -> Error {
    Error::new(Kind::System, "the process that holds the job's network has ended")
}
