//! A command in a running pod, over WebSocket: `v5.channel.k8s.io`, or `v4` of servers before 1.30.
//!
//! The first byte of a message is its channel. The command's end comes as a `Status` on a channel of its own. Only `v5`
//! can close stdin alone.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use jobc_schema::percent::encode_segment;
use jobc_sys::error::{Error, Kind, Result};
use rustix::event::PollFlags;
use serde_json::json;

use super::client::Client;
use super::pods::Pod;
use super::status::Status;
use crate::place::{ExecRequest, ExecStreams};
use crate::user_side::{self, UserEvent, UserSide};
use crate::websocket::{Message, WebSocket, wait};

/// The protocols, the better one first.
const PROTOCOLS: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
const RESIZE: u8 = 4;
/// In `v5`: closes the channel that follows.
const CLOSE: u8 = 255;
/// Maximum number of bytes read from stdin at once.
const READ_SIZE: usize = 32 << 10;
/// After the command's status, the server closes the connection; it is not waited for longer than this.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// The exit code of a program whose output no longer has a reader.
const BROKEN_PIPE_CODE: u8 = 128 + 13;

/// Runs a command in a pod until it ends; returns its exit code.
pub(crate) fn exec(
    client: &Client,
    pod: &Pod,
    request: &ExecRequest,
    mut streams: ExecStreams<'_>,
) -> Result<u8> {
    let place = (pod.metadata.name.as_str(), pod.container());
    let request = &ExecRequest { command: user_side::words(request)?, ..request.clone() };
    let path = path(&client.config().namespace, place, request, streams.stdin.is_some());
    let what = format!("run a command in task `{}`", pod.task());
    let (socket, protocol) = client.upgrade(&path, &PROTOCOLS).map_err(|error| error.into_error(&what))?;
    let can_close = protocol == PROTOCOLS[0];
    if request.needs_end_of_input && !can_close {
        return Err(Error::new(
            Kind::Unsupported,
            "the cluster cannot signal the end of the input to a command",
        )
        .help("this needs Kubernetes 1.30 or newer"));
    }
    let mut session = Session { socket, can_close, terminal: request.terminal, status: None };
    let user = UserSide::new(request, streams.signals);
    if let Some(started) = streams.started.take() {
        started()?;
    }
    match session.run(streams, user) {
        Ok(End::Status(status)) => exit_code(&status),
        Ok(End::Interrupted(code)) => Ok(code),
        Err(why) => Err(Error::new(Kind::System, format!("cannot {what}: {why}"))
            .help("whether the command still runs is not known")),
    }
}

fn path(namespace: &str, (pod, container): (&str, &str), request: &ExecRequest, has_input: bool) -> String {
    let mut path = format!(
        "/api/v1/namespaces/{namespace}/pods/{pod}/exec?container={container}&stdin={has_input}&stdout=true&stderr={}&tty={}",
        !request.terminal, request.terminal
    );
    for word in &request.command {
        path += &format!("&command={}", encode_segment(word));
    }
    path
}

/// A command that runs.
struct Session {
    socket: WebSocket,
    can_close: bool,
    terminal: bool,
    status: Option<(Status, Instant)>,
}

enum End {
    Status(Box<Status>),
    /// The user ended it here, with this exit code.
    Interrupted(u8),
}

impl Session {
    fn run(
        &mut self,
        mut streams: ExecStreams<'_>,
        mut user: UserSide<'_>,
    ) -> std::result::Result<End, String> {
        let mut input = streams.stdin.take().map(File::from);
        let [mut out, mut errors] = [streams.stdout, streams.stderr].map(File::from);
        // The size of a terminal comes first.
        let mut has_event = true;
        loop {
            while let Some(event) = has_event.then(|| user.next()).flatten() {
                match event {
                    UserEvent::Resized { columns, rows } => {
                        let size = json!({"Width": columns, "Height": rows}).to_string();
                        self.socket.send(&[&[RESIZE], size.as_bytes()])?;
                    }
                    UserEvent::Interrupted(code) => {
                        self.socket.close();
                        return Ok(End::Interrupted(code));
                    }
                }
            }
            let mut interests = vec![(self.socket.as_fd(), self.socket.interest())];
            let mut add = |descriptor| {
                interests.push((descriptor, PollFlags::IN));
                interests.len() - 1
            };
            let events = user.ready().map(&mut add);
            // Data that the server does not accept yet stays in the pipe.
            let has_room = self.socket.is_flushed();
            let of_input = input.as_ref().filter(|_| has_room).map(|file| add(file.as_fd()));
            let timeout = if self.status.is_some() { END_TIMEOUT } else { self.socket.timeout() };
            let ready = wait(&interests, timeout);
            let is_ready = |at: Option<usize>| at.is_some_and(|at| !ready[at].is_empty());
            has_event = is_ready(events);
            if is_ready(of_input) {
                self.pass_input(&mut input)?;
            }
            for message in self.socket.step(true)? {
                let data = match message {
                    Message::Data(data) => data,
                    Message::Closed(reason) => {
                        return match self.status.take() {
                            Some((status, _)) => Ok(End::Status(Box::new(status))),
                            None => Err(reason.unwrap_or_else(|| "the connection broke off".to_owned())),
                        };
                    }
                };
                let Some((channel, bytes)) = data.split_first() else { continue };
                let written = match *channel {
                    STDOUT => out.write_all(bytes),
                    STDERR => errors.write_all(bytes),
                    STATUS if !bytes.is_empty() => {
                        self.status = Some((read_status(bytes)?, Instant::now()));
                        Ok(())
                    }
                    _ => Ok(()),
                };
                if written.is_err() {
                    self.socket.close();
                    return Ok(End::Interrupted(BROKEN_PIPE_CODE));
                }
            }
            if let Some((status, _)) = self.status.take_if(|(_, since)| since.elapsed() >= END_TIMEOUT) {
                return Ok(End::Status(Box::new(status)));
            }
        }
    }

