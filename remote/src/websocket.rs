//! A WebSocket client (RFC 6455) for one thread that polls: whole messages, pings, and the closing handshake.

mod frame;
pub(crate) mod handshake;
mod sha1;

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use jobc_registry::http::Duplex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::rand::{GetRandomFlags, getrandom};

use frame::Opcode;

/// A ping is sent when nothing was received for this long: proxies close connections on which nothing moves.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// A connection on which not even a pong arrives for this long is dead.
const DEAD_TIMEOUT: Duration = Duration::from_mins(1);
/// A message may have this many bytes.
const MAX_MESSAGE: usize = 64 << 20;

/// A WebSocket.
pub(crate) struct WebSocket {
    connection: Duplex,
    received: Vec<u8>,
    /// The message whose end has not come.
    partial: Option<Vec<u8>>,
    last_received: Instant,
    last_ping: Instant,
    is_closing: bool,
    /// Something came with the answer to the handshake, and the socket does not report it again.
    has_leftover: bool,
}

/// What a server sent.
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
        Self {
            has_leftover,
            connection,
            received,
            partial: None,
            last_received: now,
            last_ping: now,
            is_closing: false,
        }
    }

    /// Queues a message of several parts.
    pub(crate) fn send(&mut self, parts: &[&[u8]]) -> Result<(), String> {
        self.send_frame(Opcode::Binary, parts)
    }

    /// Queues the end of the connection; the server answers it.
    pub(crate) fn close(&mut self) {
        if !std::mem::replace(&mut self.is_closing, true) {
            let _ = self.send_frame(Opcode::Close, &[&1000_u16.to_be_bytes()]);
            let _ = self.connection.flush();
        }
    }

    /// Whether everything that was queued is sent.
    pub(crate) fn is_flushed(&self) -> bool {
        self.connection.is_flushed()
    }

    fn send_frame(&mut self, opcode: Opcode, parts: &[&[u8]]) -> Result<(), String> {
        let mut mask = [0; 4];
        fill_random(&mut mask)?;
        let mut out = Vec::new();
        frame::encode(opcode, parts, mask, &mut out);
        self.connection.queue(&out).map_err(|error| broken(&error))
    }

    /// What to wait for on the socket.
    pub(crate) fn interest(&self) -> PollFlags {
        let out = if self.connection.is_flushed() { PollFlags::empty() } else { PollFlags::OUT };
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
        let before = self.received.len();
        // What arrived before a broken connection counts: the exit code may be in it.
        let flushed = self.connection.flush();
        let read = if reads { self.connection.receive(&mut self.received) } else { Ok(()) };
        let now = Instant::now();
        if self.received.len() > before || !reads {
            self.last_received = now;
        }
        let mut messages = Vec::new();
        while let Some(frame) = frame::decode(&mut self.received)? {
            match frame.opcode {
                Opcode::Ping => self.send_frame(Opcode::Pong, &[&frame.payload])?,
                Opcode::Pong => {}
                Opcode::Close => {
                    self.close();
                    messages.push(Message::Closed(close_reason(&frame.payload)));
                    return Ok(messages);
                }
                Opcode::Continuation if self.partial.is_none() => {
                    return Err("the server continues a message that it has not begun".to_owned());
                }
                Opcode::Text | Opcode::Binary if self.partial.is_some() => {
                    return Err("the server begins a message within another".to_owned());
                }
                _ => {
                    let mut message = self.partial.take().unwrap_or_default();
                    message.extend_from_slice(&frame.payload);
                    if message.len() > MAX_MESSAGE {
                        return Err("the server sent a message that is too large".to_owned());
                    }
                    if frame.is_last {
                        messages.push(Message::Data(message));
                    } else {
                        self.partial = Some(message);
                    }
                }
            }
        }
        if self.connection.has_ended() {
            messages.push(Message::Closed(Some("the connection broke off".to_owned())));
        } else if messages.is_empty() {
            flushed.and(read).map_err(|error| broken(&error))?;
        }
        let idle = now - self.last_received;
        if idle >= DEAD_TIMEOUT {
            return Err("the connection is dead: the server answers no pings".to_owned());
        }
        if idle >= PING_INTERVAL && now - self.last_ping >= PING_INTERVAL {
            self.last_ping = now;
            self.send_frame(Opcode::Ping, &[])?;
        }
        self.connection.flush().map_err(|error| broken(&error))?;
        Ok(messages)
    }
}

impl AsFd for WebSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}

fn broken(error: &std::io::Error) -> String {
    format!("the connection broke off: {}", jobc_sys::error::describe_io(error))
}

/// The words of a close frame; none if it is the normal end.
fn close_reason(payload: &[u8]) -> Option<String> {
    let [high, low, text @ ..] = payload else { return None };
    let code = u16::from_be_bytes([*high, *low]);
    let text = String::from_utf8_lossy(text);
    (code != 1000).then(|| format!("the server closed the connection ({code}) {text}").trim_end().to_owned())
}

/// Random bytes for keys and masks.
pub(crate) fn fill_random(bytes: &mut [u8]) -> Result<(), String> {
    match getrandom(&mut *bytes, GetRandomFlags::empty()) {
        Ok(count) if count == bytes.len() => Ok(()),
        _ => Err("cannot get random bytes".to_owned()),
    }
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
    use super::*;

    #[test]
    fn the_reason_of_an_end() {
        assert_eq!(close_reason(&[]), None);
        assert_eq!(close_reason(&1000_u16.to_be_bytes()), None);
        let mut payload = 1011_u16.to_be_bytes().to_vec();
        payload.extend_from_slice(b"no node");
        assert_eq!(close_reason(&payload).unwrap(), "the server closed the connection (1011) no node");
    }
}
