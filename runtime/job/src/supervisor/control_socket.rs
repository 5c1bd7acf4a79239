//! The control socket, from the supervisor's side: commands connect, ask a line and get one back.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::fs::{Mode, OFlags};

use super::poll::{EventSource, Poll};
use crate::control::{Request, Response, write_line};
use crate::directory::Directory;
use jobc_sys::error::{Error, Result, file_error};

/// Maximum bytes of a line.
const MAX_LINE_BYTES: usize = 1 << 20;

/// How many commands may be connected at once.
const MAX_CLIENTS: usize = 256;

/// Connected commands.
#[derive(Debug)]
pub(super) struct ControlSocket {
    listener: UnixListener,
    clients: BTreeMap<u32, Client>,
    next: u32,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    line: Vec<u8>,
    /// Its end is the job's.
    attached: bool,
}

/// The result of a connection.
#[derive(Debug)]
pub(super) enum ClientEvent {
    /// A request.
    Request(Request),
    /// It attended to the job, and is gone without a word.
    Disconnected,
}

impl ControlSocket {
    /// Listens in the job's directory, with the command that submitted the job connected already.
    pub(super) fn listen(
        directory: &Directory,
        poll: &Poll,
        first: UnixStream,
        attends: bool,
    ) -> Result<Self> {
        let path = directory.control_socket();
        let listen = || -> std::io::Result<UnixListener> {
            // A socket's path is limited to 108 bytes (unix(7)), so it is relative to its directory.
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let state = rustix::fs::open(&directory.state, flags, Mode::empty())?;
            let listener = UnixListener::bind(format!("/proc/self/fd/{}/control", state.as_raw_fd()))?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = listen().map_err(|error| file_error("listen at", &path, &error))?;
        poll.add(&listener, EventSource::Listener)?;
        let mut socket = Self { listener, clients: BTreeMap::new(), next: 0 };
        socket.add_client(first, attends, poll)?;
        Ok(socket)
    }

    /// Takes in a command that connects.
    pub(super) fn accept(&mut self, poll: &Poll) {
        while let Ok((stream, _)) = self.listener.accept() {
            let own = rustix::process::geteuid();
            let peer = rustix::net::sockopt::socket_peercred(&stream);
            let trusted = peer.is_ok_and(|peer| peer.uid == own || peer.uid.is_root());
            if trusted && self.clients.len() < MAX_CLIENTS {
                // A connection that cannot be polled is closed.
                let _ = self.add_client(stream, false, poll);
            }
        }
    }

    fn add_client(&mut self, stream: UnixStream, attends: bool, poll: &Poll) -> Result<()> {
        let number = self.next;
        let set = stream.set_nonblocking(true);
        set.map_err(|error| Error::new(jobc_sys::error::Kind::System, error.to_string()))?;
        poll.add(&stream, EventSource::Client(number))?;
        self.next += 1;
        self.clients.insert(number, Client { stream, line: Vec::new(), attached: attends });
        Ok(())
    }

    /// The requests of a connection, line by line; the connection is removed at its end.
    pub(super) fn read_requests(&mut self, number: u32, poll: &Poll) -> Vec<ClientEvent> {
        let Some(client) = self.clients.get_mut(&number) else { return vec![] };
        let mut events = Vec::new();
        let mut bytes = [0_u8; 4096];
        let over = loop {
            match client.stream.read(&mut bytes) {
                Ok(0) => break true,
                Ok(count) => client.line.extend(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => break error.kind() != ErrorKind::WouldBlock,
            }
            if client.line.len() > MAX_LINE_BYTES {
                break true;
            }
        };
        while let Some(end) = client.line.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = client.line.drain(..=end).collect();
            match serde_json::from_slice(&line) {
                Ok(Request::Attend {}) => {
                    client.attached = true;
                    write_response(client, &Response::Done {});
                }
                Ok(Request::Leave {}) => {
                    client.attached = false;
                    write_response(client, &Response::Done {});
                }
                Ok(request) => events.push(ClientEvent::Request(request)),
                Err(error) => {
                    let message = format!("invalid request to the supervisor: {error}");
                    let help = "the job was started by another version of jobc".to_owned();
                    write_response(client, &Response::Refused { message, help: Some(help) });
                }
            }
        }
        if over && let Some(client) = self.clients.remove(&number) {
            poll.remove(&client.stream);
            if client.attached {
                events.push(ClientEvent::Disconnected);
            }
        }
        events
    }

    /// Answers a connection.
    pub(super) fn respond(&mut self, number: u32, result: &Result<()>) {
        if let Some(client) = self.clients.get_mut(&number) {
            write_response(client, &to_response(result));
        }
    }

    /// Whether a command still attends to the job.
    pub(super) fn has_attached_client(&self) -> bool {
        self.clients.values().any(|client| client.attached)
    }
}

/// A result as an answer.
pub(super) fn to_response(result: &Result<()>) -> Response {
    match result {
        Ok(()) => Response::Done {},
        Err(error) => Response::Refused { message: error.to_string(), help: error.advice() },
    }
}

fn write_response(client: &mut Client, answer: &Response) {
    // A client that does not read its one line is gone, or will be.
    let _ = write_line(&mut client.stream, answer);
}
