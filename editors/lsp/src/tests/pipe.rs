//! A client over real pipes, where messages arrive while others are handled.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use jobc_compiler::files::Files;
use serde_json::{Value, json};

use crate::host::serve;
use crate::server::SessionEnd;
use crate::transport::connect;

struct Client {
    to: PipeWriter,
    from: PipeReader,
    buffer: Vec<u8>,
}

impl Client {
    /// Writes messages as one chunk.
    fn send(&mut self, messages: &[Value]) {
        let mut bytes = vec![];
        for message in messages {
            let body = message.to_string();
            bytes.extend(format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes());
        }
        self.to.write_all(&bytes).expect("the server reads");
    }

    /// The next message of the server.
    fn next(&mut self) -> Value {
        let find = |buffer: &[u8], text: &[u8]| buffer.windows(text.len()).position(|part| part == text);
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
                let size: usize = head.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a length");
                if self.buffer.len() >= end + 4 + size {
                    let body = self.buffer.drain(..end + 4 + size).skip(end + 4).collect::<Vec<u8>>();
                    return serde_json::from_slice(&body).expect("JSON");
                }
            }
            let mut piece = vec![0; 65536];
            let read = self.from.read(&mut piece).expect("the server writes");
            assert!(read > 0, "the server is gone");
            self.buffer.extend(&piece[..read]);
        }
    }

    /// Waits until the server has queued everything that was sent, while the server itself sends nothing.
    fn wait_until_read(&mut self) {
        // The reading thread rejects this itself, after queuing everything before it.
        self.to.write_all(b"Content-Length: 1\r\n\r\n!").expect("the server reads");
        assert_eq!(self.next()["error"]["code"], -32700);
    }

    /// The messages up to and including the response with an id.
    fn until(&mut self, id: i32) -> Vec<Value> {
        let mut found = vec![];
        loop {
            found.push(self.next());
            if found.last().expect("one was pushed")["id"] == id {
                return found;
            }
        }
    }
}

/// An empty disk. A request that looks for a file below `/slow` blocks while a test holds the lock.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<()>>);

impl Files for Disk {
    fn read(&self, _: &Utf8Path) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn exists(&self, path: &Utf8Path) -> bool {
        if path.starts_with("/slow") {
            drop(self.0.lock());
        }
        false
    }
}

/// Runs a script after `initialize` with the id 0, and returns how the server ended.
fn run_session(script: impl FnOnce(&mut Client)) -> SessionEnd {
    run_session_after(&[], &Disk::default(), script)
}

/// The same, with messages that have all arrived before the server handles the first of them.
fn run_session_after(arrived: &[Value], disk: &Disk, script: impl FnOnce(&mut Client)) -> SessionEnd {
    let (server_reads, to) = std::io::pipe().expect("a pipe");
    let (from, server_writes) = std::io::pipe().expect("a pipe");
    let (connection, threads) = connect(server_reads, server_writes);
    let mut client = Client { to, from, buffer: vec![] };
    let params = json!({"processId": null, "rootUri": null, "capabilities": {}});
    client.send(&[request(0, "initialize", params), note("initialized", json!({}))]);
    client.send(arrived);
    client.wait_until_read();
    let disk = disk.clone();
    let server = std::thread::spawn(move || {
        let ended = serve(&connection, &disk);
        drop(connection);
        if ended == SessionEnd::Properly {
            threads.join().expect("the pipes work");
        }
        ended
    });
    client.until(0);
    script(&mut client);
    client.send(&[request(1000, "shutdown", Value::Null), note("exit", Value::Null)]);
    client.until(1000);
    server.join().expect("the server does not panic")
}

