//! `jobc lsp` as an editor starts it, and that it says what `jobc check` says.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};

use crate::directory::{Directory, HELLO, files_of_cases};

/// A server as a process.
struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    id: i32,
}

impl Server {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_jobc"))
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("jobc starts");
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().expect("an output")));
        let mut server = Self { child, input, output, id: 0 };
        let related =
            json!({"publishDiagnostics": {"relatedInformation": true, "codeDescriptionSupport": true}});
        let params = json!({"processId": null, "rootUri": null, "capabilities": {"textDocument": related}});
        server.request("initialize", &params);
        server.notify("initialized", &json!({}));
        server
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let input = self.input.as_mut().expect("it is open");
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server reads");
        input.flush().expect("the server reads");
    }

    fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("the server writes") > 0, "the server is gone");
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", n)) => length = n.parse().expect("a number"),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).expect("a whole message");
        serde_json::from_slice(&body).expect("JSON")
    }

    fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request, and returns the response with the notifications before it.
    fn request(&mut self, method: &str, params: &Value) -> (Value, Vec<Value>) {
        self.id += 1;
        let id = self.id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let mut notes = vec![];
        loop {
            let message = self.read();
            if message["id"] == id {
                return (message, notes);
            }
            notes.push(message);
        }
    }

    /// The notifications until the last change is compiled: inlay hints are of the compiled text.
    fn compiled(&mut self, uri: &str) -> Vec<Value> {
        let start = json!({"line": 0, "character": 0});
        let params = json!({"textDocument": {"uri": uri}, "range": {"start": start, "end": start}});
        self.request("textDocument/inlayHint", &params).1
    }

    /// The findings of everything that a job says something about, by file.
    fn findings(&mut self, uri: &str, text: &str) -> Vec<(String, Value)> {
        let document = json!({"uri": uri, "languageId": "jobc", "version": 1, "text": text});
        self.notify("textDocument/didOpen", &json!({"textDocument": document}));
        let notes = self.compiled(uri);
        self.notify("textDocument/didClose", &json!({"textDocument": {"uri": uri}}));
        self.compiled(uri);
        let published = notes.into_iter().filter(|note| note["method"] == "textDocument/publishDiagnostics");
        let in_file = |note: Value| {
            let uri = note["params"]["uri"].as_str().expect("an address").to_owned();
            let all = note["params"]["diagnostics"].as_array().expect("a list").clone();
            all.into_iter().map(move |it| (uri.clone(), it))
        };
        published.flat_map(in_file).collect()
    }

    fn end(mut self) -> ExitStatus {
        self.request("shutdown", &Value::Null);
        self.notify("exit", &Value::Null);
        self.child.wait().expect("it ends")
    }
}

/// The line and the column in UTF-16 of a byte offset.
fn position(text: &str, offset: usize) -> Value {
    let before = &text[..offset];
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default().encode_utf16().count();
    json!({"line": line, "character": column})
}

