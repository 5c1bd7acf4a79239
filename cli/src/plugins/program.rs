//! Programs of plug-ins: started in a sandbox, with a timeout and limits of what they may write.

use std::io::{Read, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use jobc_compiler::plugin::{Ask, PluginError};
use jobc_schema::exchange::PluginRequest;
use jobc_schema::target::PluginName;

use crate::platform::RUNS_JOBS;

/// From its start to the end of its answer; JOBC_PLUGIN_TIMEOUT overrides it, in seconds.
const TIMEOUT: u64 = 30;
/// Maximum size of an answer in bytes.
const MAX_ANSWER_BYTES: u64 = 64 << 20;
/// Maximum number of bytes read from its stderr.
const MAX_ERROR_BYTES: u64 = 64 << 10;
/// Maximum number of characters of these that are shown.
const MAX_ERROR_TEXT: usize = 1_000;
/// The environment variables that a program can see.
const ENVIRONMENT: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "PYTHONPATH"];

/// The word by which this program starts itself as the sandbox.
pub(crate) const SANDBOX: &str = "plugin-sandbox";

/// `jobc-backend-NAME` on PATH.
pub(super) fn find(name: PluginName) -> Option<PathBuf> {
    all().into_iter().find_map(|(found, path)| (found == name.as_str()).then_some(path))
}

/// The names after `jobc-backend-` of all programs on PATH, with their paths; of equal names the first is used.
pub(super) fn all() -> Vec<(String, PathBuf)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = vec![];
    // An empty entry is the current directory, from which nothing is started unasked.
    for directory in std::env::split_paths(&path).filter(|directory| directory.is_absolute()) {
        for entry in directory.read_dir().into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_str().and_then(|name| name.strip_prefix("jobc-backend-"));
            let name = name.and_then(|name| name.strip_suffix(std::env::consts::EXE_SUFFIX));
            if let Some(name) = name.filter(|_| entry.path().is_file()) {
                found.push((name.to_owned(), entry.path()));
            }
        }
    }
    found
}

/// Starts a program for each request.
pub(super) fn ask(program: PathBuf) -> Ask {
    Box::new(move |request| run(&program, request))
}

fn run(program: &std::path::Path, request: &PluginRequest) -> Result<serde_json::Value, PluginError> {
    let request = serde_json::to_vec(request).map_err(|error| error.to_string())?;
    let mut command = command(program)?;
    command.env_clear();
    for name in ENVIRONMENT {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child =
        command.spawn().map_err(|error| format!("cannot start `{}`: {error}", program.display()))?;
    let outcome = talk(&mut child, request);
    if outcome.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let (answer, errors) = outcome?;
    if !status.success() {
        let end = status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"));
        let errors: String = errors.trim().chars().take(MAX_ERROR_TEXT).collect();
        return Err(PluginError::from(if errors.is_empty() {
            format!("it ended with {end}")
        } else {
            format!("it ended with {end}: {errors}")
        }));
    }
    Ok(serde_json::from_slice(&answer).map_err(|error| format!("its answer is not JSON: {error}"))?)
}

/// The program in the sandbox, unless the user allows more.
fn command(program: &std::path::Path) -> Result<Command, PluginError> {
    if std::env::var_os("JOBC_PLUGIN_SANDBOX").is_some_and(|value| value == "off") {
        return Ok(Command::new(program));
    }
    if !RUNS_JOBS {
        return Err(
            "this jobc has no sandbox for it; set JOBC_PLUGIN_SANDBOX=off to start it without one".into()
        );
    }
    let own = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command = Command::new(own);
    command.arg(SANDBOX).arg(program);
    Ok(command)
}

/// Writes the request and reads the answer and the errors, all at the same time: a pipe holds 64 KiB.
fn talk(child: &mut Child, request: Vec<u8>) -> Result<(Vec<u8>, String), PluginError> {
    let missing = || PluginError::from("it has no pipes");
    let mut stdin = child.stdin.take().ok_or_else(missing)?;
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;
    // It may end without reading all of it.
    std::thread::spawn(move || stdin.write_all(&request));
    let (sender, receiver) = channel();
    for (is_answer, pipe, limit) in [
        (true, Box::new(stdout) as Box<dyn Read + Send>, MAX_ANSWER_BYTES),
        (false, Box::new(stderr), MAX_ERROR_BYTES),
    ] {
        let sender = sender.clone();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let mut limited = pipe.take(limit + 1);
            let read = limited.read_to_end(&mut bytes);
            if !is_answer {
                // The rest of a long error output is discarded, so that the program does not block.
                let _ = std::io::copy(&mut limited.into_inner(), &mut std::io::sink());
            }
            let _ = sender.send((is_answer, read.map(|_| bytes)));
        });
    }
    drop(sender);
    let seconds =
        std::env::var("JOBC_PLUGIN_TIMEOUT").ok().and_then(|text| text.parse().ok()).unwrap_or(TIMEOUT);
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let (mut answer, mut errors) = (Vec::new(), String::new());
    for _ in 0..2 {
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok((true, Ok(bytes))) if bytes.len() as u64 > MAX_ANSWER_BYTES => {
                return Err(format!("its answer has more than {} MiB", MAX_ANSWER_BYTES >> 20).into());
            }
            Ok((true, Ok(bytes))) => answer = bytes,
            Ok((false, Ok(bytes))) => errors = String::from_utf8_lossy(&bytes).into_owned(),
            Ok((_, Err(error))) => return Err(format!("its output cannot be read: {error}").into()),
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("timed out after {seconds}s").into());
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok((answer, errors))
}
