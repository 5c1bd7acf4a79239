//! The output of tasks.

use std::ops::ControlFlow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Gets output of tasks, and can end it.
pub type LogOutput<'a> = &'a mut dyn FnMut(LogItem<'_>) -> ControlFlow<()>;

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

/// The bytes of a time.
const TIME_BYTES: usize = 27;

/// Parses a line of a log's file without its line end; `None` if it is invalid.
pub fn parse_line(line: &[u8]) -> Option<Line<'_>> {
    let (time, rest) = line.split_at_checked(TIME_BYTES)?;
    let time = std::str::from_utf8(time).ok().filter(|time| time.ends_with('Z'))?;
    let mut words = rest.strip_prefix(b" ")?.splitn(4, |&byte| byte == b' ');
    let stream = match words.next()? {
        b"stdout" => Stream::Stdout,
        b"stderr" => Stream::Stderr,
        b"jobc" => Stream::Jobc,
        _ => return None,
    };
    let ends = match words.next()? {
        b"F" => true,
        b"P" => false,
        _ => return None,
    };
    let attempt = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    Some(Line { time, stream, ends, attempt, text: words.next()? })
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
