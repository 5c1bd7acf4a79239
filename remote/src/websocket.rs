//! A WebSocket client for one thread that polls: whole messages, pings, and the closing handshake.
//!
//! tungstenite has the protocol (RFC 6455). Here are the connection that never waits, and the time.

pub(crate) mod handshake;

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use jobc_registry::http::Duplex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tungstenite::error::{Error, ProtocolError};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

/// A ping is sent when nothing was received for this long: proxies close connections on which nothing moves.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// A connection on which not even a pong arrives for this long is dead.
const DEAD_TIMEOUT: Duration = Duration::from_mins(1);
/// A message may have this many bytes.
const MAX_MESSAGE: usize = 64 << 20;
/// A frame may have this many.
const MAX_FRAME: usize = 16 << 20;

/// A WebSocket.
pub(crate) struct WebSocket {
    socket: tungstenite::WebSocket<Pipe>,
    last_received: Instant,
    last_ping: Instant,
    is_closing: bool,
    /// Something came with the answer to the handshake, and the socket does not report it again.
    has_leftover: bool,
}

/// A message from the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The bytes of a message, binary or text.
    Data(Vec<u8>),
    /// The end, with the reason if it is not the normal one.
    Closed(Option<String>),
}

impl WebSocket {
    /// A connection whose handshake is done; `received` is what came after the answer.
    pub(crate) fn new(connection: Duplex, received: Vec<u8>) -> Self {
        let now = Instant::now();
        let has_leftover = !received.is_empty();
        let config = WebSocketConfig::default()
            .write_buffer_size(0)
            .max_message_size(Some(MAX_MESSAGE))
            .max_frame_size(Some(MAX_FRAME));
        let pipe = Pipe { connection, received: Vec::new(), reads: false, has_received: false };
        Self {
            socket: tungstenite::WebSocket::from_partially_read(pipe, received, Role::Client, Some(config)),
            last_received: now,
            last_ping: now,
            is_closing: false,
            has_leftover,
        }
    }

    /// Queues a message of several parts.
    pub(crate) fn send(&mut self, parts: &[&[u8]]) -> Result<(), String> {
        self.queue(tungstenite::Message::binary(parts.concat()))
    }

    fn queue(&mut self, message: tungstenite::Message) -> Result<(), String> {
        self.socket.send(message).map_err(|error| match error {
            Error::Io(error) => broken(&error),
            error => error.to_string(),
        })
    }

    /// Queues the end of the connection; the server answers it.
    pub(crate) fn close(&mut self) {
        if !std::mem::replace(&mut self.is_closing, true) {
            let _ = self.socket.close(Some(CloseFrame { code: CloseCode::Normal, reason: "".into() }));
            let _ = self.connection().flush();
        }
    }

    fn connection(&mut self) -> &mut Duplex {
        &mut self.socket.get_mut().connection
    }

    /// Whether everything that was queued is sent.
    pub(crate) fn is_flushed(&self) -> bool {
        self.socket.get_ref().connection.is_flushed()
    }

    /// The socket events to wait for.
    pub(crate) fn interest(&self) -> PollFlags {
        let out = if self.is_flushed() { PollFlags::empty() } else { PollFlags::OUT };
        PollFlags::IN | out
    }

    /// When [`Self::step`] must be called even if nothing happens.
    pub(crate) fn timeout(&self) -> Duration {
        if self.has_leftover {
            return Duration::ZERO;
        }
        let next = self.last_received.max(self.last_ping) + PING_INTERVAL;
        next.saturating_duration_since(Instant::now()).max(Duration::from_millis(10))
    }

    /// Sends and receives what can be moved now, and returns what has arrived. Without `reads`, what the server sends
    /// stays with it: it is held back.
    ///
    /// # Errors
    ///
    /// The connection is broken, or the server does not keep to the protocol.
    pub(crate) fn step(&mut self, reads: bool) -> Result<Vec<Message>, String> {
        self.has_leftover = false;
        // What arrived before a broken connection counts: the exit code may be in it.
        let flushed = self.connection().flush();
        let pipe = self.socket.get_mut();
        (pipe.reads, pipe.has_received) = (reads, false);
        let mut messages = Vec::new();
        loop {
            match self.socket.read() {
                Ok(tungstenite::Message::Binary(bytes)) => messages.push(Message::Data(bytes.into())),
                Ok(tungstenite::Message::Text(text)) => {
                    messages.push(Message::Data(text.as_bytes().to_vec()));
                }
                Ok(tungstenite::Message::Close(frame)) => {
                    self.close();
                    messages.push(Message::Closed(frame.as_ref().and_then(close_reason)));
                    return Ok(messages);
                }
                Ok(_) => {}
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => break,
                Err(Error::Io(error)) if messages.is_empty() => return Err(broken(&error)),
                Err(Error::Io(_)) => break,
                Err(
                    Error::ConnectionClosed
                    | Error::AlreadyClosed
                    | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake),
                ) => {
                    messages.push(Message::Closed(Some("the connection broke off".to_owned())));
                    return Ok(messages);
                }
                Err(error) => return Err(format!("the server breaks the WebSocket protocol: {error}")),
            }
        }
        if messages.is_empty() {
            flushed.map_err(|error| broken(&error))?;
        }
        let now = Instant::now();
        if self.socket.get_ref().has_received || !reads {
            self.last_received = now;
        }
        let idle = now - self.last_received;
        if idle >= DEAD_TIMEOUT {
            return Err("the connection is dead: the server answers no pings".to_owned());
        }
        if idle >= PING_INTERVAL && now - self.last_ping >= PING_INTERVAL {
            self.last_ping = now;
            self.queue(tungstenite::Message::Ping(tungstenite::Bytes::new()))?;
        }
        // The answers to pings.
        let _ = self.socket.flush();
        self.connection().flush().map_err(|error| broken(&error))?;
        Ok(messages)
    }
}

