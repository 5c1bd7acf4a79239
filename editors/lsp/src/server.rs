//! The message loop: messages in order, cancellations, and the end.
//!
//! One thread does the work. Pending messages are read before the next request is handled, so that a cancelled request
//! is never started. A job is compiled when no messages are left or a request needs it, so that ten changes in a row
//! cost one compilation.

use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use jobc_compiler::files::Files;
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::{
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams, InitializeParams,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::capabilities;
use crate::client::Client;
use crate::dispatch::{self, Failure};
use crate::session::Session;

/// How the session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By `shutdown` and `exit`, as the protocol requires.
    Properly,
    /// By `exit` alone, or because the client disconnected.
    Abruptly,
}

/// Handles one client until it ends the session; `disk` reads files by absolute paths.
pub fn serve(connection: &Connection, disk: &dyn Files) -> Ended {
    let Ok((id, params)) = connection.initialize_start() else { return Ended::Abruptly };
    let client = match serde_json::from_value::<InitializeParams>(params) {
        Ok(params) => Client::new(&params),
        Err(error) => {
            let why = format!("the parameters of `initialize` cannot be read: {error}");
            send(connection, Response::new_err(id, ErrorCode::InvalidParams as i32, why).into());
            return Ended::Abruptly;
        }
    };
    send(connection, Response::new_ok(id, capabilities::initialize(&client)).into());
    let session = Session::new(client, disk);
    Server { connection, session, queue: VecDeque::new(), cancelled: BTreeSet::new(), shut_down: false }.run()
}

fn send(connection: &Connection, message: Message) {
    // A disconnected client is noticed by the next read.
    let _ = connection.sender.send(message);
}

struct Server<'a> {
    connection: &'a Connection,
    session: Session<'a>,
    queue: VecDeque<Message>,
    cancelled: BTreeSet<RequestId>,
    shut_down: bool,
}

impl Server<'_> {
    fn run(mut self) -> Ended {
        loop {
            self.read_what_is_there();
            let Some(message) = self.queue.pop_front() else {
                self.refresh();
                let Ok(message) = self.connection.receiver.recv() else { return Ended::Abruptly };
                self.take(message);
                continue;
            };
            match message {
                Message::Request(request) => self.request(request),
                Message::Notification(note) if note.method == "exit" => {
                    return if self.shut_down { Ended::Properly } else { Ended::Abruptly };
                }
                Message::Notification(note) => self.notification(note),
                // Our only request to the client is to watch files, and the client may refuse.
                Message::Response(_) => {}
            }
        }
    }

    fn read_what_is_there(&mut self) {
        while let Ok(message) = self.connection.receiver.try_recv() {
            self.take(message);
        }
    }

    /// Queues a message; a cancellation takes effect at once.
    fn take(&mut self, message: Message) {
        match message {
            Message::Notification(note) if note.method == "$/cancelRequest" => {
                if let Ok(id) = serde_json::from_value(note.params.get("id").cloned().unwrap_or_default()) {
                    self.cancelled.insert(id);
                }
            }
            message => self.queue.push_back(message),
        }
    }

    fn request(&mut self, request: Request) {
        let Request { id, method, params } = request;
        let response = if self.cancelled.remove(&id) {
            Response::new_err(id, ErrorCode::RequestCanceled as i32, "the request was cancelled".to_owned())
        } else if self.shut_down {
            let why = "the server was shut down".to_owned();
            Response::new_err(id, ErrorCode::InvalidRequest as i32, why)
        } else if method == "shutdown" {
            self.shut_down = true;
            Response::new_ok(id, Value::Null)
        } else {
            if dispatch::needs_findings(&method) {
                self.refresh();
            }
            // An internal error fails only one request, since a request changes nothing in the session.
            let answer = catch_unwind(AssertUnwindSafe(|| dispatch::answer(&self.session, &method, params)));
            match answer.unwrap_or_else(|_| Err(Failure::bug(&method))) {
                Ok(result) => Response::new_ok(id, result),
                Err(Failure { code, message }) => Response::new_err(id, code as i32, message),
            }
        };
        send(self.connection, response.into());
    }

    fn notification(&mut self, note: Notification) {
        let Notification { method, params } = note;
        match method.as_str() {
            "initialized" if self.session.client.watches_files => {
                let id = RequestId::from("jobc-files".to_owned());
                let request =
                    Request::new(id, "client/registerCapability".to_owned(), capabilities::watching());
                send(self.connection, request.into());
            }
            "textDocument/didOpen" => {
                if let Some(DidOpenTextDocumentParams { text_document: it }) = read(&method, params) {
                    self.session.open(&it.uri, it.version, it.text);
                }
            }
            "textDocument/didChange" => {
                if let Some(DidChangeTextDocumentParams { text_document: it, content_changes }) =
                    read(&method, params)
                {
                    self.session.change(&it.text_document_identifier.uri, it.version, content_changes);
                }
            }
            "textDocument/didClose" => {
                if let Some(DidCloseTextDocumentParams { text_document }) = read(&method, params) {
                    self.session.close(&text_document.uri);
                }
            }
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => {
                self.session.everything_may_have_changed();
            }
            "workspace/didChangeConfiguration" => {
                // The other settings are those of `initialize`.
                if let Some(Value::String(target)) = params.pointer("/settings/jobc/target") {
                    self.session.show_target(target.clone());
                }
            }
            // Other notifications may be ignored; the protocol allows it for names that begin with `$/`.
            _ => {}
        }
    }

    /// Compiles what has changed and publishes the findings.
    fn refresh(&mut self) {
        if !self.session.is_stale() {
            return;
        }
        if let Ok(changed) = catch_unwind(AssertUnwindSafe(|| self.session.refresh())) {
            for params in changed {
                let note = Notification::new("textDocument/publishDiagnostics".to_owned(), params);
                send(self.connection, note.into());
            }
            self.session.settle();
        } else {
            let message = "internal error of jobc with this file; please report it with the file";
            let params = json!({"type": 1, "message": message});
            send(self.connection, Notification::new("window/showMessage".to_owned(), params).into());
        }
    }
}

/// The parameters of a notification; if they cannot be parsed, it is logged and ignored.
fn read<T: DeserializeOwned>(method: &str, params: Value) -> Option<T> {
    match serde_json::from_value(params) {
        Ok(params) => Some(params),
        Err(error) => {
            eprintln!("jobc lsp: `{method}` cannot be read: {error}");
            None
        }
    }
}
