//! A client over real pipes, where messages arrive while others are handled.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::time::{Duration, Instant};

use jobc_compiler::files::MemoryFiles;
use serde_json::{Value, json};

use crate::host::serve;
use crate::server::Ended;
use crate::transport::connect;

struct Client {
    to: PipeWriter,
    from: PipeReader,
    buffer: Vec<u8>,
}

impl Client {
    /// Writes messages as one piece.
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

    /// The messages up to the response with an id, which is the last.
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

/// Runs a script after `initialize`, with the id 0, and returns how the server ended.
fn talk(script: impl FnOnce(&mut Client)) -> Ended {
    let (server_reads, to) = std::io::pipe().expect("a pipe");
    let (from, server_writes) = std::io::pipe().expect("a pipe");
    let server = std::thread::spawn(move || {
        let (connection, threads) = connect(server_reads, server_writes);
        let ended = serve(&connection, &MemoryFiles::default());
        drop(connection);
        if ended == Ended::Properly {
            threads.join().expect("the pipes work");
        }
        ended
    });
    let mut client = Client { to, from, buffer: vec![] };
    let params = json!({"processId": null, "rootUri": null, "capabilities": {}});
    client.send(&[request(0, "initialize", params), note("initialized", json!({}))]);
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
    let document = json!({"uri": URI, "languageId": "yaml", "version": 0, "text": text});
    note("textDocument/didOpen", json!({"textDocument": document}))
}

/// Replaces the whole text.
fn change(version: usize, text: &str) -> Value {
    let changes = json!([{"text": text}]);
    let document = json!({"uri": URI, "version": version});
    note("textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}))
}

fn at(method: &str, id: i32) -> Value {
    let position = json!({"line": 5, "character": 6});
    request(id, method, json!({"textDocument": {"uri": URI}, "position": position}))
}

const JOB: &str = "version: 1\nname: x\nimage: python:3.12-slim\nroles:\n  train:\n    run: x\n    resources: {cpu: 1, memory: 1GiB}\n";

/// The versions that were published.
fn published(messages: &[Value]) -> Vec<i64> {
    let publishes = messages.iter().filter(|it| it["method"] == "textDocument/publishDiagnostics");
    publishes.filter_map(|it| it["params"]["version"].as_i64()).collect()
}

#[test]
fn changes_in_one_piece_cost_one_compilation() {
    let ended = talk(|client| {
        let mut all = vec![open(JOB)];
        // Each text has another mistake, so each compilation would publish.
        all.extend((1..=20).map(|n| change(n, &format!("{JOB}k{n}: 1\n"))));
        all.push(at("textDocument/codeAction", 1));
        let context = json!({"diagnostics": []});
        let start = json!({"line": 0, "character": 0});
        all.last_mut().expect("a request")["params"] = json!({"textDocument": {"uri": URI}, "range": {"start": start, "end": start}, "context": context});
        client.send(&all);
        assert_eq!(published(&client.until(1)), [20]);
    });
    assert_eq!(ended, Ended::Properly);
}

#[test]
fn typing_with_requests_between_costs_few_compilations() {
    talk(|client| {
        let mut all = vec![open(JOB)];
        for n in 1..=20 {
            all.push(change(n, &format!("{JOB}k{n}: 1\n")));
            let id = i32::try_from(n).expect("small") * 2;
            all.extend([at("textDocument/completion", id), at("textDocument/hover", id + 1)]);
        }
        client.send(&all);
        let messages = client.until(41);
        assert!(published(&messages).len() <= 2, "{:?}", published(&messages));
        let answers = messages.iter().filter(|it| it["id"].is_number()).count();
        assert_eq!(answers, 40, "every request is answered");
    });
}

#[test]
fn cancelled_requests_are_not_started() {
    talk(|client| {
        let roles: String = (0..200).map(|n| format!("  r{n}: {{run: x}}\n")).collect();
        let job = JOB.replace("roles:\n", &format!("roles:\n{roles}"));
        let mut all = vec![open(&job)];
        all.extend((1..=50).map(|id| request(id, "jobc/plan", json!({"uri": URI}))));
        all.extend((1..=50).map(|id| note("$/cancelRequest", json!({"id": id}))));
        all.push(request(51, "jobc/explain", json!({"code": "J0101"})));
        client.send(&all);
        let messages = client.until(51);
        let cancelled = messages.iter().filter(|it| it["error"]["code"] == -32800).count();
        assert!(cancelled >= 40, "only {cancelled} of 50 were cancelled");
    });
}

#[test]
fn a_request_that_waits_can_be_cancelled_or_outdated() {
    talk(|client| {
        let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}});
        let hints =
            |id| request(id, "textDocument/inlayHint", json!({"textDocument": {"uri": URI}, "range": range}));
        // A change behind the request keeps it from being compiled for.
        client.send(&[
            open(JOB),
            hints(1),
            hints(2),
            note("$/cancelRequest", json!({"id": 1})),
            change(1, JOB),
        ]);
        let messages = client.until(2);
        let code = |id: i32| {
            messages
                .iter()
                .find(|it| it["id"] == id)
                .map(|it| it["error"]["code"].clone())
                .unwrap_or_default()
        };
        assert_eq!((code(1), code(2)), (json!(-32800), json!(-32801)));
    });
}

#[test]
fn what_is_no_message_is_answered_and_the_server_lives_on() {
    let ended = talk(|client| {
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
    assert_eq!(ended, Ended::Properly);
}

#[test]
fn a_text_that_is_opened_again_gets_its_findings_again() {
    talk(|client| {
        let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}});
        let hints =
            |id| request(id, "textDocument/inlayHint", json!({"textDocument": {"uri": URI}, "range": range}));
        client.send(&[open(JOB), hints(1)]);
        assert_eq!(published(&client.until(1)), [0]);
        let close = note("textDocument/didClose", json!({"textDocument": {"uri": URI}}));
        client.send(&[close, open(JOB), hints(2)]);
        assert_eq!(published(&client.until(2)), [0]);
    });
}

#[test]
fn closing_many_files_costs_no_compilations() {
    talk(|client| {
        let uri = |n: usize| format!("file:///w/{n}.job.yaml");
        let opened = |n: usize| {
            let document = json!({"uri": uri(n), "languageId": "yaml", "version": 0, "text": JOB});
            note("textDocument/didOpen", json!({"textDocument": document}))
        };
        let all: Vec<Value> = (0..100).map(opened).collect();
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
