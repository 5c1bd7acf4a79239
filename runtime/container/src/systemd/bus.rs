//! A connection to systemd, directly or over a bus: calls, replies, and signals.
//!
//! systemd listens at its own socket, without a program in between, and on the bus of the system or of a user, with the
//! same messages. Every wait has a timeout.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::SYSTEMD;
use super::address::{Address, Socket};
use super::message::{self, Body, FIXED_HEADER_SIZE, Message, Value};

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The connection failed.
    Unreachable(Errno),
    /// The server rejects this user.
    AccessDenied,
    /// The reply is an error: its name and its message.
    ErrorReply(String, String),
    /// There was no answer in time.
    TimedOut,
    /// The connection has ended.
    Closed,
    /// The reply is not a message.
    Malformed,
}

type BusResult<T> = Result<T, Failure>;

/// The bus's own name, and the name of its object's interface.
const DBUS_DRIVER: (&str, &str, &str) =
    ("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus");

/// A connection.
#[derive(Debug)]
pub(super) struct Bus {
    stream: UnixStream,
    serial: u32,
    received: Vec<u8>,
    signals: VecDeque<Message>,
}

impl Bus {
    /// Connects, authenticates, and subscribes to systemd's job signals.
    pub(super) fn open(address: &Address, timeout: Duration) -> BusResult<Self> {
        let until = Instant::now() + timeout;
        let stream = connect(&address.socket, timeout).map_err(Failure::Unreachable)?;
        let mut bus = Self { stream, serial: 0, received: vec![], signals: VecDeque::new() };
        // The kernel reports the user: a number written here would be that of another user namespace. All in one
        // piece: systemd does not look at a message that came with the `BEGIN` until the next one comes.
        bus.send(b"\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n", until)?;
        if !bus.read_line(until)?.starts_with("DATA") || !bus.read_line(until)?.starts_with("OK") {
            return Err(Failure::AccessDenied);
        }
        if address.bus {
            bus.call(DBUS_DRIVER, "Hello", Body::default(), until)?;
            let rule = "type='signal',interface='org.freedesktop.systemd1.Manager',member='JobRemoved'";
            bus.call(
                DBUS_DRIVER,
                "AddMatch",
                Body::default().with_value(&Value::Text(rule.to_owned())),
                until,
            )?;
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
    ) -> BusResult<Body> {
        self.serial += 1;
        let call = Message {
            kind: message::METHOD_CALL,
            serial: self.serial,
            path: path.to_owned(),
            interface: interface.to_owned(),
            member: member.to_owned(),
            body,
            ..Message::default()
        };
        self.send(&call.encode(destination), until)?;
        loop {
            let message = self.read_message(until)?;
            match message.kind {
                message::METHOD_RETURN if message.reply_serial == Some(self.serial) => {
                    return Ok(message.body);
                }
                message::ERROR if message.reply_serial == Some(self.serial) => {
                    let says = message.body.texts().into_iter().next().unwrap_or_default();
                    return Err(Failure::ErrorReply(message.error, says));
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
    ) -> BusResult<T> {
        loop {
            let message = match self.signals.pop_front() {
                Some(message) => message,
                None => self.read_message(until)?,
            };
            if message.kind == message::SIGNAL
                && message.member == member
                && let Some(found) = read(&message.body.texts())
            {
                return Ok(found);
            }
        }
    }

    fn send(&mut self, bytes: &[u8], until: Instant) -> BusResult<()> {
        let left = remaining_time(until)?;
        self.stream.set_write_timeout(Some(left)).map_err(|_| Failure::Closed)?;
        self.stream.write_all(bytes).map_err(|error| failure(&error))
    }

    /// Waits for more bytes.
    fn read_more(&mut self, until: Instant) -> BusResult<()> {
        let left = remaining_time(until)?;
        self.stream.set_read_timeout(Some(left)).map_err(|_| Failure::Closed)?;
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(Failure::Closed),
            Ok(count) => {
                self.received.extend(&bytes[..count]);
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(failure(&error)),
        }
    }

    /// The next line of the greeting.
    fn read_line(&mut self, until: Instant) -> BusResult<String> {
        loop {
            if let Some(end) = self.received.windows(2).position(|pair| pair == b"\r\n") {
                let line: Vec<u8> = self.received.drain(..end + 2).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.received.len() > 4096 {
                return Err(Failure::Malformed);
            }
            self.read_more(until)?;
        }
    }

    /// The next message.
    fn read_message(&mut self, until: Instant) -> BusResult<Message> {
        loop {
            if let Some(head) = self.received.get(..FIXED_HEADER_SIZE) {
                let whole = Message::length(head).ok_or(Failure::Malformed)?;
                if self.received.len() >= whole {
                    let bytes: Vec<u8> = self.received.drain(..whole).collect();
                    return Message::decode(&bytes).ok_or(Failure::Malformed);
                }
            }
            self.read_more(until)?;
        }
    }
}

fn connect(socket: &Socket, timeout: Duration) -> Result<UnixStream, Errno> {
    let address = match socket {
        Socket::Path(path) => SocketAddrUnix::new(path)?,
        Socket::Abstract(name) => SocketAddrUnix::new_abstract_name(name)?,
    };
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // It holds for connect(2) too, if the listener no longer accepts connections (unix(7)).
    set_socket_timeout(&socket, Timeout::Send, Some(timeout))?;
    rustix::io::retry_on_intr(|| rustix::net::connect(&socket, &address))?;
    Ok(socket.into())
}

/// The remaining time; zero is an error, because `SO_RCVTIMEO` takes it for no limit.
fn remaining_time(until: Instant) -> BusResult<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(Failure::TimedOut) } else { Ok(left) }
}

fn failure(error: &std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => Failure::TimedOut,
        _ => Failure::Closed,
    }
}
