//! Requests that become a WebSocket: `exec` and `portforward` of pods.

use std::time::{Duration, Instant};

use super::client::Client;
use super::status::{ApiError, Status};
use crate::http::take_answer;
use crate::websocket::{WebSocket, handshake, wait};
use rustix::event::PollFlags;
use std::os::fd::AsFd as _;

/// To connect, and until the server answers: the pod's node takes part in it.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of bytes read of an error response.
const MAX_ERROR_BYTES: usize = 64 << 10;

impl Client {
    /// Opens a WebSocket with one of the protocols; returns the one that the server chose.
    pub(crate) fn upgrade(&self, path: &str, protocols: &[&str]) -> Result<(WebSocket, String), ApiError> {
        match self.upgrade_once(path, protocols) {
            Err(error) if error.is(401) && self.renew() => self.upgrade_once(path, protocols),
            other => other,
        }
    }

    fn upgrade_once(&self, path: &str, protocols: &[&str]) -> Result<(WebSocket, String), ApiError> {
        let broken = |why: String| ApiError::Connection(format!("{}: {why}", self.config().server));
        let deadline = Instant::now() + TIMEOUT;
        let (mut connection, headers) = self.connect(TIMEOUT)?;
        let key = handshake::generate_key();
        let server = &self.config().server;
        let (_, rest) = server.split_once("://").unwrap_or(("", server));
        let (host, prefix) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let request = handshake::request(&format!("{prefix}{path}"), host, &key, protocols, &headers);
        connection.queue(request.as_bytes()).map_err(|error| broken(error.to_string()))?;
        let mut received = Vec::new();
        let mut answer = None;
        loop {
            let step = connection.flush().and_then(|()| connection.receive(&mut received));
            step.map_err(|error| broken(jobc_sys::error::describe_io(&error)))?;
            if answer.is_none() {
                answer = take_answer(&mut received).map_err(broken)?;
            }
            if let Some(answer) = &answer {
                if answer.code == 101 {
                    let chosen = handshake::protocol(answer, &key, protocols).map_err(broken)?;
                    return Ok((WebSocket::new(connection, received), chosen));
                }
                let length = answer.header("content-length").and_then(|length| length.parse().ok());
                let complete = length.is_some_and(|length: usize| received.len() >= length)
                    || received.ends_with(b"\n0\r\n\r\n")
                    || received.len() > MAX_ERROR_BYTES;
                if complete || connection.has_ended() {
                    return Err(ApiError::Status(Box::new(read_status(answer.code, &received))));
                }
            }
            if connection.has_ended() {
                return Err(broken("the connection broke off".to_owned()));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(broken("timed out".to_owned()));
            }
            let out = if connection.is_flushed() { PollFlags::empty() } else { PollFlags::OUT };
            wait(&[(connection.as_fd(), PollFlags::IN | out)], left);
        }
    }
}

/// The error in an answer: a `Status` in JSON, which may lie in one chunk, or text.
pub(super) fn read_status(code: u16, body: &[u8]) -> Status {
    let text = String::from_utf8_lossy(body);
    let json = text.find('{').zip(text.rfind('}')).map(|(start, end)| &text[start..=end]);
    let mut status: Status = json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_else(|| {
        Status { message: text.chars().take(300).collect::<String>().trim().to_owned(), ..Status::default() }
    });
    status.code = code;
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_an_answer() {
        let body = b"{\"kind\":\"Status\",\"message\":\"pods \\\"x\\\" not found\",\"reason\":\"NotFound\",\"code\":404}\n";
        for body in [body.to_vec(), [b"53\r\n", &body[..], b"\r\n0\r\n\r\n"].concat()] {
            let status = read_status(404, &body);
            assert_eq!((status.code, status.message.as_str()), (404, "pods \"x\" not found"));
        }
        assert_eq!(read_status(502, b" bad gateway\n").message, "bad gateway");
    }
}
