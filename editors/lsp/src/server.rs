//! Handles messages in order, cancellations, and the end of the session.
//!
//! Everything that has arrived is queued before a message is handled, so that a canceled request is never started.
//! A changed text is parsed for the next request, and compiled in the pause after the change, once for all changes; a
//! request that needs findings waits for that. Nothing here blocks: `host` does.

use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use jobc_compiler::files::Files;
use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::{
    DidChangeTextDocumentParams, DidChangeWatchedFilesParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, DidSaveTextDocumentParams, InitializeParams,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::capabilities;
use crate::client::Client;
use crate::dispatch::{self, Failure, Needs};
use crate::session::Session;

/// The length of the pause after a change before it is compiled.
const PAUSE: Duration = Duration::from_millis(25);

/// The same for a job that takes long to compile: longer than the time between two keystrokes.
const MAX_PAUSE: Duration = Duration::from_millis(250);

/// A compilation that takes less time is done at once for a request that needs it.
const SHORT: Duration = Duration::from_millis(40);

/// How the session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// By `shutdown` and `exit`, as the protocol requires.
    Properly,
    /// By `exit` alone, or because the client disconnected.
    Abruptly,
}

/// The time since a fixed moment. The host provides it: not all have a clock that Rust supports.
pub type Clock = fn() -> Duration;

/// The result of [`Server::step`].
pub(crate) enum Step {
    /// It handled a message.
    Handled,
    /// No message is left to handle.
    Idle,
    /// The client has ended the session.
    Ended(SessionEnd),
}

pub(crate) struct Server<'a> {
    send: Box<dyn Fn(Message) + 'a>,
    now: Clock,
    session: Session<'a>,
    queue: VecDeque<Message>,
    /// Requests that are answered after the next compilation.
    waiting: Vec<Request>,
    cancelled: BTreeSet<RequestId>,
    /// The time of the last change.
    changed: Duration,
    /// The duration of the last compilation.
    cost: Duration,
    shut_down: bool,
}

impl<'a> Server<'a> {
    /// Handles `initialize`; returns `None` if its parameters are invalid.
    pub(crate) fn start(
        id: RequestId,
        params: Value,
        disk: &'a dyn Files,
        send: Box<dyn Fn(Message) + 'a>,
        now: Clock,
    ) -> Option<Self> {
        let client = match serde_json::from_value::<InitializeParams>(params) {
            Ok(params) => Client::new(&params),
            Err(error) => {
                let why = format!("the parameters of `initialize` cannot be read: {error}");
                send(Response::new_err(id, ErrorCode::InvalidParams as i32, why).into());
                return None;
            }
        };
        send(Response::new_ok(id, capabilities::initialize(&client)).into());
        Some(Self {
            send,
            now,
            session: Session::new(client, disk),
            queue: VecDeque::new(),
            waiting: vec![],
            cancelled: BTreeSet::new(),
            changed: now(),
            cost: Duration::ZERO,
            shut_down: false,
        })
    }

    /// Handles the next message of the queue.
    pub(crate) fn step(&mut self) -> Step {
        let Some(message) = self.queue.pop_front() else { return Step::Idle };
        match message {
            Message::Request(request) => self.request(request),
            Message::Notification(note) if note.method == "exit" => {
                return Step::Ended(if self.shut_down { SessionEnd::Properly } else { SessionEnd::Abruptly });
            }
            Message::Notification(note) => self.notification(note),
            // We only request the client to watch files and to pull diagnostics again, and it may refuse.
            Message::Response(_) => {}
        }
        Step::Handled
    }

    /// How long to wait for a message before [`Server::refresh`]; `None` if nothing has changed.
    pub(crate) fn pause(&self) -> Option<Duration> {
        let pending = self.session.is_stale() || !self.waiting.is_empty();
        let due = self.changed + self.cost.clamp(PAUSE, MAX_PAUSE);
        pending.then(|| due.saturating_sub((self.now)()))
    }

    /// Queues a message; a cancellation takes effect at once.
    pub(crate) fn take(&mut self, message: Message) {
        match message {
            Message::Notification(note) if note.method == "$/cancelRequest" => {
                if let Ok(id) = serde_json::from_value(note.params.get("id").cloned().unwrap_or_default()) {
                    self.cancel(id);
                }
            }
            message => self.queue.push_back(message),
        }
    }

    fn cancel(&mut self, id: RequestId) {
        if let Some(at) = self.waiting.iter().position(|request| request.id == id) {
            let request = self.waiting.remove(at);
            self.fail(request.id, ErrorCode::RequestCanceled, "the request was cancelled");
        } else if self.queue.iter().any(|it| matches!(it, Message::Request(request) if request.id == id)) {
            self.cancelled.insert(id);
        }
    }

    fn fail(&self, id: RequestId, code: ErrorCode, why: &str) {
        (self.send)(Response::new_err(id, code as i32, why.to_owned()).into());
    }

    fn request(&mut self, request: Request) {
        if self.cancelled.remove(&request.id) {
            self.fail(request.id, ErrorCode::RequestCanceled, "the request was cancelled");
        } else if self.shut_down {
            self.fail(request.id, ErrorCode::InvalidRequest, "the server was shut down");
        } else if request.method == "initialize" {
            self.fail(request.id, ErrorCode::InvalidRequest, "the server is initialized already");
        } else if request.method == "shutdown" {
            self.shut_down = true;
            for waiting in std::mem::take(&mut self.waiting) {
                self.fail(waiting.id, ErrorCode::RequestCanceled, "the server was shut down");
            }
            (self.send)(Response::new_ok(request.id, Value::Null).into());
        } else {
            match dispatch::needs(&request.method) {
                Needs::Text => {}
                Needs::Plan => {
                    if self.session.is_stale() && self.may_compile() {
                        self.refresh();
                    }
                }
                Needs::Findings => {
                    if self.session.is_stale() {
                        self.waiting.push(request);
                        if self.may_compile() {
                            self.refresh();
                        }
                        return;
                    }
                }
            }
            self.answer(request);
        }
    }

