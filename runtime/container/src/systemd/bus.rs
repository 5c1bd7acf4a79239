//! A connection to systemd or to a bus on which it is: calls, their answers, and signals.
//!
//! systemd listens at a socket of its own, at which no other program stands between, and is on the bus of the system or
//! of a user, with the same messages. Every wait has a timeout.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::SYSTEMD;
use super::address::{Address, Socket};
use super::message::{self, Body, FIXED, Message, Value};

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Nobody can be reached there.
    Unreachable(Errno),
    /// Whoever listens does not take this user.
    NotTaken,
    /// The reply is an error: its name and its message.
    Refused(String, String),
    /// There was no answer in time.
    Late,
    /// The connection has ended.
    Closed,
    /// The reply is not a message.
    Garbled,
}

type Answer<T> = Result<T, Failure>;

/// The bus's own name, and the name of its object's interface.
const BUS: (&str, &str, &str) = ("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus");

/// A connection.
#[derive(Debug)]
pub(super) struct Bus {
    stream: UnixStream,
    serial: u32,
    came: Vec<u8>,
    signals: VecDeque<Message>,
}

impl Bus {
    /// Connects, authenticates, and subscribes to systemd's job signals.
    pub(super) fn open(address: &Address, patience: Duration) -> Answer<Self> {
        let until = Instant::now() + patience;
        let stream = connect(&address.socket, patience).map_err(Failure::Unreachable)?;
        let mut bus = Self { stream, serial: 0, came: vec![], signals: VecDeque::new() };
        // The kernel reports the user: a number written here would be that of another user namespace. All in one
        // piece: systemd does not look at a message that came with the `BEGIN` until the next one comes.
        bus.send(b"\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n", until)?;
        if !bus.line(until)?.starts_with("DATA") || !bus.line(until)?.starts_with("OK") {
            return Err(Failure::NotTaken);
        }
        if address.bus {
            bus.call(BUS, "Hello", Body::default(), until)?;
            let rule = "type='signal',interface='org.freedesktop.systemd1.Manager',member='JobRemoved'";
            bus.call(BUS, "AddMatch", Body::default().with(&Value::Text(rule.to_owned())), until)?;
            bus.call(SYSTEMD, "Subscribe", Body::default(), until)?;
        }
        Ok(bus)
    }

    /// Calls a method of an object (its bus's name, its path, the interface), and waits for the answer.
    pub(super) fn call(
        &mut self,
        (destination, path, interface): (&str, &str, &str),
        member: &str,
        body: Body,
        until: Instant,
    ) -> Answer<Body> {
        self.serial += 1;
        let call = Message {
            kind: message::CALL,
            serial: self.serial,
            path: path.to_owned(),
            interface: interface.to_owned(),
            member: member.to_owned(),
            body,
            ..Message::default()
        };
        self.send(&call.written(destination), until)?;
        loop {
            let message = self.next(until)?;
            match message.kind {
                message::ANSWER if message.answers == Some(self.serial) => return Ok(message.body),
                message::ERROR if message.answers == Some(self.serial) => {
                    let says = message.body.texts().into_iter().next().unwrap_or_default();
                    return Err(Failure::Refused(message.error, says));
                }
                message::SIGNAL => self.signals.push_back(message),
                _ => {}
            }
        }
    }

    /// Waits for a signal of that name for which `read` finds something in its texts.
    pub(super) fn signal<T>(
        &mut self,
        member: &str,
        until: Instant,
        read: impl Fn(&[String]) -> Option<T>,
    ) -> Answer<T> {
        loop {
            let message = match self.signals.pop_front() {
                Some(message) => message,
                None => self.next(until)?,
            };
            if message.kind == message::SIGNAL
                && message.member == member
                && let Some(found) = read(&message.body.texts())
            {
                return Ok(found);
            }
        }
    }

    fn send(&mut self, bytes: &[u8], until: Instant) -> Answer<()> {
        let left = left(until)?;
        self.stream.set_write_timeout(Some(left)).map_err(|_| Failure::Closed)?;
        self.stream.write_all(bytes).map_err(|error| failure(&error))
    }

    /// Waits for more bytes.
    fn more(&mut self, until: Instant) -> Answer<()> {
        let left = left(until)?;
        self.stream.set_read_timeout(Some(left)).map_err(|_| Failure::Closed)?;
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(Failure::Closed),
            Ok(count) => {
                self.came.extend(&bytes[..count]);
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(failure(&error)),
        }
    }

    /// The next line of the greeting.
    fn line(&mut self, until: Instant) -> Answer<String> {
        loop {
            if let Some(end) = self.came.windows(2).position(|pair| pair == b"\r\n") {
                let line: Vec<u8> = self.came.drain(..end + 2).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.came.len() > 4096 {
                return Err(Failure::Garbled);
            }
            self.more(until)?;
        }
    }

    /// The next message.
    fn next(&mut self, until: Instant) -> Answer<Message> {
        loop {
            if let Some(head) = self.came.get(..FIXED) {
                let whole = Message::length(head).ok_or(Failure::Garbled)?;
                if self.came.len() >= whole {
                    let bytes: Vec<u8> = self.came.drain(..whole).collect();
                    return Message::read(&bytes).ok_or(Failure::Garbled);
                }
            }
            self.more(until)?;
        }
    }
}

fn connect(socket: &Socket, patience: Duration) -> Result<UnixStream, Errno> {
    let address = match socket {
        Socket::Path(path) => SocketAddrUnix::new(path)?,
        Socket::Abstract(name) => SocketAddrUnix::new_abstract_name(name)?,
    };
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // It holds for connect(2) too, if the listener no longer accepts connections (unix(7)).
    set_socket_timeout(&socket, Timeout::Send, Some(patience))?;
    rustix::io::retry_on_intr(|| rustix::net::connect(&socket, &address))?;
    Ok(socket.into())
}

/// The time that is left; none is an error, which `SO_RCVTIMEO` would take for no limit.
fn left(until: Instant) -> Answer<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(Failure::Late) } else { Ok(left) }
}

fn failure(error: &std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => Failure::Late,
        _ => Failure::Closed,
    }
}
