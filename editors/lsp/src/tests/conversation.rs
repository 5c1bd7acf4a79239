//! A scripted client over channels: from `initialize` to `exit`.

use jobc_compiler::files::MemoryFiles;
use lsp_server::{Connection, Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};

use crate::host::serve;
use crate::server::SessionEnd;

/// A client that keeps the messages it received.
struct Client {
    connection: Connection,
    next: i32,
    /// Messages that were received but not yet waited for.
    notes: Vec<Notification>,
    /// The response to `initialize`.
    answer: Value,
}

impl Client {
    fn notify(&self, method: &str, params: Value) {
        let note = Notification { method: method.to_owned(), params };
        self.connection.sender.send(note.into()).expect("the server listens");
    }

    /// Sends a request without waiting for the response.
    fn ask(&mut self, method: &str, params: Value) -> RequestId {
        self.next += 1;
        let id = RequestId::from(self.next);
        let request = Request { id: id.clone(), method: method.to_owned(), params };
        self.connection.sender.send(request.into()).expect("the server listens");
        id
    }

    fn wait(&mut self, id: &RequestId) -> Response {
        loop {
            match self.connection.receiver.recv_timeout(std::time::Duration::from_secs(20)) {
                Ok(Message::Response(response)) if response.id == *id => return response,
                Ok(Message::Notification(note)) => self.notes.push(note),
                Ok(Message::Request(request)) => {
                    let answer = Response::new_ok(request.id, Value::Null);
                    self.connection.sender.send(answer.into()).expect("the server listens");
                }
                other => panic!("waited for {id}: {other:?}"),
            }
        }
    }

    fn request(&mut self, method: &str, params: Value) -> Result<Value, (i32, String)> {
        let id = self.ask(method, params);
        self.wait(&id).response_result.map_err(|error| (error.code, error.message))
    }

    fn open(&self, name: &str, text: &str) {
        let document = json!({"uri": uri(name), "languageId": "yaml", "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}));
    }

    fn change(&self, name: &str, version: i32, changes: &Value) {
        let document = json!({"uri": uri(name), "version": version});
        self.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}));
    }

    /// Requests the fixes at the start of a file.
    fn fixes(&mut self, name: &str) -> Result<Value, (i32, String)> {
        let at = json!({"line": 0, "character": 0});
        let params = json!({"textDocument": {"uri": uri(name)}, "range": {"start": at, "end": at}, "context": {"diagnostics": []}});
        self.request("textDocument/codeAction", params)
    }

    /// The last published findings of a file, as `code line:column`, and the number of publications.
    fn published(&mut self, name: &str) -> (Vec<String>, usize) {
        // Fixes need findings, so the response comes after they are published.
        self.fixes(name).expect("a list");
        let of_file = |note: &&Notification| note.params["uri"] == uri(name);
        let found: Vec<&Notification> = self.notes.iter().filter(of_file).collect();
        let line = |it: &Value| {
            format!(
                "{} {}:{}",
                it["code"].as_str().unwrap(),
                it["range"]["start"]["line"],
                it["range"]["start"]["character"]
            )
        };
        let last = found
            .last()
            .map(|note| note.params["diagnostics"].as_array().unwrap().iter().map(line).collect());
        (last.unwrap_or_default(), found.len())
    }
}

fn uri(name: &str) -> String {
    format!("file:///w/{name}")
}

/// Runs a script against a server, started with a client's capabilities and options, and returns how it ended.
fn run_session(started_with: &Value, script: impl FnOnce(&mut Client) + Send) -> SessionEnd {
    let (server, connection) = Connection::memory();
    let disk = MemoryFiles::default();
    std::thread::scope(|scope| {
        let server = scope.spawn(move || serve(&server, &disk));
        let mut client = Client { connection, next: 0, notes: vec![], answer: Value::Null };
        let mut params = json!({"processId": null, "rootUri": null, "capabilities": {}});
        for (key, value) in started_with.as_object().expect("an object") {
            params[key] = value.clone();
        }
        client.answer = client.request("initialize", params).expect("it starts");
        client.notify("initialized", json!({}));
        script(&mut client);
        drop(client);
        server.join().expect("the server does not panic")
    })
}

fn end(client: &mut Client) {
    assert_eq!(client.request("shutdown", Value::Null), Ok(Value::Null));
    client.notify("exit", Value::Null);
}

const GOOD: &str = "version: 1\nname: x\nimage: python:3.12-slim\nroles:\n  train:\n    run: x\n    resources: {cpu: 1, memory: 1GiB}\n";

