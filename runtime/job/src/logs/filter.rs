//! The selection of lines in logs.

use super::line::format_time;
use jobc_place::logs::Stream;
use jobc_place::time::Time;

/// The selected lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineFilter {
    /// Number of last lines of each task.
    pub(super) tail: Option<u64>,
    /// Those from a moment on, as lines write it.
    pub(super) since: Option<String>,
    /// Those of an attempt.
    pub(super) attempt: Option<u32>,
    /// Those of a stream.
    pub(super) stream: Option<Stream>,
}

impl LineFilter {
    /// Number of last lines of each task.
    #[must_use]
    pub fn tail(self, tail: Option<u64>) -> Self {
        Self { tail, ..self }
    }

    /// Those from a moment on.
    #[must_use]
    pub fn since(self, since: Option<Time>) -> Self {
        Self { since: since.map(|since| format_time(since.into())), ..self }
    }

    /// Those of an attempt.
    #[must_use]
    pub fn attempt(self, attempt: Option<u32>) -> Self {
        Self { attempt, ..self }
    }

    /// Those of a stream.
    #[must_use]
    pub fn stream(self, stream: Option<Stream>) -> Self {
        Self { stream, ..self }
    }
}
