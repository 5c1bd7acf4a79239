//! A line of a part, read and written.

use std::time::SystemTime;

use jobc_place::logs::{Line, Stream};

/// The bytes of a time.
const TIME_BYTES: usize = 27;

/// Parses a line without its line end; `None` if it is invalid.
pub fn parse(line: &[u8]) -> Option<Line<'_>> {
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