#[test]
fn from_initialize_to_exit() {
    let ended = run_session(&json!({}), |client| {
        client.open("job.yaml", &GOOD.replace("run: x", "runn: x"));
        assert_eq!(client.published("job.yaml").0, ["J0101 5:4"]);
        let range = json!({"start": {"line": 5, "character": 4}, "end": {"line": 5, "character": 8}});
        client.change("job.yaml", 2, &json!([{"range": range, "text": "run"}]));
        assert_eq!(client.published("job.yaml").0, Vec::<String>::new());
        client.notify("textDocument/didClose", json!({"textDocument": {"uri": uri("job.yaml")}}));
        let why = client.request("jobc/plan", json!({"uri": uri("job.yaml")})).expect_err("it is closed");
        assert_eq!(why, (-32803, "`file:///w/job.yaml` is not open".to_owned()));
        end(client);
    });
    assert_eq!(ended, SessionEnd::Properly);
}

#[test]
fn exit_without_shutdown_is_an_error() {
    assert_eq!(run_session(&json!({}), |client| client.notify("exit", Value::Null)), SessionEnd::Abruptly);
    assert_eq!(run_session(&json!({}), |_| {}), SessionEnd::Abruptly, "the client is gone");
}

#[test]
fn nothing_is_answered_before_initialize_or_after_shutdown() {
    let (server, connection) = Connection::memory();
    let disk = MemoryFiles::default();
    std::thread::scope(|scope| {
        let server = scope.spawn(move || serve(&server, &disk));
        let mut client = Client { connection, next: 0, notes: vec![], answer: Value::Null };
        let early = client.request("textDocument/hover", json!({})).expect_err("too early");
        assert_eq!(early.0, -32002, "ServerNotInitialized");
        client
            .request("initialize", json!({"processId": null, "rootUri": null, "capabilities": {}}))
            .expect("it starts");
        client.request("shutdown", Value::Null).expect("it ends");
        let late = client.request("textDocument/hover", json!({})).expect_err("too late");
        assert_eq!(late.0, -32600, "InvalidRequest");
        client.notify("exit", Value::Null);
        assert_eq!(server.join().expect("no panic"), SessionEnd::Properly);
    });
}

#[test]
fn malformed_requests_are_rejected_without_a_panic() {
    run_session(&json!({}), |client| {
        let code = |answer: Result<Value, (i32, String)>| answer.expect_err("refused").0;
        assert_eq!(code(client.request("textDocument/noSuchThing", json!({}))), -32601);
        assert_eq!(code(client.request("textDocument/hover", json!({"position": "here"}))), -32602);
        assert_eq!(code(client.request("jobc/plan", json!([]))), -32602);
        client.notify("textDocument/didChange", json!({"textDocument": {}}));
        client.notify("textDocument/didOpen", Value::Null);
        client.change("never-opened.yaml", 3, &json!([{"text": "x"}]));
        client.notify("$/setTrace", json!({"value": "off"}));
        let at =
            json!({"textDocument": {"uri": uri("not-open.yaml")}, "position": {"line": 9, "character": 9}});
        assert_eq!(client.request("textDocument/hover", at.clone()), Ok(Value::Null));
        assert_eq!(client.request("textDocument/completion", at.clone()), Ok(json!([])));
        assert_eq!(client.request("textDocument/definition", at), Ok(json!([])));
        client.open("job.yaml", GOOD);
        assert_eq!(client.published("job.yaml").0, Vec::<String>::new());
        end(client);
    });
}

#[test]
fn a_panic_fails_one_request() {
    let ended = run_session(&json!({}), |client| {
        client.open("job.yaml", GOOD);
        let (code, message) = client.request("jobc/panic", Value::Null).expect_err("it panics");
        assert_eq!((code, message.contains("jobc/panic")), (-32603, true), "{message}");
        let plan = client.request("jobc/plan", json!({"uri": uri("job.yaml")})).expect("the server lives on");
        assert!(plan["text"].as_str().unwrap().contains("name: x"));
        end(client);
    });
    assert_eq!(ended, SessionEnd::Properly);
}

#[test]
fn many_changes_cause_few_compilations_and_correct_findings() {
    run_session(&json!({}), |client| {
        client.open("job.yaml", GOOD);
        // Character by character, `run: x` becomes `run: xaaa…`, with an error at the end.
        for n in 0..300 {
            let at = json!({"line": 5, "character": 10 + n});
            client.change("job.yaml", n + 2, &json!([{"range": {"start": at, "end": at}, "text": "a"}]));
        }
        let at = json!({"line": 5, "character": 4});
        client.change("job.yaml", 302, &json!([{"range": {"start": at, "end": at}, "text": "un"}]));
        let (findings, times) = client.published("job.yaml");
        assert_eq!(findings, ["J0101 5:4"]);
        assert!(times < 150, "published {times} times");
        let text = client.request("jobc/plan", json!({"uri": uri("job.yaml")})).expect_err("a mistake").1;
        assert!(text.starts_with("J0101: "), "{text}");
        end(client);
    });
}

