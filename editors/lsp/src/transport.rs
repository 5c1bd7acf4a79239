//! Messages over two byte streams: frames in, frames out.
//!
//! One thread reads everything that arrives into an unbounded channel, so that the server can see later messages
//! before it handles one. An invalid frame is answered with an error, and reading continues at the
//! next one.

use std::io::{self, BufRead, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use lsp_server::{Connection, ErrorCode, Message};
use serde_json::{Value, json};

/// The maximum size of a message in bytes.
const MAX_BODY: usize = 256 << 20;

/// The maximum length of a header line in bytes.
const MAX_LINE: u64 = 16 << 10;

/// The threads of a connection.
pub(crate) struct Threads {
    reader: JoinHandle<io::Result<()>>,
    writer: JoinHandle<io::Result<()>>,
}

impl Threads {
    /// Waits for both: the reader ends after `exit`, the writer when the connection is dropped.
    pub(crate) fn join(self) -> io::Result<()> {
        let ended = |thread: JoinHandle<io::Result<()>>| thread.join().expect("it does not panic");
        ended(self.reader).and(ended(self.writer))
    }
}

/// A connection over two byte streams.
pub(crate) fn connect(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> (Connection, Threads) {
    let (server, Connection { sender, receiver }) = Connection::memory();
    let output = Arc::new(Mutex::new(output));
    let errors = Arc::clone(&output);
    let reader = std::thread::spawn(move || {
        let mut input = io::BufReader::with_capacity(1 << 16, input);
        while let Some(frame) = Frame::read(&mut input)? {
            if let Some(why) = frame.broken {
                refuse(&errors, ErrorCode::ParseError, &Value::Null, &why)?;
            }
            let Some(body) = frame.body else { continue };
            match message(&body) {
                Ok(message) => {
                    let ends = matches!(&message, Message::Notification(note) if note.method == "exit");
                    if sender.send(message).is_err() || ends {
                        break;
                    }
                }
                Err((code, id, why)) => refuse(&errors, code, &id, &why)?,
            }
        }
        Ok(())
    });
    let writer = std::thread::spawn(move || {
        receiver.iter().try_for_each(|message| {
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            message.write(&mut *output)
        })
    });
    (server, Threads { reader, writer })
}

/// The bytes up to the end of one message.
struct Frame {
    /// Why some bytes before the message are not a message.
    broken: Option<String>,
    body: Option<Vec<u8>>,
}

impl Frame {
    /// The next frame; `None` at the end of the stream.
    fn read(input: &mut impl BufRead) -> io::Result<Option<Self>> {
        let (mut size, mut broken) = (None, None);
        let mut line = vec![];
        loop {
            line.clear();
            if input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
                return Ok(None);
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.trim();
            if text.is_empty() {
                match size {
                    Some(size) => return Self::body(input, size, broken),
                    None if broken.is_some() => return Ok(Some(Self { broken, body: None })),
                    None => continue,
                }
            }
            let (clean, found) = header(text);
            if !clean {
                broken = Some(format!("malformed header line: {text:.80}"));
            }
            match found {
                Some(Ok(found)) => size = Some(found),
                Some(Err(why)) => broken = Some(why),
                None => {}
            }
        }
    }

    fn body(input: &mut impl BufRead, size: usize, broken: Option<String>) -> io::Result<Option<Self>> {
        let mut body = vec![];
        let read = input.by_ref().take(size as u64).read_to_end(&mut body)?;
        // The stream ended inside a message.
        Ok((read == size).then_some(Self { broken, body: Some(body) }))
    }
}

/// Whether a line is a header, and the length that it declares. After a body that is longer than declared, the header
/// of the next message is at the end of a line.
fn header(line: &str) -> (bool, Option<Result<usize, String>>) {
    const LENGTH: &str = "content-length:";
    let lower = line.to_ascii_lowercase();
    let Some(at) = lower.rfind(LENGTH) else {
        let name = lower.split_once(':').map_or("", |(name, _)| name);
        return (!name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'), None);
    };
    let size = lower[at + LENGTH.len()..].trim();
    let size = match size.parse::<usize>() {
        Ok(size) if size <= MAX_BODY => Ok(size),
        Ok(_) => Err(format!("the message is larger than {} MiB", MAX_BODY >> 20)),
        Err(_) => Err(format!("`Content-Length: {size:.40}` is not a number of bytes")),
    };
    (at == 0, Some(size))
}

/// The message in a body; otherwise the error to answer with.
fn message(body: &[u8]) -> Result<Message, (ErrorCode, Value, String)> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| (ErrorCode::ParseError, Value::Null, format!("the message is not JSON: {error}")))?;
    let id = value.get("id").filter(|id| id.is_number() || id.is_string()).cloned().unwrap_or_default();
    serde_json::from_value(value).map_err(|_| {
        let why = "the message is not a request, a response or a notification of JSON-RPC".to_owned();
        (ErrorCode::InvalidRequest, id, why)
    })
}

/// Answers an invalid message; the protocol requires the id `null` if none is known.
fn refuse(output: &Mutex<impl Write>, code: ErrorCode, id: &Value, why: &str) -> io::Result<()> {
    eprintln!("jobc lsp: {why}");
    let body =
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": code as i32, "message": why}}).to_string();
    let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
    write!(output, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frames of a stream: its bodies, and `!` for each error.
    fn check(stream: &str) -> Vec<String> {
        let mut input = stream.as_bytes();
        let mut found = vec![];
        while let Some(frame) = Frame::read(&mut input).expect("memory does not fail") {
            found.extend(frame.broken.map(|_| "!".to_owned()));
            found.extend(frame.body.map(|body| String::from_utf8_lossy(&body).into_owned()));
        }
        found
    }

    #[test]
    fn reading_continues_after_an_invalid_frame() {
        assert_eq!(check("Content-Length: 2\r\n\r\nabcontent-length:1\n\nc"), ["ab", "c"]);
        let typed = "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 1\r\n\r\na";
        assert_eq!(check(typed), ["a"]);
        let next = "Content-Length: 1\r\n\r\nz";
        assert_eq!(check(&format!("Content-Length: x\r\n\r\n{next}")), ["!", "z"]);
        assert_eq!(check(&format!("Content-Length: 99999999999\r\n\r\n{next}")), ["!", "z"]);
        assert_eq!(check(&format!("hello\r\n\r\n{next}")), ["!", "z"]);
        assert_eq!(check(&format!("Content-Length: 2\r\n\r\n{{}}}}{next}")), ["{}", "!", "z"], "too long");
        assert_eq!(check("Content-Length: 5\r\n\r\nab"), Vec::<String>::new(), "the stream ends");
    }

    #[test]
    fn invalid_messages_get_an_error_code() {
        let code =
            |body: &str| message(body.as_bytes()).map(|_| ()).map_err(|(code, id, _)| (code as i32, id));
        assert_eq!(code("{"), Err((-32700, Value::Null)));
        assert_eq!(code("[]"), Err((-32600, Value::Null)));
        assert_eq!(code(r#"{"id": 7}"#), Err((-32600, json!(7))));
        assert_eq!(code(r#"{"jsonrpc": "2.0", "method": "exit"}"#), Ok(()));
    }
}
