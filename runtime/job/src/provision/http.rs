//! Files from https servers, fetched by the program curl: resumed where a connection breaks, bounded by what is free on
//! the disk.
//!
//! All options of curl are on its standard input (curl(1), `--config -`), so neither an address with a key in it nor a
//! secret is on a command line.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::fetch::FetchRequest;
use super::program::{self, ProgramOutput};
use jobc_sys::error::{AtPath as _, Error, Kind, Result};

/// How often a transfer is begun again that broke off, and how long is waited before, in seconds times the attempt.
const MAX_ATTEMPTS: u32 = 5;
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Disk space to keep free.
const MIN_FREE_BYTES: u64 = 64 << 20;

/// The exit codes of curl after which another attempt may do better: connecting, partial file, time-out, TLS, empty
/// reply, sending, receiving, HTTP/2 streams (curl(1), "EXIT CODES").
const RETRYABLE_EXIT_CODES: [i32; 11] = [5, 6, 7, 16, 18, 28, 35, 52, 55, 56, 92];

/// Fetches a file to a path that does not exist yet.
pub(super) fn fetch(url: &str, fetch: &mut FetchRequest<'_>, to: &Path) -> Result<()> {
    let scheme = scheme(url)?;
    let bound = free_bytes(to).saturating_sub(MIN_FREE_BYTES).max(1);
    let shown = redact_url(url);
    (fetch.progress)(&shown, 0);
    for attempt in 1.. {
        let ended = run(url, scheme, bound, fetch, to)?;
        if ended.status.success() {
            return ensure_file(to).at_path("open", to);
        }
        let code = ended.status.code().unwrap_or_default();
        let status = http_status(&ended.stderr);
        // The server has no range requests, or the existing part is not a prefix of its content.
        let begin_again = code == 33 || status == Some(416);
        if begin_again {
            let _ = std::fs::remove_file(to);
        }
        let passing = begin_again
            || RETRYABLE_EXIT_CODES.contains(&code)
            || status.is_some_and(|status| matches!(status, 408 | 429 | 500 | 502 | 503 | 504));
        if !passing || attempt == MAX_ATTEMPTS {
            return Err(fetch_error(&ended, code, status, &shown, bound, attempt));
        }
        pause(RETRY_INTERVAL * attempt, fetch)?;
    }
    Ok(())
}

fn run(
    url: &str,
    scheme: &str,
    bound: u64,
    fetch: &mut FetchRequest<'_>,
    to: &Path,
) -> Result<ProgramOutput> {
    let mut config = String::new();
    let mut set = |name: &str, value: &str| config.push_str(&format!("{name} = {}\n", quoted(value)));
    set("url", url);
    set("output", &to.to_string_lossy());
    set("continue-at", "-");
    set("proto", &format!("={scheme}"));
    set("max-filesize", &bound.to_string());
    for (name, value) in [
        ("connect-timeout", "30"),
        ("speed-limit", "1000"),
        ("speed-time", "60"),
        ("max-redirs", "10"),
        ("user-agent", concat!("jobc/", env!("CARGO_PKG_VERSION"))),
    ] {
        set(name, value);
    }
    if let Some(secret) = fetch.secret {
        let secret = std::str::from_utf8(secret)
            .map_err(|_| Error::new(Kind::Config, format!("the secret of `{}` is not text", fetch.name)))?;
        // curl gives neither of them to another server that it is sent on to.
        if secret.contains(':') {
            set("user", secret);
        } else {
            set("header", &format!("Authorization: Bearer {secret}"));
        }
    }
    config.push_str("location\nfail\nsilent\nshow-error\ngloboff\n");
    let mut command = Command::new("curl");
    command.args(["-q", "--config", "-"]).env("LC_ALL", "C");
    let shown = redact_url(url);
    let FetchRequest { stopped, progress: on_progress, .. } = fetch;
    let mut step = || on_progress(&shown, std::fs::metadata(to).map_or(0, |status| status.len()));
    let ended = program::run(&mut command, config.as_bytes(), stopped, &mut step);
    let mut config = config.into_bytes();
    config.fill(0);
    std::hint::black_box(&config);
    ended
}

/// curl does not write empty content at all; and tasks of other users must be able to read it regardless of the umask.
fn ensure_file(path: &Path) -> std::io::Result<()> {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

/// A value as a line of curl's configuration has it.
pub(crate) fn quoted(value: &str) -> String {
    let mut quoted = String::with_capacity(value.len() + 2);
    quoted.push('"');
    for character in value.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

fn pause(time: Duration, fetch: &FetchRequest<'_>) -> Result<()> {
    let begun = std::time::Instant::now();
    while begun.elapsed() < time {
        if fetch.stopped.load(Ordering::Relaxed) {
            return Err(program::stopped_error());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn fetch_error(
    ended: &ProgramOutput,
    code: i32,
    status: Option<u32>,
    shown: &str,
    bound: u64,
    attempts: u32,
) -> Error {
    let words = ended.stderr.lines().next_back().unwrap_or("no output");
    // `curl: (22) The requested URL returned error: 404`
    let words = words.split_once(") ").map_or(words, |(_, words)| words);
    let error = |message: String| Error::new(Kind::System, message);
    match (code, status) {
        (_, Some(401 | 403)) => error(format!("access to `{shown}` was denied: {words}"))
            .help("give the volume a `secret` with a token that has read access"),
        (_, Some(404 | 410)) => error(format!("`{shown}` does not exist: {words}")),
        (63, _) => error(format!("`{shown}` is larger than the {bound} bytes of free disk space"))
            .help("free space on the disk of the job state directory"),
        (23, _) => error(format!("cannot write the download of `{shown}`: {words}"))
            .help("free space on the disk of the job state directory"),
        (60 | 77, _) => error(format!("the certificate of `{shown}` is not trusted: {words}"))
            .help("install the package `ca-certificates`, or name your own with `CURL_CA_BUNDLE`"),
        _ if attempts > 1 => error(format!("cannot fetch `{shown}`, tried {attempts} times: {words}")),
        _ => error(format!("cannot fetch `{shown}`: {words}")),
    }
}

/// The HTTP status of the server's response, if curl's error is about it.
fn http_status(words: &str) -> Option<u32> {
    let (_, behind) = words.rsplit_once("returned error: ")?;
    behind.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn free_bytes(path: &Path) -> u64 {
    let parent = path.parent().unwrap_or(path);
    rustix::fs::statvfs(parent).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// The scheme of a supported address: `https`; `http` from this host; `file` for git.
pub(crate) fn scheme(url: &str) -> Result<&'static str> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let local = ["127.0.0.1", "localhost", "[::1]"]
        .iter()
        .any(|name| host.strip_prefix(name).is_some_and(|port| port.is_empty() || port.starts_with(':')));
    match scheme {
        "https" => Ok("https"),
        "http" if local => Ok("http"),
        "file" => Ok("file"),
        _ => Err(Error::new(Kind::Config, format!("`{}` is not a supported URL", redact_url(url)))
            .help("use `https://…`; other transports do not protect the data")),
    }
}

/// An address for messages: without user name and password, and without the query, which may have a key.
pub(super) fn redact_url(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) =
                rest.split_once('/').map_or((rest, String::new()), |(host, path)| (host, format!("/{path}")));
            let host = host.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    }
}

/// The scheme and server of an address: `https://example.org:8443`.
pub(super) fn origin(url: &str) -> String {
    let shown = redact_url(url);
    let end = shown.find("://").and_then(|start| Some(start + 3 + shown[start + 3..].find('/')?));
    end.map_or(shown.clone(), |end| shown[..end].to_owned())
}
