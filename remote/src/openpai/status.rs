//! Why a request to a rest-server has no answer.

use std::time::Duration;

use jobc_sys::error::{Error, Kind};
use serde::Deserialize;

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum ApiError {
    /// The server answered with an error.
    Status(Status),
    /// The connection failed, with the reason.
    Connection(String),
    /// Something answered that is not a rest-server, with what it sent.
    NotApi(String),
}

/// An error of the server: `{"code": "NoJobError", "message": "..."}` (pai, `src/rest-server/src/config/express.js`).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    #[serde(skip)]
    pub(crate) http: u16,
    pub(crate) code: String,
    pub(crate) message: String,
    #[serde(skip)]
    pub(crate) retry_after: Option<Duration>,
    /// What to do about a refused token.
    #[serde(skip)]
    pub(crate) renewal: Option<String>,
}

impl ApiError {
    /// Whether the server answered with this HTTP status.
    pub(crate) fn is(&self, http: u16) -> bool {
        matches!(self, Self::Status(status) if status.http == http)
    }

    /// Whether the server does not have the route: its release is older (pai, `NoApiError` of `config/express.js`).
    pub(crate) fn is_unknown_route(&self) -> bool {
        matches!(self, Self::Status(status) if status.http == 404 && status.code == "NoApiError")
    }

    /// The error for a user; `what` is what failed, words that follow "cannot".
    pub(crate) fn into_error(self, what: &str) -> Error {
        match self {
            Self::Connection(why) => Error::new(Kind::System, format!("cannot {what}: {why}"))
                .help("check the network, the proxy and `openpai.server` of the target"),
            Self::NotApi(why) => Error::new(Kind::Config, format!("cannot {what}: {why}")).help(
                "`openpai.server` of the target must be the rest-server; behind the web portal its address ends with \
                 `/rest-server`",
            ),
            Self::Status(status) => {
                let error = Error::new(Kind::System, format!("cannot {what}: {}", status.text()));
                match (status.http, status.retry_after) {
                    (401, _) => error.help(status.renewal.unwrap_or_default()),
                    (403, _) => error.help("`jobc targets check TARGET` shows what you may use"),
                    (429, Some(wait)) => error.help(format!(
                        "the server limits how often you may do this; try again in {}",
                        humantime::format_duration(wait)
                    )),
                    (429, None) => error.help("the server limits how often you may do this; try again later"),
                    (413, _) => error.help(
                        "the job is too large for the server; move files of the job into an image or a storage",
                    ),
                    (500.., _) => error.help("the server has a problem of its own; ask an administrator"),
                    _ => error,
                }
            }
        }
    }
}

impl Status {
    /// The message in one line; a status without one is shown by its number.
    pub(crate) fn text(&self) -> String {
        let text = self.message.split_whitespace().collect::<Vec<_>>().join(" ");
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        let text = text.trim_end_matches('.');
        if text.is_empty() { format!("the server answered {}", self.http) } else { text.to_owned() }
    }
}
