//! The control socket, from the supervisor's side: commands connect, ask a line and get one back.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::fs::{Mode, OFlags};

use super::poll::{Poll, Ready};
use crate::control::{Answer, Request, write_line};
use crate::directory::Directory;
use jobc_sys::error::{Error, Result, machine};

/// The most of a line that is taken in before its end.
const LONGEST: usize = 1 << 20;

/// How many commands may be connected at once.
const MOST: usize = 256;

/// Connected commands.
#[derive(Debug)]
pub(super) struct Visitors {
    listener: UnixListener,
    clients: BTreeMap<u32, Client>,
    next: u32,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    line: Vec<u8>,
    /// Its end is the job's.
    attends: bool,
}

/// What came of a connection.
#[derive(Debug)]
pub(super) enum Said {
    /// It asks for something.
    Asks(Request),
    /// It attended to the job, and is gone without a word.
    Deserted,
}

impl Visitors {
    /// Listens in the job's directory, with the command that submitted the job connected already.
    pub(super) fn listen(
        directory: &Directory,
        poll: &Poll,
        first: UnixStream,
        attends: bool,
    ) -> Result<Self> {
        let path = directory.control();
        let listen = || -> std::io::Result<UnixListener> {
            // A socket's path has 108 bytes at most (unix(7)): it is named from its directory.
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let state = rustix::fs::open(&directory.state, flags, Mode::empty())?;
            let listener = UnixListener::bind(format!("/proc/self/fd/{}/control", state.as_raw_fd()))?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = listen().map_err(|error| machine("listen at", &path, &error))?;
        poll.add(&listener, Ready::Visitor)?;
        let mut visitors = Self { listener, clients: BTreeMap::new(), next: 0 };
        visitors.admit(first, attends, poll)?;
        Ok(visitors)
    }

    /// Takes in a command that connects.
    pub(super) fn accept(&mut self, poll: &Poll) {
        while let Ok((stream, _)) = self.listener.accept() {
            let own = rustix::process::geteuid();
            let peer = rustix::net::sockopt::socket_peercred(&stream);
            let trusted = peer.is_ok_and(|peer| peer.uid == own || peer.uid.is_root());
            if trusted && self.clients.len() < MOST {
                // What cannot be waited for is closed.
                let _ = self.admit(stream, false, poll);
            }
        }
    }

    fn admit(&mut self, stream: UnixStream, attends: bool, poll: &Poll) -> Result<()> {
        let number = self.next;
        let set = stream.set_nonblocking(true);
        set.map_err(|error| Error::new(jobc_sys::error::Kind::Machine, error.to_string()))?;
        poll.add(&stream, Ready::Client(number))?;
        self.next += 1;
        self.clients.insert(number, Client { stream, line: Vec::new(), attends });
        Ok(())
    }

    /// The requests of a connection, line by line; the connection is removed at its end.
    pub(super) fn hear(&mut self, number: u32, poll: &Poll) -> Vec<Said> {
        let Some(client) = self.clients.get_mut(&number) else { return vec![] };
        let mut said = Vec::new();
        let mut bytes = [0_u8; 4096];
        let over = loop {
            match client.stream.read(&mut bytes) {
                Ok(0) => break true,
                Ok(count) => client.line.extend(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => break error.kind() != ErrorKind::WouldBlock,
            }
            if client.line.len() > LONGEST {
                break true;
            }
        };
        while let Some(end) = client.line.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = client.line.drain(..=end).collect();
            match serde_json::from_slice(&line) {
                Ok(Request::Attend {}) => {
                    client.attends = true;
                    answer(client, &Answer::Done {});
                }
                Ok(Request::Leave {}) => {
                    client.attends = false;
                    answer(client, &Answer::Done {});
                }
                Ok(request) => said.push(Said::Asks(request)),
                Err(error) => {
                    let message = format!("invalid request to the supervisor: {error}");
                    let help = "the job was started by another version of jobc".to_owned();
                    answer(client, &Answer::Refused { message, help: Some(help) });
                }
            }
        }
        if over && let Some(client) = self.clients.remove(&number) {
            poll.remove(&client.stream);
            if client.attends {
                said.push(Said::Deserted);
            }
        }
        said
    }

    /// Answers a connection.
    pub(super) fn answer(&mut self, number: u32, result: &Result<()>) {
        if let Some(client) = self.clients.get_mut(&number) {
            answer(client, &told(result));
        }
    }

    /// Whether a command still attends to the job.
    pub(super) fn are_attending(&self) -> bool {
        self.clients.values().any(|client| client.attends)
    }
}

/// A result as an answer.
pub(super) fn told(result: &Result<()>) -> Answer {
    match result {
        Ok(()) => Answer::Done {},
        Err(error) => Answer::Refused { message: error.to_string(), help: error.help.clone() },
    }
}

fn answer(client: &mut Client, answer: &Answer) {
    // A client that does not read its one line is gone, or will be.
    let _ = write_line(&mut client.stream, answer);
}
