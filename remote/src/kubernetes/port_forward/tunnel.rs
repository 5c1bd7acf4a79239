//! Connections through one WebSocket.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use rustix::event::PollFlags;

use super::super::spdy::{self, Encoder, Frame};
use crate::websocket::{Message, WebSocket};

/// Bytes read from a local connection at a time.
const READ_SIZE: usize = 32 << 10;
/// A local connection that does not take more than this holds back the others.
const MAX_WAITING: usize = 1 << 20;
/// Maximum number of bytes kept of an error of the server.
const MAX_ERROR: usize = 4096;

/// A WebSocket with the connections that go through it.
pub(super) struct Tunnel {
    socket: WebSocket,
    received: Vec<u8>,
    encoder: Encoder,
    /// The number of the next stream of a client, which is odd.
    next: u32,
    /// By the number of the stream of errors; that of data is the next odd number.
    connections: BTreeMap<u32, Connection>,
    /// The server no longer accepts streams.
    is_leaving: bool,
}

/// A local connection.
struct Connection {
    local: TcpStream,
    /// Streams that the server has accepted. It drops data that comes earlier.
    replies: u8,
    /// Bytes that the local side has not accepted yet.
    waiting: Vec<u8>,
    local_ended: bool,
    remote_ended: bool,
    /// The end was passed on to the local side.
    is_shut_down: bool,
    error: Vec<u8>,
}

impl Tunnel {
    pub(super) fn new(socket: WebSocket) -> Self {
        Self {
            socket,
            received: Vec::new(),
            encoder: Encoder::default(),
            next: 1,
            connections: BTreeMap::new(),
            is_leaving: false,
        }
    }

    pub(super) fn has_connections(&self) -> bool {
        !self.connections.is_empty()
    }

    pub(super) fn timeout(&self) -> Duration {
        self.socket.timeout()
    }

    /// Whether a local connection is so slow that nothing more is received.
    fn is_full(&self) -> bool {
        self.connections.values().any(|connection| connection.waiting.len() > MAX_WAITING)
    }

