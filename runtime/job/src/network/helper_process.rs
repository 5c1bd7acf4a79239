//! The process that holds a job's network: this program again, for as long as the job's supervisor lives.
//!
//! A network namespace lives as long as something refers to it. Here that is this process's file descriptors, and the
//! tasks: nothing of the network has a name in a file system, or is visible in the host's own network, and when the
//! supervisor exits, in any way, this process reads the end of its standard input and exits too. It is a separate
//! process because an unprivileged user's network belongs to a user namespace, which only a single-threaded process can
//! enter, and never leave.

use std::ffi::OsString;
use std::net::TcpListener;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;

use rustix::process::{Resource, Rlimit};

use super::address::{Addresses, Subnet};
use super::error::no_such_task;
use super::messages::{
    HelperMessage, MAX_MESSAGE_BYTES, MAX_SETUP_BYTES, NetworkSetup, SetupRequest, TaskRequest,
    UserNamespace, receive, send,
};
use super::{bridge, namespace, publish, uplink};
use jobc_container::capabilities::kernel_capabilities;
use jobc_container::namespaces::Namespace;
use jobc_sys::error::{Error, Kind, Result, errno_of};
use jobc_sys::syscall::linux::Linux;
use jobc_sys::syscall::{CapabilityBits, Kernel as _, Prctl};

/// More threads wait for each other: connecting a task to the bridge takes a lock that all networks of the kernel
/// share.
const THREADS: usize = 4;

/// For so few tasks an additional thread does not pay off.
const MIN_TASKS_PER_THREAD: usize = 8;

/// The main function of the process; `words` are the arguments after [`super::COMMAND`].
///
/// Its standard input is the supervisor's socket.
pub fn main(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    // Replaces `exe` in lists of processes.
    let _ = std::fs::write("/proc/self/comm", "jobc-network");
    match words.next() {
        None => {}
        Some(word) if word == uplink::KEEP_COMMAND => return uplink::run_keeper(words),
        Some(_) => return reject_direct_call(),
    }
    let Ok(Some((order, _))) = receive::<SetupRequest>(rustix::stdio::stdin(), MAX_SETUP_BYTES) else {
        return reject_direct_call();
    };
    let (response, held) = match create_network(&order) {
        Ok((made, held)) => (HelperMessage::Made(made), Some(held)),
        Err(error) => (HelperMessage::Failed(error), None),
    };
    let sent = send(rustix::stdio::stdin(), &response, None);
    if let (Ok(()), Some(held)) = (sent, held) {
        held.serve();
    }
    ExitCode::SUCCESS
}

fn reject_direct_call() -> ExitCode {
    eprintln!("jobc: this command is internal: only a job's supervisor starts it");
    ExitCode::from(2)
}

/// Resources that live as long as the process.
struct NetworkNamespaces {
    bridge: Option<Arc<OwnedFd>>,
    tasks: Vec<OwnedFd>,
    range: Option<Subnet>,
    _ipc: Option<OwnedFd>,
    /// Dropped, and so ended, before the namespaces are let go.
    _uplink: Option<uplink::Uplink>,
}

fn create_network(order: &SetupRequest) -> Result<(NetworkSetup, NetworkNamespaces)> {
    raise_fd_limit();
    // In the host's network, and with the user's own rights.
    let listeners: Vec<TcpListener> = order.forwards.iter().map(publish::listen).collect::<Result<_>>()?;
    let taken = |listener: &TcpListener| listener.local_addr().map_or(0, |place| place.port());
    let ports = listeners.iter().map(taken).collect();
    if let Some(users) = &order.users {
        enter_user_namespace(users)?;
    }
    let ipc = order.shares_ipc.then(|| namespace::in_new_thread(namespace::unshare_ipc)).transpose()?;
    let ipc_number = ipc.as_ref().map(std::os::fd::AsRawFd::as_raw_fd);
    let Some(addresses) = order.addresses else {
        let tasks = namespace::in_new_thread(|| bridge::create_tasks(0..order.tasks, None))?;
        let namespaces = fd_numbers(&tasks);
        let made = NetworkSetup { namespaces, ports, resolver: None, no_uplink: None, ipc: ipc_number };
        return Ok((made, NetworkNamespaces { bridge: None, tasks, range: None, _ipc: ipc, _uplink: None }));
    };
    let Addresses { tasks: range, uplink: link, .. } = addresses;
    let bridge = Arc::new(namespace::in_new_thread(|| bridge::create_bridge(range))?);
    // The uplink starts in the host's network, where this thread stays meanwhile; the tasks' namespaces need not wait.
    let (tasks, uplink) = std::thread::scope(|scope| {
        let parts: Vec<_> = split_tasks(order.tasks)
            .map(|numbers| {
                scope.spawn(|| {
                    namespace::enter(&bridge)?;
                    bridge::create_tasks(numbers, Some(range))
                })
            })
            .collect();
        let uplink = uplink::connect(&bridge, &order.uplink, link);
        let join = |part: std::thread::ScopedJoinHandle<'_, Result<Vec<OwnedFd>>>| {
            part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        (parts.into_iter().map(join).collect::<Result<Vec<_>>>(), uplink)
    });
    let tasks: Vec<OwnedFd> = tasks?.into_iter().flatten().collect();
    for (listener, forward) in listeners.into_iter().zip(&order.forwards) {
        let targets = forward.tasks.iter().map(|task| (range.task(*task), forward.port)).collect();
        publish::serve(listener, bridge.clone(), targets);
    }
    let made = NetworkSetup {
        namespaces: fd_numbers(&tasks),
        ports,
        resolver: uplink.is_ok().then(|| uplink::resolver(link)),
        no_uplink: uplink.as_ref().err().cloned(),
        ipc: ipc_number,
    };
    let (bridge, range, uplink) = (Some(bridge), Some(range), uplink.ok());
    Ok((made, NetworkNamespaces { bridge, tasks, range, _ipc: ipc, _uplink: uplink }))
}

