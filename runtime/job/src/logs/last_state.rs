//! Lines as a terminal shows them: of a progress bar, which returns to the start of its line, what it drew last.

use std::collections::BTreeMap;
use std::io;

use jobc_place::logs::{Line, Stream};

/// How much of a line is held before it is passed on as a piece.
const MAX_HELD_BYTES: usize = 64 << 10;

/// Lines whose ends have not come, by the number of the log and the stream.
#[derive(Debug, Default)]
pub(super) struct LastStates {
    held: BTreeMap<(usize, bool), PartialLine>,
}

/// A line whose end has not come.
#[derive(Debug)]
struct PartialLine {
    time: String,
    stream: Stream,
    attempt: u32,
    text: Vec<u8>,
}

type Each<'a> = &'a mut dyn FnMut(usize, &Line<'_>) -> io::Result<()>;

impl LastStates {
    /// Passes on the last state of a line, once its end has come.
    pub(super) fn pass(&mut self, number: usize, line: &Line<'_>, each: Each<'_>) -> io::Result<()> {
        let key = (number, line.stream == Stream::Stderr);
        if line.stream == Stream::Jobc || line.ends && !self.held.contains_key(&key) {
            return each(number, &Line { text: last_state(line.text), ..*line });
        }
        let new = || PartialLine {
            time: line.time.to_owned(),
            stream: line.stream,
            attempt: line.attempt,
            text: vec![],
        };
        let held = self.held.entry(key).or_insert_with(new);
        if line.text.contains(&b'\r') {
            line.time.clone_into(&mut held.time);
        }
        held.text.extend_from_slice(line.text);
        let is_long = held.text.len() > MAX_HELD_BYTES;
        if is_long && let Some(at) = returns_to(&held.text) {
            held.text.drain(..at);
        }
        if line.ends || held.text.len() > MAX_HELD_BYTES {
            return self.pass_held(key, line.ends, each);
        }
        Ok(())
    }

    /// Passes on the last states of lines whose ends have not come.
    pub(super) fn finish(mut self, each: Each<'_>) -> io::Result<()> {
        while let Some(key) = self.held.keys().next().copied() {
            self.pass_held(key, false, each)?;
        }
        Ok(())
    }

    fn pass_held(&mut self, key: (usize, bool), ends: bool, each: Each<'_>) -> io::Result<()> {
        let Some(PartialLine { time, stream, attempt, text }) = self.held.remove(&key) else { return Ok(()) };
        each(key.0, &Line { time: &time, stream, ends, attempt, text: last_state(&text) })
    }
}

/// What a line shows in the end: all after the last carriage return that something follows.
pub(super) fn last_state(text: &[u8]) -> &[u8] {
    returns_to(text).map_or(text, |at| &text[at..])
}

fn returns_to(text: &[u8]) -> Option<usize> {
    let visible = text.iter().rposition(|&byte| byte != b'\r')?;
    text[..visible].iter().rposition(|&byte| byte == b'\r').map(|at| at + 1)
}

/// The states of a line, one after the other: what is between carriage returns. A line without one is its only state.
pub fn states(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_bar = text.contains(&b'\r');
    text.split(|&byte| byte == b'\r').filter(move |state| !is_bar || !state.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_what_was_drawn_last() {
        assert_eq!(last_state(b"plain"), b"plain");
        assert_eq!(last_state(b"\r 1%\r 2%"), b" 2%");
        assert_eq!(last_state(b"1%\r2%\r"), b"2%\r");
        assert_eq!(last_state(b"end\r"), b"end\r");
        assert_eq!(last_state(b""), b"");
    }

    #[test]
    fn states_are_what_is_between_returns() {
        assert_eq!(states(b"\ra\rb").collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(states(b"").collect::<Vec<_>>(), [b""]);
        assert_eq!(states(b"end\r").collect::<Vec<_>>(), [b"end"]);
    }
}
