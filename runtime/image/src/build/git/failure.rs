//! Errors of `git`, from its output, with what to do.

use jobc_sys::error::{Error, Kind};

use super::super::access::without_password;
use super::environment::Settings;

const MAX_REASON_LENGTH: usize = 400;

/// A command of `git` that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    cause: Cause,
    /// The command, such as `fetch`.
    command: String,
    /// The repository, without a password.
    url: String,
    /// The line with the reason.
    reason: String,
}

/// The sorts of failures that a user can do something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// The key of the host is unknown, or another one.
    UnknownHost,
    /// ssh has no key that the host accepts.
    DeniedBySsh,
    /// The server requires a login, and none is configured.
    NoLogin,
    /// The server refused the login.
    LoginRefused,
    /// The certificate of the server is not trusted.
    Certificate,
    /// The server has no such repository, or hides it from this user.
    NoRepository,
    /// No connection.
    Unreachable,
    /// A protocol that is not allowed.
    Protocol,
    Other,
}

/// Parts of the lines that git(1), curl and ssh(1) write, the first that is found counts.
const PATTERNS: [(&str, Cause); 25] = [
    ("Host key verification failed", Cause::UnknownHost),
    ("Permission denied", Cause::DeniedBySsh),
    ("Too many authentication failures", Cause::DeniedBySsh),
    ("could not read Username", Cause::NoLogin),
    ("could not read Password", Cause::NoLogin),
    ("unable to read askpass response", Cause::NoLogin),
    ("Authentication failed", Cause::LoginRefused),
    ("HTTP Basic: Access denied", Cause::LoginRefused),
    ("The requested URL returned error: 403", Cause::LoginRefused),
    ("certificate", Cause::Certificate),
    ("CAfile", Cause::Certificate),
    ("Repository not found", Cause::NoRepository),
    ("does not appear to be a git repository", Cause::NoRepository),
    ("' not found", Cause::NoRepository),
    ("Connection refused", Cause::Unreachable),
    ("Connection timed out", Cause::Unreachable),
    ("Connection reset", Cause::Unreachable),
    ("Could not resolve host", Cause::Unreachable),
    ("Couldn't connect to server", Cause::Unreachable),
    ("Could not connect to server", Cause::Unreachable),
    ("Failed to connect", Cause::Unreachable),
    ("No route to host", Cause::Unreachable),
    ("Network is unreachable", Cause::Unreachable),
    ("Operation too slow", Cause::Unreachable),
    ("transport '", Cause::Protocol),
];

impl Failure {
    /// A failure of a command for a repository, which wrote `errors`.
    pub(super) fn new(words: &[&str], url: &str, errors: &str) -> Self {
        let shown = without_password(url);
        let errors = errors.replace(url, &shown);
        let of = |(pattern, cause): &(&str, Cause)| {
            errors.lines().find(|line| line.contains(pattern)).map(|line| (*cause, line))
        };
        let of_git = |line: &&str| line.starts_with("fatal:") || line.starts_with("error:");
        let found = PATTERNS.iter().find_map(of);
        let cause = found.map_or(Cause::Other, |(cause, _)| cause);
        // For a failed connection, git's last line only says that it could not read; for a submodule, which one it is.
        let found = found.filter(|(cause, _)| *cause != Cause::Protocol);
        let reason = found.map(|(_, line)| line).or_else(|| errors.lines().rfind(of_git));
        let reason = reason.or_else(|| errors.lines().next_back()).unwrap_or_default();
        let reason = reason.strip_prefix("fatal: ").or(reason.strip_prefix("error: ")).unwrap_or(reason);
        Self {
            cause,
            command: words.first().copied().unwrap_or_default().to_owned(),
            url: shown,
            reason: reason.chars().filter(|c| !c.is_control()).take(MAX_REASON_LENGTH).collect(),
        }
    }

    /// Whether the server was reached, and let the user in.
    pub(super) fn is_of_request(&self) -> bool {
        self.cause == Cause::Other
    }

