//! Messages on stdin and stdout, one per line. Any other line gets an error of the protocol.
//!
//! The transport of the library ignores what is not JSON. Reading and writing are threads, since stdin may be a file that
//! cannot be polled.

use std::io::{self, BufRead as _, Read as _, Write as _};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Maximum length of a message, in bytes.
const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// How many messages are read ahead.
const READ_AHEAD: usize = 16;
/// How long writing the last answers may take.
const FINISH_TIMEOUT: Duration = Duration::from_secs(2);

/// What the reading thread has received.
enum Incoming {
    Line(Vec<u8>),
    TooLong,
    /// The client has closed stdin, or no longer reads.
    Closed,
}

/// Messages as lines.
pub(super) struct Lines {
    incoming: mpsc::Receiver<Incoming>,
    outgoing: Sender<Vec<u8>>,
    finished: Option<Receiver<()>>,
}

/// The end of the writing thread.
pub(super) struct Writer(Option<Receiver<()>>);

impl Writer {
    /// Waits until all answers are written, unless the client does not read them.
    pub(super) fn finish(self) {
        if let Some(finished) = self.0 {
            let _ = finished.recv_timeout(FINISH_TIMEOUT);
        }
    }
}

impl Lines {
    /// Starts to read stdin.
    pub(super) fn of_stdio() -> Self {
        let (sender, incoming) = mpsc::channel(READ_AHEAD);
        let (outgoing, lines) = channel::<Vec<u8>>();
        let (done, finished) = channel();
        let closed = sender.clone();
        thread::spawn(move || {
            if write(&lines).is_err() {
                let _ = closed.blocking_send(Incoming::Closed);
            }
            let _ = done.send(());
        });
        thread::spawn(move || {
            read(&mut io::stdin().lock(), |line| sender.blocking_send(line).is_ok());
            // The other thread has a sender too.
            let _ = sender.blocking_send(Incoming::Closed);
        });
        Self { incoming, outgoing, finished: Some(finished) }
    }

    /// The writing thread, which ends after this.
    pub(super) fn writer(&mut self) -> Writer {
        Writer(self.finished.take())
    }

    fn answer(&self, line: &Value) -> io::Result<()> {
        self.outgoing.send(line.to_string().into_bytes()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// Reads lines until the end; `send` says whether more are wanted.
fn read(from: &mut impl io::BufRead, send: impl Fn(Incoming) -> bool) {
    loop {
        let mut line = Vec::new();
        let limit = MAX_MESSAGE_BYTES as u64 + 1;
        match from.by_ref().take(limit).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let is_too_long = line.len() > MAX_MESSAGE_BYTES;
        if is_too_long && line.last() != Some(&b'\n') && from.skip_until(b'\n').is_err() {
            return;
        }
        if !send(if is_too_long { Incoming::TooLong } else { Incoming::Line(line) }) {
            return;
        }
    }
}

fn write(lines: &Receiver<Vec<u8>>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for mut line in lines {
        line.push(b'\n');
        out.write_all(&line)?;
        out.flush()?;
    }
    Ok(())
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sent =
            serde_json::to_value(&message).map_err(io::Error::other).and_then(|line| self.answer(&line));
        std::future::ready(sent)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let error = match self.incoming.recv().await? {
                Incoming::Closed => return None,
                Incoming::Line(line) if line.trim_ascii().is_empty() => continue,
                Incoming::Line(line) => match parse(&line) {
                    Ok(message) => return Some(message),
                    Err(error) => error,
                },
                Incoming::TooLong => {
                    let why = format!("the message has more than {MAX_MESSAGE_BYTES} bytes");
                    error(&Value::Null, &ErrorData::invalid_request(why, None))
                }
            };
            self.answer(&error).ok()?;
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Reads a message.
///
/// # Errors
/// The answer to a line that is not a message.
fn parse(line: &[u8]) -> Result<RxJsonRpcMessage<RoleServer>, Value> {
    let value: Value = serde_json::from_slice(line).map_err(|why| {
        error(
            &Value::Null,
            &ErrorData::new(ErrorCode::PARSE_ERROR, format!("the message is not JSON: {why}"), None),
        )
    })?;
    let id = value.get("id").filter(|id| id.is_string() || id.is_number()).cloned().unwrap_or_default();
    let why = match &value {
        Value::Array(_) => "batches are not supported",
        value if value.get("jsonrpc").and_then(Value::as_str) != Some("2.0") => "`jsonrpc` must be \"2.0\"",
        _ => "not a request, a notification or a response of JSON-RPC 2.0",
    };
    serde_json::from_value(value).map_err(|_| error(&id, &ErrorData::invalid_request(why, None)))
}

fn error(id: &Value, error: &ErrorData) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_messages_get_an_error() {
        let code = |line: &str| {
            let answer = parse(line.as_bytes()).err()?;
            Some((answer["id"].clone(), answer["error"]["code"].as_i64().unwrap()))
        };
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), None);
        assert_eq!(code(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), None);
        assert_eq!(code("{"), Some((Value::Null, -32700)));
        assert_eq!(code("\u{1}"), Some((Value::Null, -32700)));
        assert_eq!(code("[]"), Some((Value::Null, -32600)));
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":7}"#), Some((json!(7), -32600)));
        assert_eq!(code(r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#), Some((json!("a"), -32600)));
        assert_eq!(code("3"), Some((Value::Null, -32600)));
    }

    #[test]
    fn long_lines_are_skipped() {
        let long = "x".repeat(2 * MAX_MESSAGE_BYTES);
        let exact = "y".repeat(MAX_MESSAGE_BYTES - 1);
        let text = format!("a\n{long}\n{exact}\nb");
        let seen = std::cell::RefCell::new(vec![]);
        read(&mut text.as_bytes(), |line| {
            seen.borrow_mut().push(match line {
                Incoming::Line(line) => line.len().to_string(),
                Incoming::TooLong => "too long".to_owned(),
                Incoming::Closed => "closed".to_owned(),
            });
            true
        });
        assert_eq!(seen.into_inner(), ["2", "too long", &MAX_MESSAGE_BYTES.to_string(), "1"]);
    }
}
