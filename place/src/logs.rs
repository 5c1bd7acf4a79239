//! The output of tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which output is shown.
#[derive(Clone, Debug, Default)]
pub struct LogRequest {
    /// Whether to go on until the job has ended.
    pub follow: bool,
    /// Lines from the end of each task's output; all by default.
    pub tail: Option<u64>,
    /// Only lines newer than this time (RFC 3339).
    pub since: Option<String>,
    /// Only this attempt of each task.
    pub attempt: Option<u32>,
    /// Tasks or roles; all by default.
    pub tasks: Vec<String>,
    /// Whether lost output is passed over in silence: numbers are searched in what is left.
    pub is_search: bool,
}

/// Where a line comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// The task's standard output; of both, where a place keeps them together.
    #[default]
    Stdout,
    /// The task's standard error.
    Stderr,
    /// A remark of the supervisor's about the log itself.
    Jobc,
}

/// A line of a task's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// When it was written (RFC 3339); all of a place have the same length, so that text sorts as time does. Empty where
    /// that is unknown.
    pub time: &'a str,
    /// Where it comes from.
    pub stream: Stream,
    /// Whether it ends here; otherwise more of it follows.
    pub ends: bool,
    /// The task's attempt, from 1.
    pub attempt: u32,
    /// The text, without the end of the line.
    pub text: &'a [u8],
}

/// Output of a task, or a remark about it.
#[derive(Debug)]
pub enum LogItem<'a> {
    /// A line.
    Line {
        /// The task.
        task: &'a str,
        /// The line.
        line: Line<'a>,
    },
    /// Something about the output, such as lines that the server no longer has.
    Remark {
        /// The task.
        task: &'a str,
        /// Its type.
        text: &'a str,
    },
    /// Nothing happened for a while.
    Idle,
}

impl Stream {
    /// The name in the files of logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Jobc => "jobc",
        }
    }
}

impl<'a> LogItem<'a> {
    /// A whole line of a place that does not tell both streams of a task apart.
    pub fn line(task: &'a str, attempt: u32, time: &'a str, text: &'a [u8]) -> Self {
        Self::Line { task, line: Line { time, stream: Stream::Stdout, ends: true, attempt, text } }
    }
}
