//! Errors of the API: a `Status` object, or a connection that failed.

use std::time::Duration;

use jobc_sys::error::{Error, Kind};
use serde::Deserialize;

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum ApiError {
    /// The server answered with an error.
    Status(Box<Status>),
    /// The connection failed, with the reason.
    Connection(String),
    /// This host cannot send the request: credentials, for example.
    Local(Error),
}

/// An error of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    pub(crate) code: u16,
    /// `Success` or `Failure`.
    #[serde(rename = "status")]
    pub(crate) outcome: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) details: Details,
    #[serde(skip)]
    pub(crate) retry_after: Option<Duration>,
}

/// The object of an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Details {
    pub(crate) causes: Vec<Cause>,
    pub(crate) retry_after_seconds: Option<u64>,
}

/// A field that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Cause {
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) field: String,
}

impl ApiError {
    /// The HTTP status, if the server answered.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Self::Status(status) => Some(status.code),
            _ => None,
        }
    }

    pub(crate) fn is(&self, code: u16) -> bool {
        self.code() == Some(code)
    }

    /// What happened, for a remark.
    pub(crate) fn why(&self) -> String {
        match self {
            Self::Status(status) => format!("the cluster answered {}: {}", status.code, status.text()),
            Self::Connection(why) => why.clone(),
            Self::Local(error) => error.message(),
        }
    }

    /// The error for a user; `what` is what failed, words that follow "cannot".
    pub(crate) fn into_error(self, what: &str) -> Error {
        match self {
            Self::Local(error) => error,
            Self::Connection(why) => Error::new(Kind::System, format!("cannot {what}: {why}"))
                .help("check the network, the proxy and the `server` of the kubeconfig"),
            Self::Status(status) => {
                let error = Error::new(Kind::System, format!("cannot {what}: {}", status.text()));
                match status.code {
                    401 => error.help("the cluster does not accept your credentials; log in again"),
                    403 => error.help("`jobc targets check TARGET` lists the missing rights, `jobc targets role` prints a Role with them"),
                    429 => error.help("the cluster is overloaded; try again later"),
                    _ => error,
                }
            }
        }
    }
}

impl Status {
    /// The message with control characters removed; a status without one is shown by its number.
    pub(crate) fn text(&self) -> String {
        let text: String = self.message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        if text.trim().is_empty() {
            format!("the server answered {} {}", self.code, self.reason)
        } else {
            text
        }
    }
}
