//! A line of a part, read and written.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// Where a line comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// The task's standard output.
    Stdout,
    /// The task's standard error.
    Stderr,
    /// A remark of the supervisor's about the log itself.
    Jobc,
}

impl Stream {
    /// The name in parts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Jobc => "jobc",
        }
    }
}

/// A line of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// When it was read, such as `2026-11-21T13:31:53.250123Z`: all have 27 bytes, so that text sorts as time does.
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

impl<'a> Line<'a> {
    /// Parses a line without its line end; `None` if it is invalid.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
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
        Some(Self { time, stream, ends, attempt, text: words.next()? })
    }
}

/// The prefix of the lines that are written at one time.
#[derive(Debug)]
pub(super) struct LinePrefix {
    bytes: Vec<u8>,
    tag: usize,
}

impl LinePrefix {
    /// The head of lines written now.
    pub(super) fn now(stream: Stream, attempt: u32) -> Self {
        let (time, stream) = (format_time(SystemTime::now()), stream.as_str());
        Self { tag: time.len() + stream.len() + 2, bytes: format!("{time} {stream} F {attempt} ").into() }
    }

    /// Begins a line that ends, or one of which more follows.
    pub(super) fn write_to(&self, ends: bool, out: &mut Vec<u8>) {
        let at = out.len() + self.tag;
        out.extend_from_slice(&self.bytes);
        if !ends {
            out[at] = b'P';
        }
    }
}

/// A moment as lines write it.
pub(super) fn format_time(time: SystemTime) -> String {
    humantime::format_rfc3339_micros(time).to_string()
}