#[test]
fn a_canceled_request_is_not_started() {
    run_session(&json!({}), |client| {
        client.open("job.yaml", GOOD);
        // The cancellation arrives before the request is handled: the preceding work takes longer than sending both.
        let busy: Vec<RequestId> = (0..20)
            .map(|_| client.ask("jobc/artifact", json!({"uri": uri("job.yaml"), "backend": "kubernetes"})))
            .collect();
        let id = client.ask("jobc/plan", json!({"uri": uri("job.yaml")}));
        client.notify("$/cancelRequest", json!({"id": id.to_string().parse::<i32>().expect("a number")}));
        for id in &busy {
            assert!(client.wait(id).response_result.is_ok());
        }
        assert_eq!(client.wait(&id).response_result.expect_err("cancelled").code, -32800);
        // An unknown or completed request changes nothing.
        client.notify("$/cancelRequest", json!({"id": "never-asked"}));
        client.notify("$/cancelRequest", json!({}));
        assert!(client.request("jobc/plan", json!({"uri": uri("job.yaml")})).is_ok());
        end(client);
    });
}

#[test]
fn positions_use_the_agreed_encoding() {
    let wrong = GOOD.replace("image:", "description: \u{1f600}\n\"\u{1f600}\": {}\nimage:");
    let check = |capabilities: &Value, unit: &str, end_column: u32| {
        run_session(&json!({"capabilities": capabilities}), |client| {
            assert_eq!(client.answer["capabilities"]["positionEncoding"], unit);
            client.open("job.yaml", &wrong);
            client.published("job.yaml");
            let note =
                client.notes.iter().rfind(|note| note.params["uri"] == uri("job.yaml")).expect("published");
            let range = &note.params["diagnostics"][0]["range"];
            assert_eq!(range["start"], json!({"line": 3, "character": 0}));
            assert_eq!(range["end"], json!({"line": 3, "character": end_column}));
            end(client);
        });
    };
    // With its quotes, the key is four UTF-16 code units and six bytes.
    check(&json!({}), "utf-16", 4);
    check(&json!({"general": {"positionEncodings": ["utf-16"]}}), "utf-16", 4);
    check(&json!({"general": {"positionEncodings": ["utf-8", "utf-16"]}}), "utf-8", 6);
}

#[test]
fn settings_determine_what_is_offered() {
    let options = json!({"codeLens": false, "inlayHints": false, "schemaFeatures": false, "unknown": 1});
    let at = json!({"textDocument": {"uri": uri("job.yaml")}, "position": {"line": 0, "character": 0}});
    let offered = |client: &mut Client| {
        client.open("job.yaml", "\n");
        let items = client.request("textDocument/completion", at.clone()).expect("a list");
        let has = |key: &str| client.answer["capabilities"].get(key).is_some();
        let found = (
            has("codeLensProvider"),
            has("inlayHintProvider"),
            !items.as_array().expect("a list").is_empty(),
        );
        end(client);
        found
    };
    run_session(&json!({"initializationOptions": options}), |client| {
        assert_eq!(offered(client), (false, false, false));
    });
    // Only some clients have the commands of the lenses.
    run_session(&json!({"initializationOptions": null}), |client| {
        assert_eq!(offered(client), (false, true, true));
    });
    run_session(&json!({"initializationOptions": {"codeLens": true}}), |client| {
        assert_eq!(offered(client), (true, true, true));
    });
    run_session(&json!({"initializationOptions": {"codeLens": "no"}}), |client| {
        assert_eq!(offered(client), (false, true, true));
    });
}

#[test]
fn a_watching_client_gets_a_registration() {
    let capabilities = json!({"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": true}}});
    run_session(&json!({"capabilities": capabilities}), |client| {
        let Ok(Message::Request(requested)) = client.connection.receiver.recv() else { panic!("it asks") };
        assert_eq!(requested.method, "client/registerCapability");
        let answer = Response::new_ok(requested.id, Value::Null);
        client.connection.sender.send(answer.into()).expect("the server listens");
        end(client);
    });
}

#[test]
fn a_setting_of_the_client_changes_the_target() {
    let options = json!({"initializationOptions": {"target": "local"}});
    run_session(&options, |client| {
        client.open("job.yaml", GOOD);
        let plan = |client: &mut Client| {
            let plan = client.request("jobc/plan", json!({"uri": uri("job.yaml")})).expect("a plan");
            plan["text"].as_str().expect("a text").contains("name: kubernetes")
        };
        assert!(!plan(client));
        client.notify(
            "workspace/didChangeConfiguration",
            json!({"settings": {"jobc": {"target": "kubernetes"}}}),
        );
        assert!(plan(client));
        // A client that only reports a change of settings is not asked for it.
        client.notify("workspace/didChangeConfiguration", json!({"settings": null}));
        assert!(plan(client));
        end(client);
    });
}
