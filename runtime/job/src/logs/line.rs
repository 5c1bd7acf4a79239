//! A line of a part, read and written.

use std::time::SystemTime;

use jobc_place::logs::Stream;
pub use jobc_place::logs::parse_line as parse;

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