    /// The error, with what to do about it.
    pub(super) fn error(&self, settings: Settings<'_>) -> Error {
        let Self { cause, command, url, reason } = self;
        let message = match cause {
            Cause::NoLogin => format!("`{url}` requires a login"),
            Cause::LoginRefused => format!("`{url}` refused the login: {reason}"),
            _ => format!("`git {command}` for `{url}` failed: {reason}"),
        };
        let error = Error::new(Kind::System, message);
        match self.help(settings) {
            Some(help) => error.help(help),
            None => error,
        }
    }

    fn help(&self, settings: Settings<'_>) -> Option<String> {
        let url = &self.url;
        let of_user = matches!(settings, Settings::OfUser);
        let help = match self.cause {
            Cause::UnknownHost => "add the host's key to ~/.ssh/known_hosts, as `ssh-keyscan HOST` prints it",
            Cause::DeniedBySsh if of_user => {
                "start an SSH agent with a key that the server accepts: `ssh-add`"
            }
            Cause::DeniedBySsh => "pass an agent with a key for it: `--ssh default`",
            Cause::NoLogin | Cause::LoginRefused if of_user => {
                return Some(format!(
                    "store a login in a credential helper of git (gitcredentials(7)), so that `git ls-remote {url}` asks no question"
                ));
            }
            Cause::NoLogin | Cause::LoginRefused => {
                "builds have no logins for `https://`; name the repository by `ssh://` and pass an agent: `--ssh default`"
            }
            Cause::Certificate if of_user => {
                "set `SSL_CERT_FILE`, or `http.sslCAInfo` of git, to a file with the CA that signed it"
            }
            Cause::Certificate => "set `SSL_CERT_FILE` to a file with the CA that signed it",
            Cause::NoRepository => {
                "check the name and your rights: servers hide repositories that a user cannot read"
            }
            Cause::Protocol => {
                "repositories and their submodules are fetched by `https://` and `ssh://` only"
            }
            Cause::Unreachable | Cause::Other => return None,
        };
        Some(help.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, errors: &str) -> String {
        let failure = Failure::new(&["fetch", "--quiet"], url, errors);
        let error = failure.error(Settings::OfUser);
        format!("{}; {}", error.message(), error.advice().unwrap_or_default())
    }

    #[test]
    fn a_reason_is_that_of_the_program_that_knows_it() {
        let https = "https://h/r";
        for (url, errors, expected) in [
            (
                https,
                "fatal: could not read Username for 'https://h': terminal prompts disabled\n",
                "`https://h/r` requires a login; store a login",
            ),
            (
                https,
                "remote: Invalid token\nfatal: Authentication failed for 'https://h/r/'\n",
                "`https://h/r` refused the login: Authentication failed for",
            ),
            (
                https,
                "fatal: unable to access 'https://h/r/': SSL certificate problem: self-signed certificate\n",
                "`git fetch` for `https://h/r` failed: unable to access 'https://h/r/': SSL certificate problem: self-signed certificate; set `SSL_CERT_FILE`",
            ),
            (
                https,
                "fatal: repository 'https://h/r/' not found\n",
                "failed: repository 'https://h/r/' not found; check the name",
            ),
            (
                "ssh://h/r",
                "h: Permission denied (publickey).\nfatal: Could not read from remote repository.\n\nPlease make sure\n",
                "`git fetch` for `ssh://h/r` failed: h: Permission denied (publickey).; start an SSH agent",
            ),
            (
                "ssh://h/r",
                "No ED25519 host key is known for h and you have requested strict checking.\nHost key verification failed.\nfatal: Could not read\n",
                "Host key verification failed.; add the host's key",
            ),
            (
                "ssh://h/r",
                "fatal: '/r' does not appear to be a git repository\nfatal: Could not read from remote repository.\n",
                "failed: '/r' does not appear to be a git repository; check the name",
            ),
            (https, "fatal: remote error: upload-pack: not our ref 12\n", "upload-pack: not our ref 12; "),
            (https, "", "`git fetch` for `https://h/r` failed: ; "),
        ] {
            let found = check(url, errors);
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let found = check("https://me:word@h/r", "fatal: unable to access 'https://me:word@h/r': no\n");
        assert!(!found.contains("word@"), "{found}");
    }
}