    /// The file descriptors to poll: the WebSocket first, then the connections in order.
    pub(super) fn interests(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let mut of_socket = self.socket.interest();
        of_socket.set(PollFlags::IN, !self.is_full());
        let has_room = self.socket.is_flushed();
        let of_connections = self.connections.values().map(move |connection| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, has_room && connection.replies == 2 && !connection.local_ended);
            flags.set(PollFlags::OUT, !connection.waiting.is_empty());
            (connection.local.as_fd(), flags)
        });
        std::iter::once((self.socket.as_fd(), of_socket)).chain(of_connections)
    }

    /// Adds a local connection, which leads to a port of the pod.
    pub(super) fn add(&mut self, local: TcpStream, port: u16) -> Result<(), String> {
        local.set_nonblocking(true).map_err(|error| error.to_string())?;
        // A packet that waits for more would hold up a dialog.
        let _ = local.set_nodelay(true);
        let (errors, port, request) = (self.next, port.to_string(), (self.next / 4).to_string());
        self.next += 4;
        for (stream, kind) in [(errors, "error"), (errors + 2, "data")] {
            let headers = [("streamtype", kind), ("port", &port), ("requestid", &request)];
            let frame = self.encoder.open(stream, &headers);
            self.socket.send(&[&frame])?;
        }
        let connection = Connection {
            local,
            replies: 0,
            waiting: Vec::new(),
            local_ended: false,
            remote_ended: false,
            is_shut_down: false,
            error: Vec::new(),
        };
        self.connections.insert(errors, connection);
        Ok(())
    }

    /// Moves data without blocking; `ready` belongs to [`Self::interests`]. Returns why single connections failed.
    ///
    /// # Errors
    ///
    /// The WebSocket is lost.
    pub(super) fn step(&mut self, ready: &[PollFlags]) -> Result<Vec<String>, String> {
        let numbers: Vec<u32> = self.connections.keys().copied().collect();
        for (number, ready) in numbers.into_iter().zip(&ready[1..]) {
            if !ready.is_empty() {
                self.read_local(number)?;
            }
        }
        let mut failures = Vec::new();
        for message in self.socket.step(!self.is_full())? {
            match message {
                Message::Data(bytes) => self.received.extend_from_slice(&bytes),
                Message::Closed(reason) => {
                    return Err(reason.unwrap_or_else(|| "the server closed the connection".to_owned()));
                }
            }
        }
        while let Some(frame) = spdy::decode(&mut self.received)? {
            failures.extend(self.handle(frame)?);
        }
        self.write_local()?;
        if self.is_leaving && self.connections.is_empty() {
            return Err("the server closed the connection".to_owned());
        }
        Ok(failures)
    }

    fn handle(&mut self, frame: Frame) -> Result<Option<String>, String> {
        match frame {
            Frame::Reply { stream, .. } => {
                if let Some((errors, connection)) = self.of_stream(stream) {
                    connection.replies += 1;
                    if stream == errors {
                        // Only the server writes on it.
                        self.socket.send(&[&spdy::data(errors, true, &[])])?;
                    }
                }
            }
            Frame::Data { stream, is_last, bytes } => {
                let Some((errors, connection)) = self.of_stream(stream) else { return Ok(None) };
                if stream != errors {
                    connection.waiting.extend_from_slice(&bytes);
                    connection.remote_ended |= is_last;
                    return Ok(None);
                }
                let room = MAX_ERROR.saturating_sub(connection.error.len());
                connection.error.extend_from_slice(&bytes[..bytes.len().min(room)]);
                if is_last && !connection.error.is_empty() {
                    let why = String::from_utf8_lossy(&connection.error).trim().to_owned();
                    self.socket.send(&[&spdy::reset(errors + 2)])?;
                    self.connections.remove(&errors);
                    return Ok(Some(why));
                }
            }
            Frame::Reset { stream } => {
                if let Some((errors, connection)) = self.of_stream(stream)
                    && stream != errors
                {
                    connection.remote_ended = true;
                    connection.local_ended = true;
                }
            }
            // Even numbers are the server's own.
            Frame::Ping { id } if id % 2 == 0 => self.socket.send(&[&spdy::ping(id)])?,
            Frame::GoAway => self.is_leaving = true,
            Frame::Ping { .. } | Frame::Other => {}
        }
        Ok(None)
    }

    /// The connection that a stream belongs to, with the number of its stream of errors.
    fn of_stream(&mut self, stream: u32) -> Option<(u32, &mut Connection)> {
        let errors = if stream % 4 == 1 { stream } else { stream.checked_sub(2)? };
        Some((errors, self.connections.get_mut(&errors)?))
    }

    /// Forwards the data of a local connection.
    fn read_local(&mut self, number: u32) -> Result<(), String> {
        let Some(connection) = self.connections.get_mut(&number) else { return Ok(()) };
        if connection.local_ended || connection.replies < 2 {
            return Ok(());
        }
        let mut piece = vec![0; READ_SIZE];
        let frame = match connection.local.read(&mut piece) {
            Ok(0) => {
                connection.local_ended = true;
                spdy::data(number + 2, true, &[])
            }
            Ok(count) => spdy::data(number + 2, false, &piece[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(());
            }
            Err(_) => {
                self.connections.remove(&number);
                spdy::reset(number + 2)
            }
        };
        self.socket.send(&[&frame])
    }

    /// Passes on what the pod has sent, and the ends of both directions.
    fn write_local(&mut self) -> Result<(), String> {
        let mut broken = Vec::new();
        for (number, connection) in &mut self.connections {
            while !connection.waiting.is_empty() {
                match connection.local.write(&connection.waiting) {
                    Ok(count) => drop(connection.waiting.drain(..count)),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(_) => {
                        broken.push(*number);
                        break;
                    }
                }
            }
            if connection.remote_ended && connection.waiting.is_empty() && !connection.is_shut_down {
                connection.is_shut_down = true;
                let _ = connection.local.shutdown(Shutdown::Write);
            }
        }
        for number in broken {
            self.connections.remove(&number);
            self.socket.send(&[&spdy::reset(number + 2)])?;
        }
        self.connections.retain(|_, connection| !(connection.is_shut_down && connection.local_ended));
        Ok(())
    }
}
