//! Error messages for registries.

use std::error::Error as _;

use jobc_sys::error::{Error, Kind};
use serde::Deserialize;
use ureq::Body;
use ureq::http::Response;

use super::{RequestError, Session};
use crate::challenge::Challenge;

/// Maximum number of bytes read of an error response.
const MAX_ERROR_SIZE: u64 = 64 << 10;
/// Maximum length of a registry's message that is shown.
const MAX_MESSAGE_LENGTH: usize = 300;

/// The body of a refusal (OCI distribution specification, "Error codes"); services that give tokens have `details`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorResponse {
    errors: Vec<ErrorEntry>,
    details: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorEntry {
    code: String,
    message: String,
}

/// The registry's message for a refusal, on one line, with `: ` in front; empty if there is none.
pub(crate) fn registry_message(mut answer: Response<Body>) -> String {
    let text = answer.body_mut().with_config().limit(MAX_ERROR_SIZE).read_to_vec().unwrap_or_default();
    let refusal: ErrorResponse = serde_json::from_slice(&text).unwrap_or_default();
    let reasons = refusal.errors.into_iter().map(|ErrorEntry { code, message }| {
        match (code.as_str(), message.as_str()) {
            ("", _) => message,
            (_, "") => code,
            _ => format!("{message} ({code})"),
        }
    });
    let joined =
        reasons.chain([refusal.details]).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ");
    let shown: String = joined.chars().filter(|c| !c.is_control()).take(MAX_MESSAGE_LENGTH).collect();
    if shown.is_empty() { shown } else { format!(": {shown}") }
}

/// An unexpected response.
pub(crate) fn unexpected_response(session: &Session, answer: Response<Body>) -> Error {
    let status = answer.status();
    registry_error(session, &format!("answered {status}{}", registry_message(answer)))
}

/// 403: we are known, and may not.
pub(super) fn refused(session: &Session, answer: Response<Body>) -> Error {
    registry_error(session, &format!("does not allow it{}", registry_message(answer)))
        .help("log in as a user with access, with `docker login` or `podman login`")
}

/// 401 again: what we showed does not help.
pub(super) fn denied(session: &Session, scope: &str, answer: Response<Body>) -> Error {
    if let Some(error) = session.lookup_error() {
        return error;
    }
    let mut parts = scope.rsplitn(2, ':');
    let (actions, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let what = if actions.contains("push") { "push to" } else { "pull from" };
    let name = name.strip_prefix("repository:").unwrap_or(name);
    let known = matches!(session.credential.get(), Some(Ok(Some(_))));
    let who = if known { "with the current login" } else { "without a login" };
    let message = registry_message(answer);
    registry_error(session, &format!("denied permission to {what} `{name}` {who}{message}"))
        .help(login_hint(session))
}

/// A login is required and there is none.
pub(super) fn login_required(session: &Session) -> Error {
    session
        .lookup_error()
        .unwrap_or_else(|| registry_error(session, "requires a login").help(login_hint(session)))
}

fn login_hint(session: &Session) -> String {
    let name = &session.endpoint.registry;
    format!("check the name; if it is correct, log in with `docker login {name}` or `podman login {name}`")
}

/// A way to be let in that is not known here.
pub(super) fn unknown_challenge(session: &Session, challenges: &[Challenge]) -> Error {
    let schemes: Vec<&str> = challenges.iter().map(|challenge| challenge.scheme.as_str()).collect();
    let what = if schemes.is_empty() { "nothing".to_owned() } else { format!("`{}`", schemes.join("`, `")) };
    registry_error(session, &format!("supports no known authentication scheme, only {what}"))
        .help("jobc supports `basic` and `bearer`")
}

/// A service that gives no token.
pub(super) fn no_token(session: &Session) -> Error {
    registry_error(session, "names a token service that returned no token")
}

/// A local file that cannot be sent.
pub(super) fn unreadable(error: &std::io::Error) -> Error {
    Error::new(Kind::System, format!("cannot read the data to send: {error}"))
}

/// A request that cannot be written.
pub(super) fn unwritable(session: &Session, error: &ureq::http::Error) -> Error {
    registry_error(session, &format!("cannot be queried: {error}"))
}

/// What to do where a registry cannot be reached at all.
const NO_ACCESS: &str = "check the name and the network; without access, load the image from an archive with `jobc image import`, \
    or name a mirror in registries.yaml";

/// No answer came, or not a whole one.
pub(crate) fn no_response(session: &Session, error: &ureq::Error) -> RequestError {
    let address = &session.endpoint.address;
    let text = error_chain(error);
    let cannot = |what: &str| {
        Error::new(Kind::System, format!("cannot reach the registry `{}`: {what}", session.endpoint.name))
    };
    if text.contains("UnknownIssuer") {
        let why = "its certificate is not signed by a trusted CA";
        // As on bare systems.
        let help = if crate::agent::host_certificates().is_empty() {
            "this host has no trusted CAs: install the package `ca-certificates`"
        } else {
            "set its certificate, or that of its CA, as `ca` in registries.yaml"
        };
        return RequestError::Final(cannot(why).help(help));
    }
    if text.contains("CaUsedAsEndEntity") {
        let error = cannot("its certificate is self-signed, and not trusted");
        return RequestError::Final(error.help("set it as `ca` in registries.yaml"));
    }
    if text.contains("invalid peer certificate") || text.contains("certificate") && text.contains("alert") {
        return RequestError::Final(
            cannot(&text).help("check the certificate of the registry, and the clock of this host"),
        );
    }
    let speaks_no_tls = text.contains("InvalidContentType") || text.contains("corrupt message");
    if speaks_no_tls && address.starts_with("https://") {
        let error = cannot("it does not speak TLS");
        return RequestError::Final(
            error.help("for plain HTTP, use `--plain-http`, or `plain_http: true` in registries.yaml"),
        );
    }
    match error {
        ureq::Error::HostNotFound => RequestError::Temporary(cannot("no such host").help(NO_ACCESS), None),
        ureq::Error::Timeout(_) => RequestError::Temporary(cannot("it does not answer"), None),
        ureq::Error::BadUri(_) | ureq::Error::InvalidProxyUrl | ureq::Error::TooManyRedirects => {
            RequestError::Final(cannot(&text))
        }
        ureq::Error::BodyExceedsLimit(limit) => RequestError::Final(registry_error(
            session,
            &format!("sent a response that exceeds the limit of {limit} bytes"),
        )),
        _ if text.contains("lookup address") || text.contains("unreachable") => {
            RequestError::Temporary(cannot(&text).help(NO_ACCESS), None)
        }
        _ => RequestError::Temporary(cannot(&text), None),
    }
}

/// An error with its sources, each once.
fn error_chain(error: &ureq::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(error) = below {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        below = error.source();
    }
    let text = text.strip_prefix("io: ").unwrap_or(&text);
    let text = text.split(" (os error").next().unwrap_or(text);
    let mut characters = text.chars();
    characters.next().map(|c| c.to_ascii_lowercase()).into_iter().chain(characters).collect()
}

/// A registry did something.
fn registry_error(session: &Session, what: &str) -> Error {
    Error::new(Kind::System, format!("the registry `{}` {what}", session.endpoint.name))
}