    fn pass_input(&mut self, input: &mut Option<File>) -> std::result::Result<(), String> {
        let Some(file) = input else { return Ok(()) };
        let mut piece = vec![0; READ_SIZE];
        match file.read(&mut piece) {
            Ok(count) if count > 0 => self.socket.send(&[&[STDIN], &piece[..count]]),
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::Interrupted | std::io::ErrorKind::WouldBlock
                ) =>
            {
                Ok(())
            }
            // The end, or a terminal that went away.
            _ => {
                *input = None;
                match (self.can_close, self.terminal) {
                    (true, _) => self.socket.send(&[&[CLOSE, STDIN]]),
                    // Ctrl-D.
                    (false, true) => self.socket.send(&[&[STDIN, 4]]),
                    (false, false) => Ok(()),
                }
            }
        }
    }
}

fn read_status(bytes: &[u8]) -> std::result::Result<Status, String> {
    serde_json::from_slice(bytes).map_err(|_| {
        // Servers before 1.12 wrote text.
        String::from_utf8_lossy(bytes).trim().to_owned()
    })
}

/// The exit code that a status means.
fn exit_code(status: &Status) -> Result<u8> {
    if status.outcome == "Success" {
        return Ok(0);
    }
    if status.reason == "NonZeroExitCode" {
        let cause = status.details.causes.iter().find(|cause| cause.reason == "ExitCode");
        if let Some(code) = cause.and_then(|cause| cause.message.trim().parse::<i64>().ok()) {
            return Ok(u8::try_from(code & 0xff).unwrap_or(1));
        }
    }
    let text = status.text();
    let kind = if text.contains("executable file not found") || text.contains("no such file or directory") {
        Kind::ProgramNotFound
    } else if text.contains("permission denied") {
        Kind::NotExecutable
    } else {
        Kind::System
    };
    Err(Error::new(kind, format!("the cluster cannot run the command: {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_command() {
        for (text, expected) in [
            (r#"{"metadata":{},"status":"Success"}"#, Ok(0)),
            (
                r#"{"status":"Failure","message":"command terminated with non-zero exit code","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"42"}]}}"#,
                Ok(42),
            ),
            (
                r#"{"status":"Failure","message":"exec: \"nope\": executable file not found in $PATH: unknown","reason":"InternalError","code":500}"#,
                Err(Kind::ProgramNotFound),
            ),
            (
                r#"{"status":"Failure","message":"exec /etc/passwd: permission denied: unknown","reason":"InternalError"}"#,
                Err(Kind::NotExecutable),
            ),
            (r#"{"status":"Failure","message":"container not running"}"#, Err(Kind::System)),
        ] {
            let status = read_status(text.as_bytes()).unwrap();
            assert_eq!(exit_code(&status).map_err(|error| error.kind), expected, "{text}");
        }
        assert_eq!(read_status(b"broken\n").unwrap_err(), "broken");
    }

    #[test]
    fn every_word_of_the_command_is_a_parameter() {
        let request = ExecRequest {
            command: vec!["sh".to_owned(), "-c".to_owned(), "echo a&b".to_owned()],
            ..ExecRequest::default()
        };
        assert_eq!(
            path("ml", ("p", "main"), &request, false),
            "/api/v1/namespaces/ml/pods/p/exec?container=main&stdin=false&stdout=true&stderr=true&tty=false&command=sh&command=-c&command=echo%20a%26b"
        );
    }
}