/// What `jobc check` says, in the server's terms: file, code, message, range; nothing where it cannot read the job.
fn checked(job: &Utf8Path) -> Option<Vec<(String, Value, Value, Value)>> {
    let run = Command::new(env!("CARGO_BIN_EXE_jobc"))
        .args(["check", "--format", "json", job.as_str()])
        .current_dir(job.parent().expect("a directory"))
        .output()
        .expect("jobc runs");
    if run.status.code() == Some(2) {
        return None;
    }
    let report: Value = serde_json::from_slice(&run.stdout).expect("JSON");
    let mut found = vec![];
    for finding in report["diagnostics"].as_array().expect("a list") {
        // A template that comes with jobc has no file: it is shown where it is used.
        let built_in = |place: &Value| place["file"].as_str().is_some_and(|file| file.starts_with("std/"));
        let labels = finding["labels"].as_array().expect("a list");
        let place = labels.iter().find(|label| !built_in(label)).unwrap_or(&Value::Null);
        let place = if built_in(finding) { place } else { finding };
        let file =
            place["file"].as_str().map_or_else(|| job.to_owned(), |file| job.with_file_name("").join(file));
        let range = match (place["start"]["offset"].as_u64(), place["end"]["offset"].as_u64()) {
            (Some(start), Some(end)) => {
                let text = std::fs::read_to_string(&file).expect("a text");
                let at = |offset: u64| position(&text, usize::try_from(offset).expect("an offset"));
                json!({"start": at(start), "end": at(end)})
            }
            _ => json!({"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}),
        };
        found.push((file.into_string(), finding["code"].clone(), finding["message"].clone(), range));
    }
    found.sort_by_key(|(file, code, message, range)| format!("{file} {range} {code} {message}"));
    Some(found)
}

/// Every job file of the examples, and of the cases of the errors, which are written to a directory.
fn jobs(cases: &Directory) -> Vec<Utf8PathBuf> {
    let files = files_of_cases();
    for (path, text) in &files {
        cases.write(path.as_str(), text);
    }
    let alone = |path: &Utf8Path| files.iter().filter(|(file, _)| file.starts_with(path)).count() == 1;
    let root =
        Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize_utf8().expect("the workspace");
    let cases = cases.path().canonicalize_utf8().expect("a directory");
    let mut found = vec![];
    let mut directories = vec![root.join("examples"), cases.clone()];
    while let Some(directory) = directories.pop() {
        for entry in directory.read_dir_utf8().expect("a directory") {
            let path = entry.expect("an entry").into_path();
            let name = path.file_name().unwrap_or_default();
            let alone = || directory.strip_prefix(&cases).is_ok_and(alone);
            // An editor starts no programs, such as those of plug-ins.
            if path.is_dir() && name != "out" && name != "plugins" {
                directories.push(path);
            } else if matches!(path.extension(), Some("yaml" | "json"))
                && (path.file_stem() == Some("job") || alone())
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Compares what both say about a job: how many findings there are, or how they differ; nothing where `check` cannot
/// read the job.
fn compare(server: &mut Server, job: &Utf8Path) -> Option<Result<usize, String>> {
    // An editor does not know the environment in which the job starts, so it does not report unset variables (J0260).
    let expected = checked(job)?;
    // It also does not know plug-ins (J0480).
    if expected.iter().any(|(_, code, ..)| code == "J0260" || code == "J0480") {
        return None;
    }
    let text = std::fs::read_to_string(job).expect("`check` has read it as text");
    // Under another name in the same directory, so that the server takes it for a job, or for a targets file as `check`
    // does by its content.
    let extension = job.extension().unwrap_or_default();
    let has = |key: &str| text.lines().any(|line| line.starts_with(key));
    let shown = if has("targets:") && !has("roles:") && !has("name:") {
        job.with_file_name("targets.yaml")
    } else {
        // What other programs call so is none of the server's; this language is chosen by hand.
        job.with_extension(format!("own.{extension}"))
    };
    let finding = |(uri, it): (String, Value)| {
        let file = uri.trim_start_matches("file://").to_owned();
        let file = if file == shown.as_str() { job.to_string() } else { file };
        (file, it["code"].clone(), it["message"].clone(), it["range"].clone())
    };
    let mut output: Vec<_> =
        server.findings(&format!("file://{shown}"), &text).into_iter().map(finding).collect();
    output.sort_by_key(|(file, code, message, range)| format!("{file} {range} {code} {message}"));
    let differs = output != expected;
    Some(if differs {
        Err(format!("{job}:\ncheck:  {expected:#?}\nserver: {output:#?}"))
    } else {
        Ok(output.len())
    })
}

#[test]
fn findings_are_those_of_check() {
    let mut server = Server::start();
    let cases = Directory::new();
    let mut jobs = jobs(&cases);
    if !jobc_test_skip::in_full() {
        // The first of each code's cases.
        let root = cases.path().canonicalize_utf8().expect("a directory");
        let code = |job: &Utf8Path| job.strip_prefix(&root).ok()?.iter().next().map(str::to_owned);
        jobs.dedup_by(|job, before| code(job).is_some_and(|of| code(before) == Some(of)));
    }
    let results: Vec<_> = jobs.iter().filter_map(|job| compare(&mut server, job)).collect();
    assert!(server.end().success());
    let differing: Vec<&String> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    assert!(differing.is_empty(), "{} of {} differ\n{differing:#?}", differing.len(), results.len());
    let findings: usize = results.iter().flatten().sum();
    assert!(results.len() > 200 && findings > 300, "only {} jobs with {findings} findings", results.len());
}

#[test]
fn columns_behind_letters_of_several_bytes_are_those_of_check() {
    let job = HELLO.replace("{cpu: 1,", "{\"名\u{1f600}\": 3, cpus: 1,");
    assert_ne!(job, HELLO);
    let directory = Directory::with_job(&job);
    let mut server = Server::start();
    let path = directory.path().join("job.yaml").canonicalize_utf8().expect("it is there");
    assert_eq!(compare(&mut server, &path), Some(Ok(2)));
    assert!(server.end().success());
}

#[test]
fn a_client_that_disconnects_sets_the_exit_code() {
    let mut server = Server::start();
    server.notify("exit", &Value::Null);
    assert_eq!(server.child.wait().expect("it ends").code(), Some(1));
    let mut server = Server::start();
    drop(server.input.take());
    assert_eq!(server.child.wait().expect("it ends").code(), Some(1), "standard input is closed");
}

#[test]
fn files_on_disk_are_read() {
    let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../examples/resnet-1gpu")
        .canonicalize_utf8()
        .expect("an example");
    let text = std::fs::read_to_string(root.join("job.yaml")).expect("a job");
    let mut server = Server::start();
    let uri = format!("file://{root}/job.yaml");
    let document = json!({"uri": uri, "languageId": "yaml", "version": 1, "text": text});
    server.notify("textDocument/didOpen", &json!({"textDocument": document}));
    let (answer, _) = server.request("jobc/plan", &json!({"uri": uri}));
    let targets = answer["result"]["targets"].as_array().expect("targets").len();
    assert!(targets >= 2, "targets.yaml beside the job: {answer}");
    let (answer, _) = server.request("jobc/artifact", &json!({"uri": uri, "backend": "dockerfile"}));
    assert!(
        answer["result"]["text"].as_str().is_some_and(|text| text.contains("requirements.txt")),
        "{answer}"
    );
    assert!(server.end().success());
}
