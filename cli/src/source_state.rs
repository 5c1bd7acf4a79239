//! The state of the sources in Git: commit, whether files differ from it, URL of the repository.
//!
//! It is read with `git`, with a timeout, and without hooks, file system monitor, filters or transports.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use jobc_compiler::provenance::{Provenance, SourceState};

/// The timeout for all queries together.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of bytes read of a response.
const MAX_ANSWER_BYTES: u64 = 1 << 20;
/// A longer URL is left out.
const MAX_URL_LENGTH: usize = 1000;

/// Settings of every command. Refreshing the index would need a lock of it.
const SETTINGS: [&str; 6] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.untrackedCache=false",
    "core.pager=cat",
    "protocol.allow=never",
    "submodule.recurse=false",
];

/// The provenance of files compiled from a job in a directory.
pub(crate) fn provenance(directory: &Utf8Path) -> Provenance {
    Provenance {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        source: source_state(directory),
        digests: BTreeMap::new(),
    }
}

/// The state of the working tree that has a directory; none outside a repository, before the first commit, and if `git`
/// is not installed or does not trust the repository.
pub(crate) fn source_state(directory: &Utf8Path) -> Option<SourceState> {
    let git = Git { directory, deadline: Instant::now() + TIMEOUT };
    let revision = git.run(&[], &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?;
    let revision = revision.trim();
    let is_digest =
        matches!(revision.len(), 40 | 64) && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_digest {
        return None;
    }
    let names = r"^(filter\..*\.(clean|process)|remote\..*\.url)$";
    // Without such settings, git fails.
    let settings = git.run(&[], &["config", "-z", "--get-regexp", names]).unwrap_or_default();
    let settings: Vec<(&str, &str)> =
        settings.split('\0').filter_map(|setting| setting.split_once('\n')).collect();
    let url = remote(&settings).and_then(public_url);
    Some(SourceState { revision: revision.to_owned(), is_dirty: is_dirty(&git, &settings), url })
}

/// Whether files differ from the commit or are not in it. Files that only a filter could compare count as different.
fn is_dirty(git: &Git<'_>, settings: &[(&str, &str)]) -> Option<bool> {
    let filters: Vec<&str> =
        settings.iter().map(|(name, _)| *name).filter(|name| name.starts_with("filter.")).collect();
    // `-c` could not switch it off.
    if filters.iter().any(|name| name.contains('=')) {
        return None;
    }
    let off = filters.iter().flat_map(|name| {
        // A required filter that does nothing is an error.
        let filter = name.rsplit_once('.').map_or(*name, |(filter, _)| filter);
        [format!("{name}="), format!("{filter}.required=false")]
    });
    let off: Vec<String> = off.collect();
    // Of submodules only the commit is compared: their files would be read with their own settings.
    let status = ["status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=dirty"];
    git.run(&off, &status).map(|text| !text.is_empty())
}

/// The URL of `origin`, or of the only other remote.
fn remote<'a>(settings: &[(&'a str, &'a str)]) -> Option<&'a str> {
    let remotes = || settings.iter().filter(|(name, _)| name.starts_with("remote."));
    let origin = remotes().find(|(name, _)| *name == "remote.origin.url");
    let mut all = remotes();
    let only = all.next().filter(|_| all.next().is_none());
    origin.or(only).map(|(_, url)| *url)
}

/// A URL that can be shown to others: without user, password and query. None for directories of this host and for
/// helper programs.
pub(crate) fn public_url(url: &str) -> Option<String> {
    let is_plain = url.len() <= MAX_URL_LENGTH && url.chars().all(|c| c.is_ascii_graphic());
    if !is_plain {
        return None;
    }
    if let Some((scheme, rest)) = url.split_once("://") {
        let scheme = scheme.to_ascii_lowercase();
        if !["http", "https", "ssh", "git"].contains(&scheme.as_str()) {
            return None;
        }
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        // The account of a service without a secret.
        let user = if scheme == "ssh" && user == "git" { "git@" } else { "" };
        return (!host.is_empty()).then(|| format!("{scheme}://{user}{host}/{path}"));
    }
    // `[USER@]HOST:PATH`, and not `HELPER::ADDRESS`, `./a:b` or `C:\repository`.
    let (host, path) = url.split_once(':')?;
    let is_host = host.len() > 1 && !host.contains(['/', '\\']);
    if !is_host || path.is_empty() || path.starts_with(':') {
        return None;
    }
    let (user, host) = host.rsplit_once('@').unwrap_or(("", host));
    let user = if user == "git" { "git@" } else { "" };
    Some(format!("{user}{host}:{path}"))
}

/// `git` in a directory, until a deadline.
struct Git<'a> {
    directory: &'a Utf8Path,
    deadline: Instant,
}

