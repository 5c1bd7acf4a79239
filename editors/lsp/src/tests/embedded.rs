//! The server in a host without threads.

use std::cell::{Cell, RefCell};
use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::files::{Files, MemoryFiles};
use lsp_server::Message;
use serde_json::{Value, json};

use crate::host::Embedded;

thread_local! {
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Files that arrive later.
#[derive(Default)]
struct Later(RefCell<MemoryFiles>);

impl Files for Later {
    fn read(&self, path: &Utf8Path) -> io::Result<Vec<u8>> {
        self.0.borrow().read(path)
    }

    fn exists(&self, path: &Utf8Path) -> bool {
        self.0.borrow().exists(path)
    }
}

const JOB: &str = "version: 1\nname: a\nroles: {a: {image: {dockerfile: Dockerfile}, run: x}}\n";

fn message(method: &str, id: Option<i32>, params: &Value) -> Message {
    let mut message = json!({"method": method, "params": params});
    if let Some(id) = id {
        message["id"] = json!(id);
    }
    serde_json::from_value(message).expect("a message")
}

fn opened(server: &mut Embedded<'_>) -> (Vec<Value>, Option<Duration>) {
    server.receive(message("initialize", Some(1), &json!({"capabilities": {}})));
    server.receive(message("initialized", None, &json!({})));
    let document = json!({"uri": "file:///w/job.yaml", "languageId": "jobc", "version": 1, "text": JOB});
    server.receive(message("textDocument/didOpen", None, &json!({"textDocument": document})));
    work(server)
}

fn work(server: &mut Embedded<'_>) -> (Vec<Value>, Option<Duration>) {
    let (sent, pause) = server.work();
    (sent.iter().map(|message| json!(message)).collect(), pause)
}

fn codes(sent: &[Value]) -> Vec<String> {
    let published = sent.iter().filter(|it| it["method"] == "textDocument/publishDiagnostics");
    let findings = published.flat_map(|it| it["params"]["diagnostics"].as_array().expect("a list").clone());
    findings.map(|it| it["code"].as_str().expect("a code").to_owned()).collect()
}

#[test]
fn a_change_is_compiled_after_the_pause_and_files_may_arrive_later() {
    let disk = Later::default();
    let mut server = Embedded::new(&disk, || NOW.get());
    let (sent, pause) = opened(&mut server);
    assert_eq!(sent.len(), 1, "the answer to `initialize` alone: {sent:?}");
    NOW.set(NOW.get() + pause.expect("a compilation is due"));
    let (sent, pause) = work(&mut server);
    assert!(codes(&sent).contains(&"J0219".to_owned()), "{sent:?}");
    assert_eq!(pause, None);

    let file = Utf8PathBuf::from("/w/Dockerfile");
    disk.0.borrow_mut().0.insert(file.clone(), b"FROM ubuntu:24.04\n".to_vec());
    server.file_changed(&file);
    let (_, pause) = work(&mut server);
    NOW.set(NOW.get() + pause.expect("a compilation is due"));
    let (sent, _) = work(&mut server);
    assert!(!sent.is_empty() && !codes(&sent).contains(&"J0219".to_owned()), "{sent:?}");

    let build = json!({"uri": "file:///w/job.yaml", "target": "local"});
    server.receive(message("jobc/build", Some(2), &build));
    let (sent, _) = work(&mut server);
    let files = sent[0]["result"]["files"].as_array().unwrap_or_else(|| panic!("{sent:?}"));
    let paths: Vec<_> = files.iter().filter_map(|file| file["path"].as_str()).collect();
    for path in ["plan.json", "sourcemap.json", "oci/a-0/config.json"] {
        assert!(paths.contains(&path), "{paths:?}");
    }
}

#[test]
fn a_session_begins_with_initialize_and_may_begin_again() {
    let disk = MemoryFiles::default();
    let mut server = Embedded::new(&disk, || NOW.get());
    server.receive(message("shutdown", Some(1), &Value::Null));
    assert_eq!(work(&mut server).0[0]["error"]["code"], -32002);
    for _ in 0..2 {
        opened(&mut server);
        server.receive(message("shutdown", Some(2), &Value::Null));
        server.receive(message("exit", None, &Value::Null));
        let (sent, pause) = work(&mut server);
        assert_eq!((sent.len(), pause), (1, None), "{sent:?}");
    }
}
