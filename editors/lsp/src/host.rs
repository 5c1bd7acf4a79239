//! Runs the server: on a connection with threads, or in a host without any, such as a web worker.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use jobc_compiler::files::Files;
use lsp_server::{Connection, ErrorCode, Message, Notification, Response};
use serde_json::json;

use crate::server::{Clock, Server, SessionEnd, Step};
use crate::uri;

/// Handles one client until it ends the session; `disk` reads files by absolute paths.
pub fn serve(connection: &Connection, disk: &dyn Files) -> SessionEnd {
    // The next read notices a disconnected client.
    let send = |message| drop(connection.sender.send(message));
    let Ok((id, params)) = connection.initialize_start() else { return SessionEnd::Abruptly };
    let Some(mut server) = Server::start(id, params, disk, Box::new(send), since_start) else {
        return SessionEnd::Abruptly;
    };
    loop {
        while let Ok(message) = connection.receiver.try_recv() {
            server.take(message);
        }
        match server.step() {
            Step::Handled => {}
            Step::Ended(ended) => return ended,
            Step::Idle => match wait(connection, server.pause()) {
                Ok(Some(message)) => server.take(message),
                Ok(None) => server.refresh(),
                Err(ended) => return ended,
            },
        }
    }
}

/// Waits for a message, at most until the pause after a change is over.
fn wait(connection: &Connection, pause: Option<Duration>) -> Result<Option<Message>, SessionEnd> {
    let receiver = &connection.receiver;
    let Some(pause) = pause else {
        return receiver.recv().map(Some).map_err(|_| SessionEnd::Abruptly);
    };
    match receiver.recv_timeout(pause) {
        Ok(message) => Ok(Some(message)),
        Err(error) if error.is_timeout() => Ok(None),
        Err(_) => Err(SessionEnd::Abruptly),
    }
}

fn since_start() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

/// A server that neither waits nor starts threads: its host passes messages to it and calls it again after a pause.
pub struct Embedded<'a> {
    disk: &'a dyn Files,
    now: Clock,
    /// The messages to the client.
    sent: Rc<RefCell<Vec<Message>>>,
    server: Option<Server<'a>>,
}

impl<'a> Embedded<'a> {
    /// A server that waits for `initialize`; `disk` reads files by absolute paths.
    pub fn new(disk: &'a dyn Files, now: Clock) -> Self {
        Self { disk, now, sent: Rc::default(), server: None }
    }

    /// Queues a message for [`Embedded::work`].
    pub fn receive(&mut self, message: Message) {
        match (&mut self.server, message) {
            (Some(server), message) => server.take(message),
            (None, Message::Request(it)) if it.method == "initialize" => {
                let outbox = Rc::clone(&self.sent);
                let send = Box::new(move |message| outbox.borrow_mut().push(message));
                self.server = Server::start(it.id, it.params, self.disk, send, self.now);
            }
            (None, Message::Request(it)) => {
                let why = format!("expected `initialize`, found `{}`", it.method);
                let code = ErrorCode::ServerNotInitialized as i32;
                self.sent.borrow_mut().push(Response::new_err(it.id, code, why).into());
            }
            (None, _) => {}
        }
    }

    /// Reports that a file that is not open has changed.
    pub fn file_changed(&mut self, path: &Utf8Path) {
        let params = json!({"changes": [{"uri": uri::of(path), "type": 2}]});
        self.receive(Notification::new("workspace/didChangeWatchedFiles".to_owned(), params).into());
    }

    /// Handles queued messages, and compiles changed texts if the pause is over. Returns the messages to the client,
    /// and when to call it again if nothing is received until then.
    pub fn work(&mut self) -> (Vec<Message>, Option<Duration>) {
        while let Some(server) = &mut self.server {
            match server.step() {
                Step::Handled => {}
                // Another `initialize` begins a new session.
                Step::Ended(_) => self.server = None,
                Step::Idle if server.pause() == Some(Duration::ZERO) => server.refresh(),
                Step::Idle => break,
            }
        }
        (self.sent.take(), self.server.as_ref().and_then(Server::pause))
    }
}
