//! The language server of this program, with one message of JSON-RPC in each text of a WebSocket.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::process::Stdio;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use jobc_process::Running;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

use crate::limits::Stream;
use crate::own::Own;
use crate::problem::Problem;
use crate::web_socket::Socket;

/// The largest message of the server.
const MAX_MESSAGE: usize = 16 << 20;
/// How often a quiet connection is looked after.
const PING: Duration = Duration::from_secs(30);

/// A language server.
pub(crate) struct Language {
    running: Running,
    sent: std::sync::mpsc::SyncSender<String>,
    received: mpsc::Receiver<String>,
    _stream: Stream,
}

impl Language {
    /// Starts a server.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start(own: &Own, stream: Stream) -> Result<Self, Problem> {
        let mut process = own.command().process()?;
        let mut child = process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let running = Running::new(child);
        let (sent, messages) = std::sync::mpsc::sync_channel::<String>(64);
        std::thread::spawn(move || {
            let Some(mut input) = input else { return };
            for message in messages {
                if write!(input, "Content-Length: {}\r\n\r\n{message}", message.len()).is_err() {
                    return;
                }
            }
        });
        let (sender, received) = mpsc::channel(64);
        let ended = running.clone();
        std::thread::spawn(move || {
            let mut output = output.map(BufReader::new);
            while let Some(message) = output.as_mut().and_then(frame) {
                if sender.blocking_send(message).is_err() {
                    break;
                }
            }
            ended.kill();
            ended.wait();
        });
        Ok(Self { running, sent, received, _stream: stream })
    }

    /// Carries messages both ways until the server or the connection ends.
    pub(crate) async fn serve(mut self, mut socket: Socket) {
        loop {
            tokio::select! {
                message = self.received.recv() => {
                    let Some(message) = message else { break };
                    if socket.send(Message::text(message)).await.is_err() {
                        break;
                    }
                }
                message = tokio::time::timeout(PING, socket.next()) => match message {
                    Err(_) => if socket.send(Message::Ping(vec![].into())).await.is_err() {
                        break;
                    },
                    Ok(Some(Ok(Message::Text(text)))) => {
                        // A server that is this far behind is stuck.
                        if self.sent.try_send(text.to_string()).is_err() {
                            break;
                        }
                    }
                    Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => {}
                    _ => break,
                },
            }
        }
        let _ = socket.close(None).await;
    }
}

impl Drop for Language {
    fn drop(&mut self) {
        self.running.kill();
    }
}

/// The next message of a server.
fn frame(output: &mut BufReader<std::process::ChildStdout>) -> Option<String> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if output.by_ref().take(1 << 10).read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => {
                if let Some((name, value)) = line.split_once(':')
                    && name.eq_ignore_ascii_case("content-length")
                {
                    length = value.trim().parse::<usize>().ok();
                }
            }
        }
    }
    let mut body = vec![0; length.filter(|&length| length <= MAX_MESSAGE)?];
    output.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}
