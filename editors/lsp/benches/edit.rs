//! How long an edit takes until its findings are shown: `cargo bench -p jobc-lsp -- [--limit MILLISECONDS]`.
//!
//! A job of 2,000 lines is open; a letter is typed that makes a mistake, and taken back. What is measured is the time
//! from sending the change to the arrival of the diagnostics, over a connection in memory: compiling, comparing,
//! publishing. Beside it stands the processor time of an edit, which other programs disturb less; it counts what is
//! done after publishing, too. With a limit the program fails where the median of the times is above it.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use jobc_compiler::files::MemoryFiles;
use jobc_lsp::{Connection, serve};
use lsp_server::{Message, Notification, Request};
use serde_json::{Value, json};

const LINES: usize = 2_000;
const EDITS: i32 = 100;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let limit = arguments
        .iter()
        .position(|word| word == "--limit")
        .and_then(|at| arguments.get(at + 1)?.parse().ok());
    let text = job();
    println!(
        "a job of {} lines and {} roles, {} bytes",
        text.lines().count(),
        text.matches("    run: ").count(),
        text.len()
    );
    let (server, client) = Connection::memory();
    let disk = MemoryFiles::default();
    let mut worst = Duration::ZERO;
    std::thread::scope(|scope| {
        scope.spawn(move || serve(&server, &disk));
        for (name, times, processor) in measure(&client, &text) {
            let [median, most, all] = [50, 95, 100].map(|percent| ms(at(&times, percent)));
            println!(
                "{name:22} median {median:6.2} ms   95 % {most:6.2} ms   max {all:6.2} ms   processor {processor:6.2} ms"
            );
            worst = worst.max(at(&times, 50));
        }
        drop(client);
    });
    match limit {
        Some(limit) if ms(worst) > limit => {
            println!("above the limit of {limit} ms");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// A job that all built-in targets are tried for, about as people write them.
fn job() -> String {
    let mut text = "version: 1\nname: large\nimage: pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime\nparams: {lr: 0.1}\nroles:\n".to_owned();
    let mut roles = 0;
    while text.lines().count() < LINES {
        let needs = if roles % 10 == 0 {
            String::new()
        } else {
            format!("    needs: {{role-{}: succeeded}}\n", roles - 1)
        };
        text += &format!(
            "  role-{roles}:\n    # the work of part {roles}\n{needs}    instances: 2\n    resources:\n      cpu: 4\n      memory: 16GiB\n      shm: 2GiB\n      gpu: {{count: 1, memory: 40GiB}}\n    env:\n      PART: {roles}\n      RATE: ${{{{ params.lr }}}}\n    run: |\n      python train.py --part {roles}\n    timeout: 2h\n\n"
        );
        roles += 1;
    }
    text
}

/// The times of each kind of edit, and the mean of its processor time in milliseconds.
fn measure(client: &Connection, text: &str) -> Vec<(&'static str, Vec<Duration>, f64)> {
    let uri = "file:///w/job.yaml";
    let params = json!({"processId": null, "rootUri": null, "capabilities": {}});
    send(client, Request::new(0.into(), "initialize".to_owned(), params).into());
    let document = json!({"uri": uri, "languageId": "yaml", "version": 0, "text": text});
    let first = Instant::now();
    note(client, "textDocument/didOpen", json!({"textDocument": document}));
    published(client);
    println!(
        "opened                 {:13.2} ms, with every table read for the first time",
        ms(first.elapsed())
    );
    let mut timeouts = text.lines().enumerate().filter(|(_, line)| line.starts_with("    timeout"));
    let (line, _) = timeouts.nth(60).expect("a role in the middle");
    let mut version = 0;
    let mut edit = |from: u32, to: u32, text: &str| {
        version += 1;
        let range =
            json!({"start": {"line": line, "character": from}, "end": {"line": line, "character": to}});
        let document = json!({"uri": uri, "version": version});
        let change = json!({"textDocument": document, "contentChanges": [{"range": range, "text": text}]});
        let start = Instant::now();
        note(client, "textDocument/didChange", change);
        published(client);
        start.elapsed()
    };
    // `timeout` becomes `timeoutt` and back, `2h` becomes `[2h` and back.
    let kinds = [("to a mistake", 11, "t"), ("to a text that breaks", 13, "[")];
    let mut sound = (vec![], 0.0);
    let mut all = vec![];
    for (name, column, letter) in kinds {
        let (mut times, mut used) = (vec![], 0.0);
        for _ in 0..EDITS {
            let before = processor();
            times.push(edit(column, column, letter));
            let between = processor();
            sound.0.push(edit(column, column + 1, ""));
            used += between - before;
            sound.1 += processor() - between;
        }
        all.push((name, times, used / f64::from(EDITS)));
    }
    all.push(("to a sound job", sound.0, sound.1 / f64::from(2 * EDITS)));
    all
}

/// The processor time of all threads so far, in milliseconds; 0 where the kernel does not tell.
fn processor() -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = |entry: std::fs::DirEntry| {
        let text = std::fs::read_to_string(entry.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    };
    threads.filter_map(nanoseconds).sum::<f64>() / 1e6
}

fn send(client: &Connection, message: Message) {
    client.sender.send(message).expect("the server listens");
}

fn note(client: &Connection, method: &str, params: Value) {
    send(client, Notification::new(method.to_owned(), params).into());
}

fn published(client: &Connection) {
    loop {
        match client.receiver.recv().expect("the server speaks") {
            Message::Notification(note) if note.method == "textDocument/publishDiagnostics" => return,
            _ => {}
        }
    }
}

fn at(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort();
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