#[expect(clippy::needless_pass_by_value, reason = "it is made for the call")]
fn request(id: i32, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

#[expect(clippy::needless_pass_by_value, reason = "it is made for the call")]
fn note(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

const URI: &str = "file:///w/job.yaml";

fn open(text: &str) -> Value {
    open_at(URI, text)
}

fn open_at(uri: &str, text: &str) -> Value {
    let document = json!({"uri": uri, "languageId": "yaml", "version": 0, "text": text});
    note("textDocument/didOpen", json!({"textDocument": document}))
}

/// Replaces the whole text.
fn change(version: usize, text: &str) -> Value {
    change_at(URI, version, text)
}

fn change_at(uri: &str, version: usize, text: &str) -> Value {
    let changes = json!([{"text": text}]);
    let document = json!({"uri": uri, "version": version});
    note("textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}))
}

fn at(method: &str, id: i32) -> Value {
    let position = json!({"line": 5, "character": 6});
    request(id, method, json!({"textDocument": {"uri": URI}, "position": position}))
}

const JOB: &str = "version: 1\nname: x\nimage: python:3.12-slim\nroles:\n  train:\n    run: x\n    resources: {cpu: 1, memory: 1GiB}\n";

/// The published versions.
fn published(messages: &[Value]) -> Vec<i64> {
    let publishes = messages.iter().filter(|it| it["method"] == "textDocument/publishDiagnostics");
    publishes.filter_map(|it| it["params"]["version"].as_i64()).collect()
}

#[test]
fn queued_changes_cause_one_compilation() {
    let mut all = vec![open(JOB)];
    // Each text has a different error, so each compilation would publish.
    all.extend((1..=20).map(|n| change(n, &format!("{JOB}k{n}: 1\n"))));
    let start = json!({"line": 0, "character": 0});
    let params = json!({"textDocument": {"uri": URI}, "range": {"start": start, "end": start}, "context": {"diagnostics": []}});
    all.push(request(1, "textDocument/codeAction", params));
    let ended =
        run_session_after(&all, &Disk::default(), |client| assert_eq!(published(&client.until(1)), [20]));
    assert_eq!(ended, SessionEnd::Properly);
}

#[test]
fn typing_with_requests_between_causes_one_compilation() {
    let mut all = vec![open(JOB)];
    for n in 1..=20 {
        all.push(change(n, &format!("{JOB}k{n}: 1\n")));
        let id = i32::try_from(n).expect("small") * 2;
        all.extend([at("textDocument/completion", id), at("textDocument/hover", id + 1)]);
    }
    run_session_after(&all, &Disk::default(), |client| {
        let messages = client.until(41);
        assert_eq!(published(&messages), [20]);
        let answers = messages.iter().filter(|it| it["id"].is_number() && it["error"].is_null()).count();
        assert_eq!(answers, 40, "every request is answered");
    });
}

#[test]
fn canceled_requests_are_not_started() {
    let mut all = vec![open(JOB)];
    all.extend((1..=50).map(|id| request(id, "jobc/plan", json!({"uri": URI}))));
    all.extend((1..=50).map(|id| note("$/cancelRequest", json!({"id": id}))));
    all.push(request(51, "jobc/explain", json!({"code": "J0101"})));
    run_session_after(&all, &Disk::default(), |client| {
        let messages = client.until(51);
        let cancelled = messages.iter().filter(|it| it["error"]["code"] == -32800).count();
        assert_eq!(cancelled, 50);
    });
}

fn hints(id: i32) -> Value {
    let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}});
    request(id, "textDocument/inlayHint", json!({"textDocument": {"uri": URI}, "range": range}))
}

/// The error code of the response with an id.
fn error_of(messages: &[Value], id: i32) -> Option<i64> {
    messages.iter().find(|it| it["id"] == id)?["error"]["code"].as_i64()
}

#[test]
fn a_waiting_request_can_be_outdated() {
    // A change queued after the requests prevents compiling for them.
    let all = [open(JOB), hints(1), hints(2), note("$/cancelRequest", json!({"id": 1})), change(1, JOB)];
    run_session_after(&all, &Disk::default(), |client| {
        let messages = client.until(2);
        assert_eq!((error_of(&messages, 1), error_of(&messages, 2)), (Some(-32800), Some(-32801)));
    });
}

#[test]
fn a_waiting_request_can_be_canceled() {
    const SLOW: &str = "file:///slow/job.yaml";
    let disk = Disk::default();
    let slow = disk.0.lock().expect("no other test has it");
    // The change of another text makes the hints wait, and the server is busy when the cancellation arrives.
    let busy = request(2, "jobc/targets", json!({"uri": SLOW}));
    let all = [open(JOB), open_at(SLOW, JOB), hints(1), change_at(SLOW, 1, JOB), busy];
    run_session_after(&all, &disk, |client| {
        client.send(&[note("$/cancelRequest", json!({"id": 1}))]);
        client.wait_until_read();
        drop(slow);
        assert_eq!(error_of(&client.until(1), 1), Some(-32800));
    });
}

#[test]
fn invalid_messages_are_answered_without_a_panic() {
    let ended = run_session(|client| {
        client.to.write_all(b"Content-Length: 3\r\n\r\n{]}").expect("the server reads");
        assert_eq!(client.next()["error"]["code"], -32700);
        client.to.write_all(b"Content-Length: none\r\n\r\n").expect("the server reads");
        assert_eq!(client.next()["error"]["code"], -32700);
        client.send(&[json!([])]);
        assert_eq!(client.next()["error"]["code"], -32600);
        client.send(&[request(7, "initialize", json!({"capabilities": {}}))]);
        let twice = client.next();
        assert_eq!((&twice["id"], &twice["error"]["code"]), (&json!(7), &json!(-32600)));
        client.send(&[open(JOB), at("textDocument/hover", 8)]);
        assert!(client.until(8).last().expect("an answer")["result"].is_object());
    });
    assert_eq!(ended, SessionEnd::Properly);
}

#[test]
fn a_reopened_text_gets_its_findings_again() {
    run_session(|client| {
        client.send(&[open(JOB), hints(1)]);
        assert_eq!(published(&client.until(1)), [0]);
        let close = note("textDocument/didClose", json!({"textDocument": {"uri": URI}}));
        client.send(&[close, open(JOB), hints(2)]);
        assert_eq!(published(&client.until(2)), [0]);
    });
}

#[test]
fn closing_many_files_causes_no_compilations() {
    run_session(|client| {
        let uri = |n: usize| format!("file:///w/{n}.job.yaml");
        let all: Vec<Value> = (0..100).map(|n| open_at(&uri(n), JOB)).collect();
        client.send(&all);
        let mut found = 0;
        while found < 100 {
            found += published(&[client.next()]).len();
        }
        let start = Instant::now();
        let closed = |n: usize| note("textDocument/didClose", json!({"textDocument": {"uri": uri(n)}}));
        let mut all: Vec<Value> = (0..100).map(closed).collect();
        all.push(request(1, "jobc/explain", json!({"code": "J0101"})));
        client.send(&all);
        client.until(1);
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    });
}
