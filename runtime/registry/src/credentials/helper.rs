//! Programs that keep credentials: `docker-credential-NAME get`, with the registry on standard input and JSON on
//! standard output (the protocol of docker-credential-helpers).

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use jobc_sys::error::{Error, Kind, Result};
use serde::Deserialize;

use super::Credential;

/// A helper may prompt for a password, so the timeout is long; one that hangs must not block forever.
const HELPER_TIMEOUT: Duration = Duration::from_mins(1);
/// No answer is longer.
const MAX_RESPONSE_SIZE: u64 = 1 << 20;
/// The user name that marks a token instead of a password.
const TOKEN_USER: &str = "<token>";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelperResponse {
    username: String,
    secret: String,
}

/// Asks a program for a registry's credentials; nothing if it has none.
pub(super) fn query(name: &str, server: &str) -> Result<Option<Credential>> {
    let program = format!("docker-credential-{name}");
    if name.is_empty() || name.contains('/') {
        return Err(failed(Path::new(&program), server, "is not the name of a program"));
    }
    query_program(Path::new(&program), server, HELPER_TIMEOUT)
}

fn failed(program: &Path, server: &str, what: &str) -> Error {
    let program = program.display();
    Error::new(Kind::System, format!("`{program}`, which has the credentials of `{server}`, {what}"))
        .help("repair the program, or remove its name from `credsStore` and `credHelpers`")
}

pub(super) fn query_program(program: &Path, server: &str, time: Duration) -> Result<Option<Credential>> {
    let failed = |what: &str| failed(program, server, what);
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(&format!("cannot be started: {error}")))?;
    let (mut stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (sender, receiver) = mpsc::channel();
    let request = server.to_owned();
    std::thread::spawn(move || {
        // A helper that does not read its input shows that in its response.
        if let Some(stdin) = &mut stdin {
            let _ = stdin.write_all(request.as_bytes());
        }
        drop(stdin);
        let mut text = Vec::new();
        let read = stdout.map(|stdout| stdout.take(MAX_RESPONSE_SIZE).read_to_end(&mut text));
        let _ = sender.send(read.transpose().map(|_| text));
    });
    let answer = receiver.recv_timeout(time);
    if matches!(answer, Err(RecvTimeoutError::Timeout)) {
        let _ = child.kill();
        let _ = child.wait();
        return Err(failed(&format!("timed out after {} s", time.as_secs())));
    }
    let status = child.wait().map_err(|error| failed(&format!("cannot be waited for: {error}")))?;
    let text = answer.ok().and_then(std::result::Result::ok).unwrap_or_default();
    if !status.success() {
        let message = String::from_utf8_lossy(&text);
        // The words of the protocol for "I have none".
        if message.contains("credentials not found") {
            return Ok(None);
        }
        let message = message.trim().chars().filter(|c| !c.is_control()).take(200).collect::<String>();
        return Err(failed(&format!(
            "failed: {}",
            if message.is_empty() { status.to_string() } else { message }
        )));
    }
    let HelperResponse { username, secret } =
        serde_json::from_slice(&text).map_err(|_| failed("returned an invalid response"))?;
    Ok(match username.as_str() {
        TOKEN_USER => Some(Credential::Identity(secret)),
        // Some answer so where nothing is stored.
        "" if secret.is_empty() => None,
        _ => Some(Credential::Password { user: username, password: secret }),
    })
}
