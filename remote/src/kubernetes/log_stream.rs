//! One connection for the output of a pod. It never blocks: [`super::log_streams`] polls many of them.

use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use jobc_registry::http::{Duplex, parse_retry_after};
use rustix::event::PollFlags;

use super::client::Client;
use super::status::{ApiError, Status};
use super::upgrade::read_status;
use crate::http::{Answer, BodyDecoder, take_answer};

/// To connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// A stream on which nothing arrives is opened again after this time: it may be dead.
const IDLE: Duration = Duration::from_mins(2);
/// Lines are passed on in pieces of this size.
const MAX_LINE: usize = 1 << 20;
/// Maximum number of bytes read of an error response.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Buffers are made smaller than this when they are empty: there may be hundreds.
const KEPT_CAPACITY: usize = 4 << 10;

/// A connection that brings lines.
pub(crate) struct LogStream {
    connection: Duplex,
    received: Vec<u8>,
    answer: Option<(Answer, BodyDecoder)>,
    /// Decoded but not yet forwarded: the start of a line.
    body: Vec<u8>,
    /// The beginning of this line was passed on.
    is_within_line: bool,
    last_received: Instant,
}

/// A line, or a piece of a very long one.
pub(crate) struct Piece<'a> {
    pub(crate) text: &'a [u8],
    /// The earlier part of the same line was already forwarded.
    pub(crate) is_continuation: bool,
}

/// The state of a stream.
pub(crate) enum Progress {
    Open,
    /// It has ended; unless cleanly, more may have followed.
    Ended {
        is_clean: bool,
    },
    /// The server has answered with an error.
    Refused(Box<Status>),
}

impl LogStream {
    /// Connects and queues the request. Waits for the connection, not for the answer: servers answer the request of a
    /// quiet container with its first line only.
    pub(crate) fn open(client: &Client, path: &str) -> Result<Self, ApiError> {
        let (mut connection, headers) = client.connect(CONNECT_TIMEOUT)?;
        let server = &client.config().server;
        let (_, rest) = server.split_once("://").unwrap_or(("", server));
        let (host, prefix) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let mut request = format!(
            "GET {prefix}{path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: jobc/{}\r\nAccept: */*\r\nConnection: close\r\n",
            env!("CARGO_PKG_VERSION")
        );
        for (name, value) in &headers {
            request += &format!("{name}: {}\r\n", value.replace(['\r', '\n'], ""));
        }
        request += "\r\n";
        connection
            .queue(request.as_bytes())
            .map_err(|error| ApiError::Connection(format!("{server}: {error}")))?;
        Ok(Self {
            connection,
            received: Vec::new(),
            answer: None,
            body: Vec::new(),
            is_within_line: false,
            last_received: Instant::now(),
        })
    }

    /// The socket events to wait for.
    pub(crate) fn interest(&self) -> PollFlags {
        let out = if self.connection.is_flushed() { PollFlags::empty() } else { PollFlags::OUT };
        PollFlags::IN | out
    }

    /// When [`Self::step`] must be called even if nothing arrives.
    pub(crate) fn deadline(&self) -> Instant {
        self.last_received + IDLE
    }

    /// Reads the received bytes, and forwards complete lines. Stops as soon as `line` does.
    pub(crate) fn step(
        &mut self,
        line: &mut dyn FnMut(Piece<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<(), Progress> {
        let moved = self.connection.flush().and_then(|()| self.connection.receive(&mut self.received));
        if !self.received.is_empty() {
            self.last_received = Instant::now();
        }
        let has_ended = self.connection.has_ended();
        let decoded = self.decode();
        let is_complete = self.answer.as_ref().is_some_and(|(_, body)| body.is_complete(has_ended));
        let broken = ControlFlow::Continue(Progress::Ended { is_clean: false });
        let failed = moved.is_err() || decoded.is_err() || has_ended || Instant::now() >= self.deadline();
        if let Some((answer, _)) = &self.answer
            && !(200..300).contains(&answer.code)
        {
            if !(is_complete || failed || self.body.len() > MAX_ERROR_BYTES) {
                return ControlFlow::Continue(Progress::Open);
            }
            let mut status = read_status(answer.code, &self.body);
            let asked = answer.header("retry-after").and_then(parse_retry_after);
            status.retry_after =
                asked.or_else(|| status.details.retry_after_seconds.map(Duration::from_secs));
            return ControlFlow::Continue(Progress::Refused(Box::new(status)));
        }
        self.pass_on(is_complete, line)?;
        if is_complete {
            return ControlFlow::Continue(Progress::Ended { is_clean: true });
        }
        if failed {
            // The received part of the last line is sent again.
            return broken;
        }
        ControlFlow::Continue(Progress::Open)
    }

    fn decode(&mut self) -> Result<(), String> {
        if self.answer.is_none()
            && let Some(answer) = take_answer(&mut self.received)?
        {
            let body = BodyDecoder::of(&answer);
            self.answer = Some((answer, body));
        }
        if let Some((_, body)) = &mut self.answer {
            body.decode(&mut self.received, &mut self.body)?;
            shrink(&mut self.received);
        }
        Ok(())
    }

    /// Passes whole lines on, and the last one without its end if nothing more comes.
    fn pass_on(
        &mut self,
        is_complete: bool,
        line: &mut dyn FnMut(Piece<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut at = 0;
        while at < self.body.len() {
            let rest = &self.body[at..];
            let end = rest.iter().position(|byte| *byte == b'\n');
            let (text, length) = match end {
                Some(end) => (&rest[..end], end + 1),
                None if is_complete || rest.len() >= MAX_LINE => (rest, rest.len()),
                None => break,
            };
            line(Piece { text, is_continuation: self.is_within_line })?;
            self.is_within_line = end.is_none();
            at += length;
        }
        self.body.drain(..at);
        shrink(&mut self.body);
        ControlFlow::Continue(())
    }
}

impl AsFd for LogStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}

fn shrink(buffer: &mut Vec<u8>) {
    if buffer.len() < KEPT_CAPACITY && buffer.capacity() > KEPT_CAPACITY {
        buffer.shrink_to(KEPT_CAPACITY);
    }
}