/// The tasks in parts that are created in parallel. Most of the work for a network namespace needs no lock that others
/// hold.
fn split_tasks(tasks: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let each = tasks.div_ceil(cores.clamp(1, THREADS)).max(MIN_TASKS_PER_THREAD);
    (0..tasks).step_by(each).map(move |first| first..tasks.min(first + each))
}

/// Enters a new user namespace and waits until the supervisor has written its maps.
fn enter_user_namespace(users: &UserNamespace) -> Result<()> {
    Linux.unshare(Namespace::User.flag()).map_err(|errno| {
        Error::system("create a user namespace", errno).help("`jobc doctor` shows what this host allows")
    })?;
    if users.groups_denied {
        let denied = std::fs::write("/proc/self/setgroups", "deny");
        denied.map_err(|error| Error::system("deny setgroups(2)", errno_of(&error)))?;
    }
    let gone = |errno| Error::system("communicate with the job's supervisor", errno);
    send(rustix::stdio::stdin(), &HelperMessage::MapIds {}, None).map_err(gone)?;
    match receive::<()>(rustix::stdio::stdin(), MAX_MESSAGE_BYTES).map_err(gone)? {
        Some(_) => pass_capabilities_on(),
        None => Err(Error::new(Kind::State, "the job's supervisor has ended")),
    }
}

/// Lets the programs of the uplink have the rights of this process in its user namespace, also where it is not root in it:
/// execve(2) would take them away (capabilities(7), the ambient set).
fn pass_capabilities_on() -> Result<()> {
    let all = kernel_capabilities()?;
    let bits = CapabilityBits { effective: all, permitted: all, inheritable: all };
    let raise = |bit| Linux.prctl(Prctl::RaiseAmbient(bit));
    let raised =
        Linux.capset(bits).and_then(|()| (0..64).filter(|bit| all & 1 << bit != 0).try_for_each(raise));
    raised.map_err(|errno| Error::system("pass capabilities on to the uplink", errno))
}

/// A file descriptor for each task, and two for each connection.
fn raise_fd_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let _ = rustix::process::setrlimit(
        Resource::Nofile,
        Rlimit { current: limit.maximum, maximum: limit.maximum },
    );
}

fn fd_numbers(namespaces: &[OwnedFd]) -> Vec<i32> {
    namespaces.iter().map(std::os::fd::AsRawFd::as_raw_fd).collect()
}

impl NetworkNamespaces {
    /// Answers until the supervisor ends.
    fn serve(mut self) {
        while let Ok(Some((ask, _))) = receive(rustix::stdio::stdin(), MAX_MESSAGE_BYTES) {
            let (response, socket) = match self.handle(ask) {
                Ok(answer) => answer,
                Err(error) => (HelperMessage::Failed(error), None),
            };
            if send(rustix::stdio::stdin(), &response, socket.as_ref().map(OwnedFd::as_fd)).is_err() {
                break;
            }
        }
    }

    fn handle(&mut self, ask: TaskRequest) -> Result<(HelperMessage, Option<OwnedFd>)> {
        let (TaskRequest::Socket(task) | TaskRequest::Renew(task)) = ask;
        let own = self.tasks.get_mut(task).ok_or_else(|| no_such_task(task))?;
        match ask {
            TaskRequest::Socket(_) => {
                // From the bridge, or from where the task is alone.
                namespace::enter(self.bridge.as_deref().unwrap_or(own))?;
                Ok((HelperMessage::Socket {}, Some(super::socket::socket()?)))
            }
            TaskRequest::Renew(_) => {
                *own = namespace::in_new_thread(|| {
                    if let Some(bridge) = &self.bridge {
                        namespace::enter(bridge)?;
                    }
                    bridge::recreate_task(task, self.range)
                })?;
                Ok((HelperMessage::Renewed { namespace: own.as_raw_fd() }, None))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_task_is_in_one_part() {
        for tasks in [0, 1, 7, 8, 9, 63, 100, 1023] {
            let parts: Vec<_> = super::split_tasks(tasks).collect();
            assert!(parts.len() <= super::THREADS, "{parts:?}");
            assert!(parts.into_iter().flatten().eq(0..tasks));
        }
    }
}