impl AsFd for WebSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().connection.as_fd()
    }
}

/// The connection as tungstenite uses it: it takes all that is written, and has what has arrived.
struct Pipe {
    connection: Duplex,
    received: Vec<u8>,
    /// Whether the connection is read when there is nothing left: once in a step.
    reads: bool,
    /// Whether something has arrived in this step.
    has_received: bool,
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.received.is_empty() && std::mem::take(&mut self.reads) {
            let result = self.connection.receive(&mut self.received);
            self.has_received = !self.received.is_empty();
            if !self.has_received {
                result?;
            }
        }
        if self.received.is_empty() && !self.connection.has_ended() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = self.received.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.received[..count]);
        self.received.drain(..count);
        Ok(count)
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.connection.queue(bytes)?;
        Ok(bytes.len())
    }

    /// Queued data is sent by [`WebSocket::step`], after what has arrived was read.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn broken(error: &io::Error) -> String {
    format!("the connection broke off: {}", jobc_sys::error::describe_io(error))
}

/// The words of a close frame; none if it is the normal end.
fn close_reason(frame: &CloseFrame) -> Option<String> {
    let (code, text) = (u16::from(frame.code), frame.reason.as_str());
    (code != 1000).then(|| format!("the server closed the connection ({code}) {text}").trim_end().to_owned())
}

/// Waits until one of some file descriptors is ready, at most for a time. Returns what each is ready for.
pub(crate) fn wait(interests: &[(BorrowedFd<'_>, PollFlags)], timeout: Duration) -> Vec<PollFlags> {
    let mut polled: Vec<PollFd<'_>> =
        interests.iter().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
    let timeout = Timespec::try_from(timeout).ok();
    // An interruption is no event; the caller looks again.
    match poll(&mut polled, timeout.as_ref()) {
        Ok(_) => polled.iter().map(PollFd::revents).collect(),
        Err(_) => vec![PollFlags::empty(); interests.len()],
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use jobc_registry::http::{TlsConnector, TlsSettings};
    use tungstenite::Message as Sent;
    use tungstenite::protocol::frame::Frame;
    use tungstenite::protocol::frame::coding::{Data, OpCode};

    use super::*;

    /// The messages that a client receives until the end from a server that sends these, after the client has sent
    /// `hello`.
    fn check(server: impl FnOnce(&mut tungstenite::WebSocket<std::net::TcpStream>) + Send) -> Vec<Message> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let stream = listener.accept().unwrap().0;
                let mut socket = tungstenite::WebSocket::from_raw_socket(stream, Role::Server, None);
                assert_eq!(socket.read().unwrap(), Sent::binary(b"hello".to_vec()));
                server(&mut socket);
            });
            let tls = TlsConnector::new(TlsSettings::default()).unwrap();
            let timeout = Duration::from_secs(10);
            let connection = Duplex::connect(&address, &tls, None, timeout).unwrap();
            let mut socket = WebSocket::new(connection, vec![]);
            socket.send(&[b"hel", b"lo"]).unwrap();
            let (mut all, began) = (vec![], Instant::now());
            while !matches!(all.last(), Some(Message::Closed(_))) && began.elapsed() < timeout {
                wait(&[(socket.as_fd(), socket.interest())], Duration::from_secs(1));
                all.extend(socket.step(true).unwrap_or_else(|why| vec![Message::Closed(Some(why))]));
            }
            all
        })
    }

    fn data(text: &str) -> Message {
        Message::Data(text.as_bytes().to_vec())
    }

    #[test]
    fn messages_pings_and_the_end() {
        let large = "x".repeat(200_000);
        let all = check(|socket| {
            let part = |text: &str, kind, ends| Frame::message(text.to_owned(), OpCode::Data(kind), ends);
            socket.send(Sent::Frame(part("one ", Data::Binary, false))).unwrap();
            socket.send(Sent::Ping(b"p".as_slice().into())).unwrap();
            socket.send(Sent::Frame(part("message", Data::Continue, true))).unwrap();
            socket.send(Sent::text(large.clone())).unwrap();
            assert_eq!(socket.read().unwrap(), Sent::Pong(b"p".as_slice().into()));
            socket.close(Some(CloseFrame { code: CloseCode::Error, reason: "no node".into() })).unwrap();
            assert!(matches!(socket.read(), Ok(Sent::Close(_))));
        });
        let end = "the server closed the connection (1011) no node".to_owned();
        assert_eq!(all, [data("one message"), data(&large), Message::Closed(Some(end))]);
    }

    #[test]
    fn a_connection_that_breaks_off_keeps_what_came_before() {
        let all = check(|socket| socket.send(Sent::binary(b"0".to_vec())).unwrap());
        assert_eq!(all, [data("0"), Message::Closed(Some("the connection broke off".to_owned()))]);
    }

    #[test]
    fn protocol_violations_are_errors() {
        let all = check(|socket| {
            let frame = Frame::message("x", OpCode::Data(Data::Continue), true);
            socket.send(Sent::Frame(frame)).unwrap();
        });
        let [Message::Closed(Some(why))] = &all[..] else { panic!("{all:?}") };
        assert!(why.starts_with("the server breaks the WebSocket protocol: "), "{why}");
    }

    #[test]
    fn a_normal_end_has_no_reason() {
        let frame = |code, reason: &str| CloseFrame { code, reason: reason.into() };
        assert_eq!(close_reason(&frame(CloseCode::Normal, "bye")), None);
        assert_eq!(
            close_reason(&frame(CloseCode::Away, "")).unwrap(),
            "the server closed the connection (1001)"
        );
    }
}
