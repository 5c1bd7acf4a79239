//! Repositories, fetched by the program git: one commit, without its history, its hooks or questions.
//!
//! A secret is the password of git's own credential protocol (gitcredentials(7)), for the one server it belongs to. It
//! is passed in the environment of git, which only this user can read, and is in no file and on no command line.

use std::path::Path;
use std::process::Command;

use super::fetch::FetchRequest;
use super::program::{self, ProgramOutput};
use jobc_sys::error::{AtPath as _, Error, Kind, Result};

/// Answers git's question for a log-in. A value of the form `USER:PASSWORD` has its own user.
const CREDENTIAL_HELPER: &str = r#"!f() { if [ "$1" = get ]; then printf 'username=%s\npassword=%s\n' "$JOBC_GIT_USER" "$JOBC_GIT_PASSWORD"; fi; }; f"#;

/// The user name that goes with a token: GitHub's name for it, while GitLab and Gitea take any.
const TOKEN_USER: &str = "x-access-token";

/// Fetches a commit's files to a directory that does not exist yet.
pub(super) fn fetch(
    url: &str,
    reference: Option<&str>,
    fetch: &mut FetchRequest<'_>,
    to: &Path,
) -> Result<()> {
    let wanted = reference.unwrap_or("HEAD");
    if wanted.starts_with('-') || wanted.contains(|c: char| c.is_whitespace() || c.is_control() || c == ':') {
        return Err(Error::new(
            Kind::Config,
            format!("`{}` is not a branch, tag or commit", wanted.escape_debug()),
        ));
    }
    super::paths::create_directories(to).at_path("create the directory", to)?;
    let scheme = super::http::scheme(url)?;
    (fetch.progress)(&format!("git+{}", super::http::redact_url(url)), 0);
    let git = |arguments: &[&str], fetch: &mut FetchRequest<'_>| run(arguments, url, scheme, fetch, to);
    check_success(&git(&["init", "--quiet", "--template=", "."], fetch)?)?;
    let shallow = git(
        &["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--depth=1", "--", url, wanted],
        fetch,
    )?;
    let mut found = "FETCH_HEAD".to_owned();
    if !shallow.status.success() {
        // A server may refuse to serve a single commit, and does not accept abbreviated names.
        if !is_commit(wanted) {
            return Err(fetch_error(&shallow, url, wanted));
        }
        let all = ["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"];
        let ended = git(&["fetch", "--quiet", "--no-recurse-submodules", "--", url, all[0], all[1]], fetch)?;
        if !ended.status.success() {
            return Err(fetch_error(&ended, url, wanted));
        }
        found = format!("{wanted}^{{commit}}");
    }
    let checked_out = git(&["checkout", "--quiet", "--detach", "--force", &found, "--"], fetch)?;
    if checked_out.status.success() { Ok(()) } else { Err(fetch_error(&checked_out, url, wanted)) }
}

fn run(
    arguments: &[&str],
    url: &str,
    scheme: &str,
    fetch: &mut FetchRequest<'_>,
    directory: &Path,
) -> Result<ProgramOutput> {
    let mut command = Command::new("git");
    // A repository is data: nothing in it is executed.
    let safe = ["core.hooksPath=/dev/null", "core.fsmonitor=false", "submodule.recurse=false", "gc.auto=0"];
    let patient = ["http.lowSpeedLimit=1000", "http.lowSpeedTime=60", "advice.detachedHead=false"];
    for setting in safe.iter().chain(&patient) {
        command.args(["-c", setting]);
    }
    command
        .args(arguments)
        .current_dir(directory)
        .env("GIT_DIR", directory.join(".git"))
        .env("GIT_WORK_TREE", directory)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ALLOW_PROTOCOL", scheme)
        .env("GIT_ASKPASS", "/bin/false")
        .env("SSH_ASKPASS", "/bin/false")
        .env("LC_ALL", "C");
    if let Some(secret) = fetch.secret {
        let secret = std::str::from_utf8(secret)
            .map_err(|_| Error::new(Kind::Config, format!("the secret of `{}` is not text", fetch.name)))?;
        let (user, password) = secret.split_once(':').unwrap_or((TOKEN_USER, secret));
        command
            .env("JOBC_GIT_USER", user)
            .env("JOBC_GIT_PASSWORD", password)
            .env("GIT_CONFIG_COUNT", "2")
            .env("GIT_CONFIG_KEY_0", "credential.helper")
            .env("GIT_CONFIG_VALUE_0", "")
            .env("GIT_CONFIG_KEY_1", format!("credential.{}.helper", super::http::origin(url)))
            .env("GIT_CONFIG_VALUE_1", CREDENTIAL_HELPER);
    }
    let shown = format!("git+{}", super::http::redact_url(url));
    let FetchRequest { stopped, progress: on_progress, .. } = fetch;
    program::run(&mut command, b"", stopped, &mut || on_progress(&shown, received_bytes(directory)))
}

fn check_success(ended: &ProgramOutput) -> Result<()> {
    if ended.status.success() {
        return Ok(());
    }
    Err(Error::new(Kind::System, format!("git failed: {}", last_line(&ended.stderr))))
}

fn fetch_error(ended: &ProgramOutput, url: &str, wanted: &str) -> Error {
    let words = last_line(&ended.stderr);
    let url = super::http::redact_url(url);
    let error = Error::new(Kind::System, format!("cannot fetch `{wanted}` of `{url}`: {words}"));
    if words.contains("could not read Username") || words.contains("Authentication failed") {
        return error.help("a private repository needs a `secret` with a token that has read access");
    }
    if words.contains("find remote ref") || words.contains("unknown revision") {
        return error.help("write a branch, a tag or a commit of the repository as `ref`");
    }
    error
}

/// The last message of git, without its severity prefix.
fn last_line(words: &str) -> &str {
    let lines = || words.lines().map(str::trim).filter(|line| !line.is_empty());
    let fatal =
        lines().filter_map(|line| line.strip_prefix("fatal: ").or(line.strip_prefix("error: "))).next_back();
    fatal.or_else(|| lines().next_back()).unwrap_or("no output")
}

fn is_commit(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The bytes that the objects received so far take.
fn received_bytes(directory: &Path) -> u64 {
    let names = std::fs::read_dir(directory.join(".git/objects/pack")).into_iter().flatten().flatten();
    names.filter_map(|entry| entry.metadata().ok()).map(|status| status.len()).sum()
}