    /// Whether to compile before the pause: it is fast, and the text is probably not about to change again.
    fn may_compile(&self) -> bool {
        let changes = |message: &Message| matches!(message, Message::Notification(note) if note.method == "textDocument/didChange");
        self.cost < SHORT && !self.queue.iter().any(changes)
    }

    fn answer(&mut self, request: Request) {
        let Request { id, method, params } = request;
        // A panic fails only one request: all that a request changes in the session are parsed trees.
        let answer = catch_unwind(AssertUnwindSafe(|| {
            self.session.parse();
            dispatch::answer(&self.session, &method, params)
        }));
        let response = match answer.unwrap_or_else(|_| Err(Failure::bug(&method))) {
            Ok(result) => Response::new_ok(id, result),
            Err(Failure { code, message }) => Response::new_err(id, code as i32, message),
        };
        for message in self.session.take_warnings() {
            let params = json!({"type": 2, "message": message});
            (self.send)(Notification::new("window/showMessage".to_owned(), params).into());
        }
        (self.send)(response.into());
    }

    fn notification(&mut self, note: Notification) {
        let Notification { method, params } = note;
        match method.as_str() {
            "initialized" if self.session.client.watches_files => {
                let id = RequestId::from("jobc-files".to_owned());
                let request =
                    Request::new(id, "client/registerCapability".to_owned(), capabilities::watching());
                (self.send)(request.into());
            }
            "textDocument/didOpen" => {
                if let Some(DidOpenTextDocumentParams { text_document: it }) = read(&method, params) {
                    self.session.open(&it.uri, &language(&it.language_id), it.version, it.text);
                }
            }
            "textDocument/didChange" => {
                if let Some(DidChangeTextDocumentParams { text_document: it, content_changes }) =
                    read(&method, params)
                {
                    let uri = it.text_document_identifier.uri;
                    self.outdate(&uri.0);
                    self.session.change(&uri, it.version, content_changes);
                }
            }
            "textDocument/didClose" => {
                if let Some(DidCloseTextDocumentParams { text_document }) = read(&method, params) {
                    self.session.close(&text_document.uri);
                }
            }
            "textDocument/didSave" => {
                if let Some(DidSaveTextDocumentParams { text_document, .. }) = read(&method, params) {
                    self.session.file_changed(&text_document.uri);
                }
            }
            "workspace/didChangeWatchedFiles" => {
                if let Some(DidChangeWatchedFilesParams { changes }) = read(&method, params) {
                    for change in changes {
                        self.session.file_changed(&change.uri);
                    }
                }
            }
            "workspace/didChangeConfiguration" => {
                // The other settings can only be set in `initialize`.
                if let Some(Value::String(target)) = params.pointer("/settings/jobc/target") {
                    self.session.show_target(target.clone());
                }
            }
            // Other notifications may be ignored: the protocol allows it for names that begin with `$/`.
            _ => return,
        }
        self.changed = (self.now)();
    }

    /// Rejects the waiting requests about a text that changes: their positions refer to the previous text.
    fn outdate(&mut self, uri: &str) {
        let about = |request: &Request| request.params["textDocument"]["uri"] == *uri;
        let (outdated, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(about);
        self.waiting = waiting;
        let outdated: Vec<Request> = outdated;
        for request in outdated {
            self.fail(request.id, ErrorCode::ContentModified, "the text has changed since");
        }
    }

    /// Compiles changed texts, publishes the findings, and answers the requests that wait for them.
    pub(crate) fn refresh(&mut self) {
        let start = (self.now)();
        if let Ok(changed) = catch_unwind(AssertUnwindSafe(|| self.session.refresh())) {
            let pulls = self.session.client.pulls;
            let (pulled, pushed): (Vec<_>, Vec<_>) =
                changed.into_iter().partition(|it| pulls && self.session.documents.get(&it.uri).is_some());
            let requested = |uri: &str| {
                let about = |request: &Request| request.params["textDocument"]["uri"] == *uri;
                self.waiting.iter().any(|it| it.method == "textDocument/diagnostic" && about(it))
            };
            if pulled.iter().any(|it| !requested(&it.uri.0)) {
                // A text that another depends on has changed, or the client has not pulled yet.
                let id = RequestId::from("jobc-diagnostics".to_owned());
                let request = Request::new(id, "workspace/diagnostic/refresh".to_owned(), Value::Null);
                (self.send)(request.into());
            }
            for params in pushed {
                let note = Notification::new("textDocument/publishDiagnostics".to_owned(), params);
                (self.send)(note.into());
            }
            self.session.settle();
        } else {
            let message = "internal error of jobc with this file; please report it with the file";
            let params = json!({"type": 1, "message": message});
            (self.send)(Notification::new("window/showMessage".to_owned(), params).into());
        }
        self.cost = (self.now)().saturating_sub(start);
        for request in std::mem::take(&mut self.waiting) {
            self.answer(request);
        }
    }
}

/// The name of a language as the client wrote it.
fn language(kind: &lsp_types::LanguageKind) -> String {
    serde_json::to_value(kind).ok().and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The parameters of a notification; invalid ones are logged and ignored.
fn read<T: DeserializeOwned>(method: &str, params: Value) -> Option<T> {
    match serde_json::from_value(params) {
        Ok(params) => Some(params),
        Err(error) => {
            eprintln!("jobc lsp: `{method}` cannot be read: {error}");
            None
        }
    }
}
