//! A command in a task, at a terminal whose other end is a WebSocket.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::time::Duration;

use axum::body::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use jobc_process::Running;
use rustix::fs::OFlags;
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

use crate::limits::Stream;
use crate::own::Own;
use crate::problem::Problem;
use crate::web_socket::Socket;

/// What is read at a time.
const CHUNK_BYTES: usize = 16 << 10;
/// How long a command may take until it prints something.
const START: Duration = Duration::from_secs(2);
/// How often a quiet connection is looked after.
const PING: Duration = Duration::from_secs(30);

/// A text of the other end.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resize {
    /// Columns and rows.
    resize: (u16, u16),
}

/// A command at a terminal.
pub(crate) struct Terminal {
    master: File,
    running: Running,
    /// What the command prints.
    output: mpsc::Receiver<Vec<u8>>,
    /// What is typed.
    input: mpsc::Sender<Bytes>,
    _stream: Stream,
}

impl Terminal {
    /// Starts a command.
    ///
    /// # Errors
    /// No terminal is free, or the command cannot be started.
    pub(crate) fn start(own: &Own, stream: Stream) -> Result<Self, Problem> {
        let (master, slave) = pair().map_err(|errno| Problem::from(io::Error::from(errno)))?;
        let master = File::from(master);
        resize(&master, 80, 24);
        let mut process = own.command().process()?;
        process.env("TERM", "xterm-256color").env("COLORTERM", "truecolor");
        let child = process.stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(slave).spawn()?;
        // It has the other end too, which would stay open.
        drop(process);
        let running = Running::new(child);
        let (sender, output) = mpsc::channel(8);
        let mut reader = master.try_clone()?;
        std::thread::spawn(move || {
            let mut buffer = vec![0; CHUNK_BYTES];
            // The error after the last process has closed the other end.
            while let Ok(bytes @ 1..) = reader.read(&mut buffer) {
                if sender.blocking_send(buffer[..bytes].to_vec()).is_err() {
                    return;
                }
            }
        });
        let (input, mut typed) = mpsc::channel::<Bytes>(8);
        let mut writer = master.try_clone()?;
        std::thread::spawn(move || {
            while let Some(bytes) = typed.blocking_recv() {
                if writer.write_all(&bytes).is_err() {
                    return;
                }
            }
        });
        Ok(Self { master, running, output, input, _stream: stream })
    }

    /// Carries bytes both ways until the command or the connection ends.
    pub(crate) async fn serve(mut self, mut socket: Socket) {
        // What is typed before the command has set up its terminal would be lost.
        let (mut is_ready, begin) = (false, tokio::time::Instant::now() + START);
        let has_ended = loop {
            tokio::select! {
                () = tokio::time::sleep_until(begin), if !is_ready => is_ready = true,
                bytes = self.output.recv() => {
                    let Some(bytes) = bytes else { break true };
                    is_ready = true;
                    if socket.send(Message::binary(bytes)).await.is_err() {
                        break false;
                    }
                }
                message = tokio::time::timeout(PING, socket.next()), if is_ready => match message {
                    Err(_) => if socket.send(Message::Ping(Bytes::new())).await.is_err() {
                        break false;
                    },
                    // A command that reads nothing holds up only who types.
                    Ok(Some(Ok(Message::Binary(bytes)))) => if self.input.send(bytes).await.is_err() {
                        break true;
                    },
                    Ok(Some(Ok(Message::Text(text)))) => {
                        if let Ok(Resize { resize: (columns, rows) }) = serde_json::from_str(&text) {
                            resize(&self.master, columns, rows);
                            // It is no session's terminal, so that the kernel signals no process.
                            self.running.signal(Signal::WINCH);
                        }
                    }
                    Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) => break false,
                    Ok(Some(Ok(_))) => {}
                },
            }
        };
        if !has_ended {
            // As when a terminal is closed.
            self.running.signal(Signal::HUP);
        }
        let running = self.running.clone();
        let waited = tokio::task::spawn_blocking(move || running.wait());
        let code = match tokio::time::timeout(Duration::from_secs(5), waited).await {
            Ok(Ok(status)) => status.and_then(|status| status.code()),
            _ => None,
        };
        self.running.kill();
        let end = json!({ "exit": code }).to_string();
        let _ = socket.send(Message::text(end)).await;
        let _ = socket.close(None).await;
    }
}

fn pair() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, vec![])?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name, flags, rustix::fs::Mode::empty())?;
    Ok((master, slave))
}

fn resize(master: &File, columns: u16, rows: u16) {
    let size =
        Winsize { ws_row: rows.clamp(1, 1000), ws_col: columns.clamp(1, 1000), ws_xpixel: 0, ws_ypixel: 0 };
    let _ = tcsetwinsize(master, size);
}