impl Git<'_> {
    /// What a command prints; none if it fails.
    fn run(&self, settings: &[String], words: &[&str]) -> Option<String> {
        let mut command = Command::new("git");
        // A hook of git that calls jobc has variables about its own repository.
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_git(name)) {
            command.env_remove(name);
        }
        command
            .envs([("GIT_OPTIONAL_LOCKS", "0"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_NO_LAZY_FETCH", "1")])
            .env("LC_ALL", "C")
            .arg("--no-pager")
            .arg("-C")
            .arg(self.directory);
        for setting in SETTINGS.into_iter().chain(settings.iter().map(String::as_str)) {
            command.arg("-c").arg(setting);
        }
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let stdout = child.stdout.take();
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = stdout.map(|stdout| stdout.take(MAX_ANSWER_BYTES).read_to_end(&mut bytes));
            let _ = sender.send(matches!(read, Some(Ok(_))).then_some(bytes));
        });
        let answer = receiver.recv_timeout(self.deadline.saturating_duration_since(Instant::now()));
        let Ok(Some(answer)) = answer else {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        };
        if answer.len() as u64 == MAX_ANSWER_BYTES {
            // It may wait for a reader of the rest. Its output so far is a response.
            let _ = child.kill();
            let _ = child.wait();
        } else if !child.wait().ok()?.success() {
            return None;
        }
        Some(String::from_utf8_lossy(&answer).into_owned())
    }
}

fn is_of_git(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("GIT_") && name != "GIT_EXEC_PATH")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_urls_contain_no_credentials() {
        for (url, shown) in [
            ("https://me:secret@git.example/a/b.git", Some("https://git.example/a/b.git")),
            ("https://token@git.example/a?token=x#y", Some("https://git.example/a")),
            ("HTTPS://git.example", Some("https://git.example/")),
            ("ssh://git@git.example:22/a.git", Some("ssh://git@git.example:22/a.git")),
            ("ssh://me:secret@git.example/a.git", Some("ssh://git.example/a.git")),
            ("git@git.example:a/b.git", Some("git@git.example:a/b.git")),
            ("me@git.example:a/b.git", Some("git.example:a/b.git")),
            ("https://a@b@git.example/c", Some("https://git.example/c")),
            ("/srv/git/a.git", None),
            ("../a.git", None),
            ("./a:b", None),
            ("C:\\repository", None),
            ("file:///srv/a.git", None),
            ("ext::sh -c true", None),
            ("ext::true", None),
            ("https://git.example/a b", None),
        ] {
            assert_eq!(public_url(url).as_deref(), shown, "{url}");
        }
    }

    #[test]
    fn origin_comes_before_other_remotes() {
        let (origin, other) = (("remote.origin.url", "a"), ("remote.fork.url", "b"));
        assert_eq!(remote(&[other, origin]), Some("a"));
        assert_eq!(remote(&[other]), Some("b"));
        assert_eq!(remote(&[other, ("remote.more.url", "c")]), None);
        assert_eq!(remote(&[("filter.lfs.clean", "x")]), None);
    }
}
