//! Ports of tasks that the host's own network gets: what connects to them there is carried over, byte by byte.
//!
//! A thread waits at each port and two more serve each connection; all are in the bridge's namespace, from which every
//! task is reached.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::namespace;
use crate::port_owner;
use crate::submission::Publish;
use jobc_sys::error::{Error, Kind, Result, describe, errno_of};

/// Where a port of the host leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Forward {
    /// The task's port, and the address on the host.
    pub(super) publish: Publish,
    /// The tasks' numbers that take turns.
    pub(super) tasks: Vec<usize>,
    /// The port in each of them.
    pub(super) port: u16,
}

/// How many connections a port serves at once; more wait.
const MAX_CONNECTIONS: usize = 512;

/// How long a task may take to accept.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What a thread needs, the system's least being less.
const STACK_BYTES: usize = 128 * 1024;

/// Takes the port on the host; this thread must be in the host's network namespace.
pub(super) fn listen(forward: &Forward) -> Result<TcpListener> {
    let Publish { address, port, task, label } = &forward.publish;
    let place = SocketAddr::new(*address, *port);
    TcpListener::bind(place).map_err(|error| {
        let is_taken = error.kind() == ErrorKind::AddrInUse;
        let owner = is_taken.then(|| port_owner::of(*port)).flatten();
        let message = match error.kind() {
            ErrorKind::AddrInUse => {
                let by = port_owner::by(owner.as_ref());
                format!("{place} is taken{by}, so port `{label}` of `{task}` cannot be published there")
            }
            _ => format!(
                "port `{label}` of `{task}` cannot be published at {place}: {}",
                describe(errno_of(&error))
            ),
        };
        let help = match error.kind() {
            ErrorKind::PermissionDenied => "ports below 1024 are reserved for root; choose another with",
            _ => "choose another with",
        };
        let help = format!("{help} `--publish PORT:{task}:{label}`");
        Error::new(Kind::System, message).help(port_owner::or_stop(owner.as_ref(), &help))
    })
}

/// Begins to serve a port; this thread must be in the host's network namespace, the targets are in the bridge's.
pub(super) fn serve(listener: TcpListener, bridge: Arc<OwnedFd>, targets: Vec<(Ipv4Addr, u16)>) {
    std::thread::spawn(move || {
        if targets.is_empty() || namespace::enter(&bridge).is_err() {
            return;
        }
        let open = Arc::new(AtomicUsize::new(0));
        for turn in 0_usize.. {
            while open.load(Ordering::Acquire) >= MAX_CONNECTIONS {
                std::thread::sleep(Duration::from_millis(10));
            }
            match listener.accept() {
                Ok((client, _)) => {
                    let (address, port) = targets[turn % targets.len()];
                    let place = ConnectionSlot::take(&open);
                    let serve = move || {
                        forward_connection(&client, SocketAddr::from((address, port)));
                        drop(place);
                    };
                    // If no thread can be started, dropping the closure closes the connection.
                    let _ = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(serve);
                }
                // Too many open files, as a rule: wait until some are closed.
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    });
}

/// A connection's place among those that are served at once, until it is dropped.
struct ConnectionSlot(Arc<AtomicUsize>);

impl ConnectionSlot {
    fn take(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::AcqRel);
        Self(open.clone())
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Carries both directions until each has ended. A task that does not accept is a connection closed at once.
fn forward_connection(client: &TcpStream, target: SocketAddr) {
    let Ok(server) = TcpStream::connect_timeout(&target, CONNECT_TIMEOUT) else { return };
    for stream in [client, &server] {
        let _ = stream.set_nodelay(true);
    }
    let server = &server;
    std::thread::scope(|scope| {
        let back = std::thread::Builder::new().stack_size(STACK_BYTES);
        let started = back.spawn_scoped(scope, move || copy_stream(server, client));
        if started.is_ok() {
            copy_stream(client, server);
        }
    });
}

/// Copies one direction to its end, and then shuts down the other side.
fn copy_stream(mut from: &TcpStream, mut to: &TcpStream) {
    if io::copy(&mut from, &mut to).is_ok() {
        let _ = to.shutdown(Shutdown::Write);
        return;
    }
    // An aborted side sends and receives nothing more.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
