//! Errors as text, for other processes.

use serde::{Deserialize, Serialize};

use super::{Error, Kind, Location};

/// An error as another process gets it: what a library said is text.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    kind: Kind,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<Location>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hints: Vec<String>,
}

impl From<Error> for Report {
    fn from(error: Error) -> Self {
        Self { kind: error.kind, message: error.message(), at: error.at, hints: error.hints }
    }
}

impl From<Report> for Error {
    fn from(report: Report) -> Self {
        Self { at: report.at, hints: report.hints, ..Self::new(report.kind, report.message) }
    }
}
